#!/bin/bash
# --list-events: which events there are, and which can be counted here.
. "$(dirname "$0")/test-lib.sh"

list() { smco-trace --list-events "$@" >list 2>err; }

ok "task-clock can be counted" list task-clock
ok "it says so on one line" grep -qE '^yes +task-clock +software: ' list
ok "that is all that matched" test "$(wc -l <list)" = 1

ok "a pattern, in any case" list 'PAGE-f*'
ok "finds by pattern" grep -qE '^yes +page-faults ' list

ok "events of a CPU that is not here" list 'skl::L1D:*'
ok "are listed with what they are" grep -qE '^(yes|no) +skl::L1D:REPLACEMENT +skl: L1D cache' list

# Whichever CPU this is: KNL has no such event.
others() {
	LIBPFM_FORCE_PMU=knl list 'L1D.repl*'
	cat list
	grep -qE '^no +skl::L1D:REPLACEMENT +skl: L1D cache' list &&
		grep -qE '^no +icl::L1D:REPLACEMENT ' list && ! grep -q '^yes' list &&
		[ "$(grep -c '^#.* these are events of other CPUs than this one' list)" = 1 ]
}
ok "what only other CPUs have is listed, too, where nothing here matches" others

own() {
	LIBPFM_FORCE_PMU=skl list 'mem_load_retired.l3*'
	cat list
	[ "$(grep -c ' skl::MEM_LOAD_RETIRED:L3_' list)" = 2 ] &&
		[ "$(grep -c '^\(yes\|no\) ' list)" = 2 ]
}
ok "what this CPU has is found without its name, and no other's then" own

all_hardware_or_reason() {
	list 'instructions'
	cat list
	grep -qE '^yes +INSTRUCTIONS ' list ||
		grep -qE '^# generic: .*(needs hardware counters|may not be counted|in use)' list
}
ok "what cannot be counted has a reason" all_hardware_or_reason

ok "nothing matches: status 125" test_exit 125 list 'no such event'
ok "and it is said" grep -qx "smco-trace: no event matches 'no such event'" err
ok "two patterns: status 125" test_exit 125 list a b
ok "to a full device: fails" test_exit 125 sh -c 'smco-trace --list-events task-clock >/dev/full 2>/dev/null'

tracepoints() {
	mounts=$(grep -c tracefs /proc/mounts)
	list 'sched:sched_switch'
	cat list
	grep -qE '^(yes|no) +sched:sched_switch +tracepoint: prev_comm, .*, next_prio$' list || return 1
	# __data_loc char[] name: no array that is part of it.
	list 'net:net_dev_queue'
	cat list
	grep -qE ' net:net_dev_queue +tracepoint: skbaddr, len, name$' list
}
if [ "$(id -u)" = 0 ]; then
	ok "tracepoints, with tracefs mounted or not" tracepoints
	ok "and no mount is left behind" test "$(grep -c tracefs /proc/mounts)" = "$mounts"
fi

done_testing
