#!/bin/bash
# A launched command's life is its own: output, exit status, death by signal,
# every signal it gets.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

ok "exit status 0" test_exit 0 "$DRIVE" true
ok "exit status 7" test_exit 7 "$DRIVE" sh -c 'exit 7'
ok "death by SIGTERM" test_exit 143 "$DRIVE" sh -c 'kill -TERM $$'
ok "death by SIGKILL" test_exit 137 "$DRIVE" sh -c 'kill -KILL $$'
ok "command not found" test_exit 127 "$DRIVE" /nonexistent/command
ok "command not in PATH" test_exit 127 "$DRIVE" no-such-command-here
ok "not executable" test_exit 126 "$DRIVE" /etc/passwd
ok "a directory" test_exit 126 "$DRIVE" /tmp
ok "found in PATH, gets its arguments" \
	test "$("$DRIVE" echo 'a b' c 2>/dev/null)" = 'a b c'
ok "a static program" test_exit 3 "$DRIVE" "$FIXTURES/static_exit"

# same_output DRIVE-OPTIONS... - siginfos sees the same with and without us
same_output() {
	"$FIXTURES/siginfos" >plain || return 1
	drive "$@" "$FIXTURES/siginfos" >driven || return 1
	diff plain driven
}
ok "siginfo of every signal is the same" same_output
ok "also while we stop it and run calls" same_output -s 1 -i 3
ok "also back to back" same_output -s 0 -i 1
ok "also with every system call stopped" same_output -x
ok "also with calls run in every syscall-stop" same_output -x -i 2

# The mask and the ignored signals are those the command would have had.
inherits() {
	sh -c 'trap "" USR1; exec grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status' >plain
	sh -c 'trap "" USR1; exec "$0" grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status' \
		"$DRIVE" >driven 2>/dev/null
	diff plain driven
}
ok "signal mask and dispositions are inherited" inherits

events() {
	"$DRIVE" -e events sh -c '(exit 0); /bin/true; exit 0' 2>/dev/null
	cat events
	[ "$(grep -c launched events)" = 1 ] &&
		[ "$(grep -c forked events)" -ge 1 ] &&
		[ "$(grep -c execed events)" -ge 1 ] &&
		[ "$(grep -c libs events)" -ge 2 ] &&
		[ "$(grep -c proc-gone events)" = \
			"$(awk '/proc-new/ { print $2 }' events | sort -u | wc -l)" ]
}
ok "birth, exec, libraries and end are told" events

nofollow() {
	"$DRIVE" -n -e events sh -c '/bin/true; (exit 3); exit 5' 2>/dev/null
	[ $? = 5 ] && cat events && ! grep -q forked events
}
ok "no child is told of when not following" nofollow

done_testing
