#!/bin/bash
# What judges the naps of other tests: every nap by the block it names.
. "$(dirname "$0")/test-lib.sh"

# A read block that was never quiet for long, and at its address, 10 us after
# it was freed, one that nobody uses.
cat >truth <<'END'
block 0x7000000 8192 read 1000000000 5000000000
block 0x7000000 8192 never 5000010000 0
pause 0x7000000 8192 never 5000010000 3000000000 exit
block 0x8000000 8192 write 1000000000 0
block 0x9000000 8192 write 1000000000 2000000000
block 0xa000000 8192 write 1000000000 0
pause 0xa000000 8192 write 2000000000 1000000000 write 0 300000000
block 0xb000000 8192 write 1000000000 0
pause 0xb000000 8192 write 2000000000 1000000000 write 1000 1000
EXIT-SUCCESS
END

# nap ADDR START_NS LENGTH_NS ALLOC_NS ENDED
nap() {
	printf '{"addr":"%s","size":8192,"start_ns":%s,"length_ns":%s,' \
		"$1" "$2" "$3"
	printf '"alloc_ns":%s,"error_ns":0,"ended":"%s"}' "$4" "$5"
}

# judge [NAP]: besides the one nap that happened. Session time begins at 1 s.
judge() {
	printf '{"start_monotonic_ns":1000000000,"naps":[%s%s]}\n' \
		"$(nap 0x7000000 4000010000 3000000000 4000010000 never)" \
		"${1:+,$1}" >report.json
	perl "$SRC/t/nap-check.pl" --threshold 600 --recall 0.1 --kinds write,never \
		truth report.json >judged
}

ok "what happened is right" judge

# A mechanism that sees no reads: not to be judged, whoever came next.
ok "a nap is its own block's, not that of the next one there" \
	judge "$(nap 0x7000000 2000000000 1999995000 1 freed)"

is_false() {
	! judge "$1" && grep -q ' 1 false' judged
}
ok "a nap of a block in use is false" \
	is_false "$(nap 0x8000000 500000000 700000000 1 write)"
ok "a nap beyond the life of its block is false" \
	is_false "$(nap 0x9000000 1500000000 700000000 1 write)"


# The access at the pause's end took 300 ms: when in these it was, who knows.
judge_loosely() { judge "$1" && grep -q ' 0 of 2 lengths wrong' judged; }
ok "a nap may last into the access that ends it" \
	judge_loosely "$(nap 0xa000000 1000000000 1280000000 1 write)"
is_wrong() { ! judge "$1" && grep -q ' 1 of 2 lengths wrong' judged; }
ok "but no longer" is_wrong "$(nap 0xb000000 1000000000 1280000000 1 write)"

# Where DAMON is at work, not all have to be.
half_is_right() {
	! judge "$1" && cp judged before && perl "$SRC/t/nap-check.pl" --threshold 600 \
		--recall 0.1 --lengths "$2" --kinds write,never truth report.json >judged
}
ok "half of the lengths may be wrong" half_is_right \
	"$(nap 0xb000000 1000000000 1280000000 1 write)" 0.5
more_is_right() { ! half_is_right "$@"; }
ok "no more than that" more_is_right \
	"$(nap 0xb000000 1000000000 1280000000 1 write)" 0.51

done_testing
