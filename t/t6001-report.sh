#!/bin/bash
# smco-report as a command: options, errors, statuses, outputs.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

export LC_ALL=C.UTF-8
unset PAGER SMCO_PAGER COLUMNS
"$BUILD/t/unit/u-summary-text" s.trace || exit 1

# usage STATUS PATTERN ARGUMENT... - one line on stderr that fits PATTERN,
# nothing on stdout, that status.
usage() {
	local status=$1 pattern=$2
	shift 2
	test_exit "$status" smco-report "$@" >out 2>err || return 1
	[ ! -s out ] || { echo "stdout is not empty" && return 1; }
	[ "$(wc -l <err)" = 1 ] || { cat err && return 1; }
	grep -q "^smco-report: .*$pattern" err || { cat err && return 1; }
}

ok "unknown long option" usage 2 "unknown option --nonsense" --nonsense
ok "unknown short option" usage 2 "unknown option -x" -x
ok "option without its value" usage 2 "top wants a value" --top
ok "option with a value too many" usage 2 "json" --json=yes
ok "number that is none" usage 2 '"3x"' --top 3x
ok "negative number" usage 2 '"-1"' --frames -1
ok "number too large" usage 2 'number' --top 99999999999999999999
ok "color that is none" usage 2 '"blue"' --color blue
cp s.trace kept.trace
ok "-o that is the trace" usage 2 "kept.trace would replace a trace" -o ./kept.trace s.trace kept.trace
ok "which stays" cmp s.trace kept.trace
ok "ranges of a part of the session" usage 2 "those of the whole session" --ranges --from 1s s.trace
ok "no such file" usage 9 "nosuch.trace: No such file" nosuch.trace
ok "a directory" usage 7 "Is a directory" .
echo "hello" >text.txt
ok "not a trace" usage 3 "text.txt: not a trace" text.txt
ok "a trace and none: nothing is shown" usage 3 "text.txt: not a trace" \
	s.trace text.txt
: >empty.trace
ok "an empty file" usage 5 "empty.trace: not a trace but empty" empty.trace
head -c 64 s.trace >header.trace
ok "a header and nothing else" usage 5 "header.trace: holds nothing" header.trace

# header OFFSET BYTES - the sample with these bytes in its header, signed.
header() {
	perl -e 'my ($at, $hex) = @ARGV; local $/; my $t = <STDIN>;
		substr($t, $at, length($hex) / 2) = pack "H*", $hex;
		my $c = 0xffffffff;
		for (unpack "C60", $t) { $c ^= $_;
			$c = $c & 1 ? $c >> 1 ^ 0xedb88320 : $c >> 1 for 1 .. 8 }
		substr($t, 60, 4) = pack "V", $c ^ 0xffffffff; print $t' \
		"$1" "$2" <s.trace >header.trace
}
header 8 63006300
ok "a newer format" usage 4 \
	'format 99 needs an smco-report that reads format 99 or newer' header.trace
header 22 01
ok "features that are not known" usage 4 'that need a newer' header.trace
header 44 b7000000
ok "another architecture" usage 6 'ELF machine 183' header.trace
header 48 01
ok "that made the difference" test_exit 0 smco-report header.trace
no_permission() {
	cp s.trace secret.trace && chmod 0 secret.trace || return 1
	chmod 755 . # for the other user
	test_exit 8 setpriv --reuid=65534 --clear-groups \
		"$BUILD/smco-report" secret.trace >out 2>err ||
		{ cat err && return 1; }
	[ ! -s out ] && grep -q 'secret.trace: Permission denied' err
}
if prereq_ROOT 2>/dev/null && setpriv --reuid=65534 --clear-groups test -x \
	"$BUILD/smco-report"; then
	ok "no permission" no_permission
fi

mkdir none some
no_default() { (cd none && usage 9 'no \*.trace here'); }
ok "no trace in the directory" no_default
newest() {
	cp s.trace some/old.trace
	cp text.txt some/not-a-trace
	sleep 0.02
	cp s.trace "some/new one.trace"
	touch -d '1 hour ago' some/old.trace
	(cd some && smco-report) >out &&
		grep -q "smco-report 'new one.trace'" out
}
ok "the newest trace by default" newest

help() { smco-report --help | grep -q -- --json && smco-report -h | grep -q usage; }
ok "help" help
version() { smco-report -V | grep -qx "smco-report ${SMCO_VERSION:-[0-9.]*}"; }
ok "version" version
help_full() { test_exit 1 smco-report --help >/dev/full; }
ok "help to a full disk" help_full

plain() {
	smco-report --width 80 s.trace >out || return 1
	sed -i -e 's/^session .*/session    (when)/' \
		-e "s/^trace .*smco-report.*/trace      (size) smco-report 'it'\\\\''s.trace'/" out
	diff -u "$SRC/t/golden/summary-80.txt" out
}
ok "the summary" plain
stdin() {
	# From a pipe: read once, to its end.
	# shellcheck disable=SC2002
	cat s.trace | smco-report --width 80 - >out2 || return 1
	grep -v '^session\|^trace' out >out1
	grep -v '^session\|^trace' out2 | diff -u out1 -
}
ok "from a pipe" stdin
full() { test_exit 1 smco-report s.trace >/dev/full 2>err && grep -q 'No space' err; }
ok "to a full disk" full
json_full() { test_exit 1 smco-report --json s.trace >/dev/full 2>err && grep -q 'No space' err; }
ok "JSON to a full disk" json_full
top() {
	smco-report --top 1 s.trace >out && grep -q '^1 ' out &&
		! grep -q '^2 ' out && grep -q '3 more sites' out
}
ok "--top" top
frames() {
	smco-report --frames 2 --top 2 s.trace >out &&
		grep -q 'handle_request  src' out &&
		! grep -q 'main  *src' out && grep -q '1 more (--frames)' out
}
ok "--frames" frames
ascii() { LC_ALL=C smco-report s.trace >out && ! LC_ALL=C grep -q '[^ -~]' out; }
ok "ASCII outside UTF-8" ascii
esc=$(printf '\033')
color() {
	smco-report --color always s.trace | grep -q "$esc" &&
		! smco-report s.trace | grep -q "$esc" &&
		! smco-report --color never s.trace | grep -q "$esc"
}
ok "--color" color
json() { smco-report --json s.trace >out && [ "$(head -c 1 out)" = '{' ] && [ "$(tail -n 1 out)" = '}' ]; }
ok "--json" json

# cut -> what is left is shown, and what is missing said
cut_short() {
	head -c 800 s.trace >cut.trace
	test_exit 10 smco-report cut.trace >out 2>err || return 1
	grep -q '^smco-report: cut.trace has no end: ' err || return 1
	[ "$(wc -l <err)" = 1 ] && grep -q 'the trace has no end' out
}
ok "a trace that was cut" cut_short
damaged() {
	cp s.trace bad.trace
	printf 'oops' | dd of=bad.trace bs=1 seek=240 conv=notrunc status=none
	test_exit 11 smco-report bad.trace >out 2>err || return 1
	grep -q '^smco-report: bad.trace is damaged: 1 part skipped' err || return 1
	[ "$(wc -l <err)" = 1 ] && grep -q 'the trace is damaged: 1 part' out
}
ok "a damaged trace" damaged
# What went with its last records is not said to be otherwise.
end_damaged() {
	cp s.trace bad.trace
	printf 'oops' | dd of=bad.trace bs=1 seek=$(($(stat -c %s s.trace) - 150)) \
		conv=notrunc status=none
	test_exit 11 smco-report bad.trace >out 2>err || return 1
	cat out
	grep -q '^./server.*: ran .*, how it ended is not in the trace' out &&
		grep -q '^coverage   not in the trace' out
}
ok "the end of one that is damaged there is not known" end_damaged

skip() {
	TAP_NR=$((TAP_NR + 1))
	echo "ok $TAP_NR # SKIP $1"
}

# On a terminal: colours and the pager.
prereq_SCRIPT() { script -qec true /dev/null; }
tty_run() { script -qec "$1" /dev/null </dev/null >out 2>&1; }
if prereq_SCRIPT >/dev/null 2>&1; then
	tty_color() { NO_COLOR='' PAGER=cat tty_run "TERM=xterm smco-report s.trace" && grep -q "$esc" out; }
	ok "colours on a terminal" tty_color
	tty_no_color() { NO_COLOR=1 PAGER=cat tty_run "smco-report s.trace" && ! grep -q "$esc" out; }
	ok "NO_COLOR" tty_no_color
	pager() { PAGER='sed s/^/P:/' tty_run "smco-report s.trace" && grep -q '^P:overhead' out; }
	ok "pager on a terminal" pager
	no_pager() { PAGER='sed s/^/P:/' tty_run "smco-report --no-pager s.trace" && ! grep -q '^P:' out; }
	ok "--no-pager" no_pager
	early() { PAGER='head -n 1' tty_run "smco-report s.trace" && [ "$(wc -l <out)" = 1 ]; }
	ok "leaving the pager early is no error" early
	bad_pager() { PAGER=/nonexistent tty_run "smco-report s.trace" && grep -q nonexistent out && grep -q '^overhead' out; }
	ok "without the pager the text is shown, and that it does not exist" bad_pager
else
	skip "script(1) cannot make a terminal here"
fi

man_page() {
	MANWIDTH=80 man --warnings -l "$SRC/reports/smco-report.1" >man.out 2>man.err &&
		[ ! -s man.err ] && grep -q 'EXIT STATUS' man.out
}
if command -v man >/dev/null; then
	ok "the man page formats" man_page
else
	skip "no man(1) here"
fi
options_documented() {
	local o
	for o in $(smco-report --help | grep -o -- '--[a-z-]*' | sort -u); do
		sed 's/\\-/-/g' "$SRC/reports/smco-report.1" | grep -q -- "$o" ||
			{ echo "$o is not in the man page" && return 1; }
	done
}
ok "every option is in the man page" options_documented

if prereq_PTRACE >/dev/null 2>&1; then
	quoted() {
		smco-trace -q -o quoted.trace -- sh -c 'exit 3' "it's" '' >out
		smco-report quoted.trace | head -n 1 |
			grep -qF "sh -c 'exit 3' 'it'\\''s' '': ran" &&
			smco-report --json quoted.trace | grep -qF '"argv":["sh","-c","exit 3","it'"'"'s",""],' &&
			smco-diff quoted.trace quoted.trace | grep -qF "base       sh -c 'exit 3' 'it'\\''s' '', "
	}
	ok "the command is quoted where a shell needs it, and an array in JSON" quoted
fi

done_testing
