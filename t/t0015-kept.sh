#!/bin/bash
# What resets of accessed bits and wake-ups cost is measured by the first starts
# only.
. "$(dirname "$0")/test-lib.sh"
prereq_BITS() {
	SMCO_DEBUG=bits smco-trace -q --no-cache -o x.trace -- true 2>&1 |
		grep -q verified
}
need ROOT PTRACE BITS

export SMCO_CACHE_DIR=$SCRATCH/kept SMCO_DEBUG=bits,meter

# measured N OPTION... - a start measures N times; a busy machine may not tell
# what it is to keep, so up to so many are made before
measured() {
	local nr=$1
	shift
	smco-trace -q -o x.trace "$@" -- true 2>err || return 1
	cat err
	test "$(grep -c 'measured:' err)" = "$nr"
}
soon_measured() {
	for _ in $(seq 20); do measured "$@" && return; done
	return 1
}

nr=2 # both
ok "the first start measures" measured $nr
ok "the second as well" measured $nr
ok "later ones do not" soon_measured 0
ok "--no-cache does" measured $nr --no-cache
ok "nor do the next" measured 0
ok "what is kept is text" test "$(grep -c '^bits [0-9]* [0-9]* [0-9]* [0-9]* [0-9]*$' kept/costs)" = 3
sed -i 's/ of ./ of -/' kept/costs
ok "another machine's is not taken" measured $nr

done_testing
