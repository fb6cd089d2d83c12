#!/bin/bash
# make bench-samples [REPS=5] [ROUNDS=40000] [RESULTS=file]
#
# What --sample 999 at -t 2 costs a program that computes, and how far the
# shares that it tells are from those of a reference: 3999 samples a second, at
# any cost. Of a program three quarters of whose steps are in one function. The
# cost is the CPU time of the program itself, with and without, run after run,
# so that it means something on a busy machine, too.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${REPS:=5}" "${ROUNDS:=40000}"

# cpu COMMAND... - milliseconds that sample-work, started by COMMAND, was on CPUs
cpu() {
	"$@" bash -c 'TIMEFORMAT="%U %S"; time "$0" "$1" 0 0 >/dev/null' \
		"$BUILD/t/fixtures/sample-work" "$ROUNDS" 2>&1 >/dev/null |
		awk 'NF == 2 { printf "%.0f\n", ($1 + $2) * 1e3 }'
}
# share TRACE - of often(), in per cent of the program's own samples
share() {
	"$BUILD/smco-report" --samples --csv "$1" | tr -d '\r' | awk -F, '
		$3 == "often" { a = $5 } $3 == "often" || $3 == "seldom" { n += $5 }
		END { printf "%.3f\n", 100 * a / n }'
}
for ((i = 0; i < REPS; i++)); do
	plain=$(cpu env) || exit 1
	with=$(cpu "$BUILD/smco-trace" -q -t 2 --sample 999 -o s.trace) || exit 1
	cpu "$BUILD/smco-trace" -q -t unlimited --sample 3999 -o r.trace >/dev/null || exit 1
	echo "$plain $with $(share s.trace) $(share r.trace)"
done | tee runs >&2
{
	echo
	echo "## Sampling, $(date +%F), $(nproc) CPUs, $(uname -sr)"
	echo
	echo "\`smco-trace -t 2 --sample 999\`, $REPS pairs of runs:"
	echo
	echo "| | median | greatest |"
	echo "| --- | --- | --- |"
	awk '{ print ($2 - $1) * 100 / $1 }' runs | sort -n |
		awk '{ v[NR] = $1 } END { printf "| overhead, %% of CPU time | %.2f | %.2f |\n", v[int((NR + 1) / 2)], v[NR] }'
	awk '{ d = $3 - $4; print d < 0 ? -d : d }' runs | sort -n |
		awk '{ v[NR] = $1 } END { printf "| share of a function, points from the reference | %.2f | %.2f |\n", v[int((NR + 1) / 2)], v[NR] }'
} | tee -a "$RESULTS"
