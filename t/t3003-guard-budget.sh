#!/bin/bash
# mprotect guards make each system call dear. The budget bounds that: guards
# go when it is spent, and the program makes its calls unseen.
. "$(dirname "$0")/test-lib.sh"

traced() {
	"$FIXTURES/guard_reads" >plain &&
		smco-trace --mechanism=mprotect -q -t 10 -o reads.trace -- \
			"$FIXTURES/guard_reads" >traced &&
		diff plain traced
}
ok "the same result" traced
few() {
	smco-report reads.trace >report
	cat report
	grep -q "mechanism *mprotect" report || return
	# "1 234 stops, the longest ..."; a million if every call were caught
	n=$(sed -n 's/^ *\([0-9 ]*\) stops, the longest.*/\1/p' report |
		tr -d ' ')
	echo "stops: $n"
	[ "${n:-1000000}" -lt 400000 ]
}
ok "most calls were not stopped" few

done_testing
