#!/bin/bash
# The trace file: its name, the one before, and what cannot be written is said
# before the command starts.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

# unwritable PATTERN FILE
unwritable() {
	local status
	rm -f started
	smco-trace -o "$2" -- touch started >out 2>err
	status=$?
	cat err
	[ $status -eq 125 ] || { echo "status $status" && return 1; }
	[ ! -e started ] || { echo "the command was started" && return 1; }
	[ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "$1" err
}
mkdir dir
: >file
ok "no such directory" unwritable '^smco-trace: .*no-dir/t.*: No such file' \
	no-dir/t
ok "a directory" unwritable '^smco-trace: .*dir: it is a directory' dir
ok "not a directory" unwritable 'file/t: Not a directory' file/t
ok "a pattern's directory" unwritable \
	'^smco-trace: .*no-dir/%p: No such file' no-dir/%p
mkdir touch
ok "a pattern that gives a directory" unwritable 'touch: it is a directory' %n
rmdir touch
ok "a device is not replaced" unwritable 'not a regular file' /dev/null
ok "/dev/null is still a device" test -c /dev/null
touch old-is-dir
mkdir old-is-dir.old
ok "the old one could not be kept" unwritable \
	'old-is-dir.old: that is a directory' old-is-dir
ln -s old-is-dir link
ok "nor beside what a link leads to" unwritable \
	'old-is-dir.old: that is a directory' link
mkdir link.old
rmdir old-is-dir.old
ok "what lies beside the link is in nobody's way" test_exit 0 \
	smco-trace -q -m counters -o link -- true
rm -r old-is-dir* link*
if [ "$(id -u)" != 0 ]; then
	mkdir -m 500 read-only
	ok "no permission" unwritable 'read-only/t: Permission denied' \
		read-only/t
fi

ok "default name" test_exit 0 smco-trace -q -- true
ok "smco.trace is there" test -s smco.trace
cp smco.trace first
ok "once more" test_exit 0 smco-trace -q -- true
ok "the one before is kept" cmp smco.trace.old first
ok "and no more files than these" sh -c '[ "$(ls smco.trace*)" = "smco.trace
smco.trace.old" ]'
cp smco.trace second
ok "a command that is not there" test_exit 127 smco-trace -q -- ./not-there
ok "leaves both" sh -c 'cmp smco.trace second && cmp smco.trace.old first'
ok "and nothing else" sh -c '[ "$(ls smco.trace*)" = "smco.trace
smco.trace.old" ]'

# shellcheck disable=SC2016
ok "%n and %p" test_exit 0 smco-trace -q -m counters -o 'dir/%n.%p.%%' -- \
	sh -c 'echo $$ >pid'
ok "they are the command's" test -s "dir/sh.$(cat pid).%"
mkdir '%n'
ok "what the pattern gives is looked at, not the pattern" test_exit 0 \
	smco-trace -q -m counters -o '%n' -- true
ok "that is where it went" test -s true
ok "-o is relative to where smco-trace was started" test_exit 0 \
	smco-trace -q -o here.trace -- sh -c 'cd dir'
ok "not to where the command went" test -s here.trace

ok "smco-report reads it" sh -c 'smco-report here.trace >report &&
	[ -s report ]'

# Two hundred more are made in a child of smco-trace, to learn what one costs.
its_own_stops() {
	smco-report --json here.trace | perl -MJSON::PP -0777 -ne '
		my $n = decode_json($_)->{overhead}{stops};
		print "$n stops\n";
		exit !($n > 0 && $n < 150)'
}
ok "the stops are the program's" its_own_stops

# Others begin in the same directory while one runs.
beside() { # NUMBER OF OTHERS
	local one status
	smco-trace -o shared.trace -- sh -c 'until [ -e end ]; do sleep 0.02; done
		exit 3' 2>err &
	one=$!
	wait_for 20 test -s shared.trace || return
	for ((; $1; $1)); do
		smco-trace -q -m counters -o shared.trace -- true || return
		set -- $(($1 - 1))
	done
	: >end
	wait $one
	status=$?
	rm end shared.trace*
	cat err
	[ $status -eq 3 ]
}
ok "another begins with the same name" beside 1
ok "each has its own summary, and says where its trace is" eval \
	'grep -q "exited with status 3" err && grep -q "shared.trace.old$" err'
ok "two others begin" beside 2
ok "what is gone is said" eval '! grep -q "exited with" err &&
	grep -q "not at shared.trace any more" err'

done_testing
