#!/bin/bash
# Elements of arrays on the stack that are changed where they lie.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

# counted COMPILER FLAGS... - all that the program has kept account of
counted() {
	"$@" -g -o counted "$SRC/t/fixtures/range/counted.c" || return 1
	./counted >plain
	smco-trace -q -m range -t unlimited -o run.trace -- ./counted >out ||
		return 1
	sort out >truth
	found >found.txt
	cmp plain out && compare exact
}

for compiler in "${CC:-cc}" clang; do
	type -P "$compiler" >/dev/null || continue
	for level in -O0 -O1 -O2; do
		ok "$compiler $level" counted "$compiler" $level
	done
done
done_testing
