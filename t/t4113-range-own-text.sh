#!/bin/bash
# A program that reads its own text, with a table in it, which sensors change
# while it does: its table is not changed, and its variables' ranges are those of
# what it has read.
# shellcheck source=t/test-lib.sh
. "$(dirname "$0")/test-lib.sh"
need PTRACE
# shellcheck source=t/range-lib.sh
. "$SRC/t/range-lib.sh"

# reads HOW ROUNDS OPTIONS... - with the ranges that it has kept account of
reads() {
	local how=$1 rounds=$2
	shift 2
	test_exit 0 timeout 60 smco-trace -q -m range -o run.trace "$@" -- \
		./own-text "$rounds" >out || return 1
	grep '::' out | sort >truth
	found >found.txt
	compare "$how"
}

for flags in -O0 -O2 "-O2 -fcf-protection"; do
	# shellcheck disable=SC2086 # words
	"${CC:-cc}" -std=gnu11 -g -fno-pie -no-pie -fno-toplevel-reorder $flags \
		-o own-text "$SRC/t/fixtures/range/own-text.c" || exit 1
	ok "$flags: all ranges, no limit" reads exact 2000 -t unlimited
	ok "$flags: nothing else within a limit" reads within 20000 -t 5
done
done_testing
