#!/bin/bash
# Standard input, output and error are the command's; ours is said on standard
# error, and none of it with -q.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

head -c 3000000 /dev/urandom >data
through_pipe() {
	# shellcheck disable=SC2002 # a pipe is the point
	cat data | smco-trace -q -o t -- cat | cmp - data
}
ok "bytes go through untouched" through_pipe
ok "standard input from a file" sh -c \
	'smco-trace -q -o t -- cat <data | cmp - data'
summary_on_stderr() {
	smco-trace -o t -- cat data >out 2>err || return 1
	cmp out data && [ -s err ]
}
ok "the summary goes to standard error" summary_on_stderr
ok "the summary names target and trace" sh -c 'cat err; grep -q "10 %" err &&
	grep -q smco-report err'

quiet() {
	smco-trace -q -o t -- sh -c 'echo out; echo err >&2' >out 2>err
	[ "$(cat out)" = out ] && [ "$(cat err)" = err ]
}
ok "-q is silent" quiet
plain() {
	smco-trace -o t -- sleep 0.7 2>err || return 1
	! grep -q "$(printf '[\r\033]')" err
}
ok "no status line when not a terminal" plain

# on_terminal COMMAND... - output as a terminal gets it into "screen".
on_terminal() { script -qec "$*" screen </dev/null >/dev/null; }
ok "on a terminal" on_terminal smco-trace -o t -- sleep 2
ok "there is one" grep -q "$(printf '\r.*overhead .*\033\\[K')" screen
erased() {
	# Whatever follows the last status line begins by erasing it.
	perl -0777 -ne 'exit !(/.*overhead [\d.]+ %[^\r]*\e\[K\r\r\e\[K/s)' screen
}
ok "it is erased at the end" erased
ok "on a terminal with -q" on_terminal smco-trace -q -o t -- sleep 0.7
ok "nothing" test_exit 1 grep -q 'overhead' screen

# Editors, pagers, and who asks for a password: the screen is theirs.
cat >editor.sh <<'E2'
stty $1
echo taken
sleep 2
echo given back
stty sane
sleep 1
E2
untouched() { # HOW: nothing of ours between the two, and something behind
	on_terminal smco-trace -o t -- sh editor.sh "$1" || return
	perl -0777 -ne 'exit !/taken\s+given back.*overhead /s' screen
}
ok "nothing where keys are read one by one" untouched -icanon
ok "nor where they are not shown" untouched -echo

escape=$(printf '\033\\[[0-9;]*m')
unset NO_COLOR
ok "run on a terminal" on_terminal smco-trace -o t -- true
ok "colour on a terminal" grep -q "$escape" screen
ok "run with NO_COLOR" on_terminal NO_COLOR=1 smco-trace -o t -- true
ok "NO_COLOR is honoured" test_exit 1 grep -q "$escape" screen
ok "run with --color=never" on_terminal smco-trace --color=never -o t -- true
ok "--color=never" test_exit 1 grep -q "$escape" screen
NO_COLOR=1 smco-trace --color=always -o t -- true 2>err
ok "--color=always without a terminal" grep -q "$escape" err
smco-trace -o t -- true 2>err
ok "none in a file" test_exit 1 grep -q "$escape" err

ok "all three closed" test_exit 7 sh -c \
	'smco-trace -q -o t -- sh -c "exit 7" <&- >&- 2>&-'
ok "the reader of the output goes away" sh -c \
	'smco-trace -q -o t -- sh -c "yes; echo \$? >yes.status" | head -1;
	[ "$(cat yes.status)" = 141 ]'
ok "standard error goes away: the command's status all the same" sh -c \
	'{ smco-trace -o t -- sh -c "exit 9"; echo $? >status; } 2>&1 | :;
	[ "$(cat status)" = 9 ]'

done_testing
