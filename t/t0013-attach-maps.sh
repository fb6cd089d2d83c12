#!/bin/bash
# Attached to, no program stands while its list of mappings is read, which takes
# 40 ms where there are 65 000.
. "$(dirname "$0")/test-lib.sh"
need PTRACE PROCMAP ROOT

pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null' EXIT

# reads OPTION... - it is attached to, and no mappings are read in that stop
reads() {
	SMCO_DEBUG=stop smco-trace -q -d 0.2 -o t.trace "$@" -p "$pid" 2>err ||
		return 1
	grep 'stop\]' err
	sed '/tproc_resume_new: attached to/q' err >attach
	grep -q 'attached to' attach && ! grep -q 'mappings are read' attach
}

"$FIXTURES/many_threads" 20 >out &
pid=$!
wait_for 20 test -s out
ok "naps" reads -m nap
ok "ranges of variables" reads -m range
ok "phases" reads -m counters --phase main
ok "all" reads -m nap,counters,range,samples --phase main
ok "it lives" kill -0 "$pid"

done_testing
