#!/bin/bash
# The disk with the trace is full in the middle of the run: the program goes
# on, it is said once, and what was written stays readable.
. "$(dirname "$0")/test-lib.sh"
prereq_MOUNT() { unshare -m mount -t tmpfs none /mnt; }
need PTRACE ROOT MOUNT

mkdir small
export FIXTURES
# The mount is this script's alone. A page is soon full, as counting has no need to
# pause.
# shellcheck disable=SC2016
unshare -m sh -c 'mount -t tmpfs -o size=4k none small || exit 99
	smco-trace -t unlimited -m nap,counters --interval 1ms -o small/t -- "$FIXTURES/forgetful-server" 3 \
		>out 2>err
	echo $? >status
	smco-report small/t >report 2>report.err
	echo $? >report.status
	smco-report --json small/t >report.json'
ok "the mount worked" test -s status
ok "the command's own status" test "$(cat status)" = 0
ok "its output" grep -q '^handled' out
ok "said, and once" test "$(grep -c 'No space left' err)" = 1
ok "by smco-trace" grep -q '^smco-trace: .*No space left' err
ok "the report works with what is there" sh -c 'cat report.err; [ -s report ]'
ok "and as JSON" perl -MJSON::PP -e 'local $/; decode_json(<STDIN>)' \
	<report.json

# No file may be larger (ulimit -f), neither the trace nor what is shared with the
# program.
may_be() {
	local kib said
	for kib in 1 100; do
		# shellcheck disable=SC2016 # the shell's own
		said=$(
			sh -c 'ulimit -f $1; shift; exec "$@"' sh $kib \
				smco-trace -q -t 10 -m nap,counters -o small.trace -- \
				sh -c 'sleep 0.2; echo here; exit 7' 2>&1
			echo $?
		)
		echo "$said"
		[ "$(echo "$said" | grep -cx 'here\|7')" = 2 ] || return
	done
}
ok "files may not be as large as ours: the command is not ended" may_be

done_testing
