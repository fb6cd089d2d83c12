#!/bin/bash
# Variables that optimised programs have nowhere but in what they compare, or in
# the memory that they were read from, arrays in several registers, and what is
# in one register for the whole of its block.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

# computed PROGRAM FLAGS... - all that it says it had
computed() {
	local name=$1
	shift
	"${CC:-cc}" -g -o "$name" "$@" "$SRC/t/fixtures/range/$name.c" || return 1
	"./$name" >plain
	smco-trace -q -m range -t unlimited -o run.trace -- "./$name" >out ||
		return 1
	sort out >truth
	found >found.txt
	cmp plain out && compare exact
}

for level in -O0 -O1 -O2; do
	ok "comparisons, $level" computed compared $level
	ok "what was read, $level" computed read $level
	ok "arrays in registers, $level" computed apart $level
done
if type -P clang >/dev/null; then
	CC=clang
	ok "arrays in registers, clang" computed apart -O2
	for level in -O1 -O2; do
		ok "one register for a block, clang $level" \
			computed scoped $level
	done
fi
done_testing
