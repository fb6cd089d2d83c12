#!/bin/bash
# The trace of a supervisor that was killed is readable up to its last flush,
# and one that is still being written can be looked at.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"

need PTRACE

smco-trace -q -t 10 -o x.trace -- sleep 60 &
supervisor=$!
has_ledger() {
	smco-report --json x.trace | grep -q '"time_ns":[0-9]*,"run_ns"'
}
command_runs() {
	child=$(ps -o pid= --ppid $supervisor | tr -d ' ') && [ -n "$child" ]
}
ok "the trace has something while the program runs" wait_for 30 has_ledger
ok "the command runs" wait_for 10 command_runs
child=$(ps -o pid= --ppid $supervisor | tr -d ' ')
kill -9 $supervisor
wait $supervisor 2>/dev/null
# shellcheck disable=SC2086 # one pid
kill $child

after() {
	test_exit 10 smco-report x.trace >out || return 1
	cat out
	grep -q '^sleep 60: ran .*how it ended is not in the trace' out &&
		grep -q 'the trace has no end' out &&
		! grep -q damaged out && grep -q '^overhead' out
}
ok "after kill -9 it can be read" after
json() {
	test_exit 10 smco-report --json x.trace >out && grep -q '"truncated":true' out &&
		grep -q '"damaged_chunks":0' out
}
ok "JSON says that it has no end" json

done_testing
