#!/bin/bash
# mprotect guards make each system call dear. The budget bounds that: guards
# go when it is spent, and the program makes its calls unseen.
. "$(dirname "$0")/test-lib.sh"

# They begin to stand when there is budget for a while of it.
traced() { # MILLISECONDS
	"$FIXTURES/guard_reads" "$1" >plain &&
		smco-trace --mechanism=mprotect -q -t 10 -o reads.trace -- \
			"$FIXTURES/guard_reads" "$1" >traced &&
		diff plain traced
}
ok "the same result" traced 6000
# How many calls were caught: two stops each.
stops() {
	smco-report reads.trace >report
	cat report
	grep -q "mechanism *mprotect" report || return
	# "1 234 stops, the longest ..."
	n=$(sed -n 's/^ *\([0-9 ]*\) stops, the longest.*/\1/p' report |
		tr -d ' ')
	echo "stops: $n"
	[ "${n:-0}" -ge "$1" ] && [ "${n:-0}" -le "$2" ]
}
# Caught all the time there would be some hundred thousand a second.
# On a busy machine the budget goes into waits for a CPU, and takes longer to save.
at_last() {
	stops 200 600000 || { traced 12000 && stops 200 600000; } ||
		{ traced 24000 && stops 200 600000; }
}
ok "calls were caught for some of the time" at_last

done_testing
