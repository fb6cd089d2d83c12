#!/bin/bash
# What traces take and how fast they are written, read and reported:
#
#	O=build t/bench/codec.sh
#
# BENCH_EVENTS (100 million) made-up events, BENCH_SECONDS (30) of each program.
# A trace's fixed part, some 400 bytes, counts the more the shorter it is.
# Prints; passes or fails by nothing but what must be exact.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
NOTES=()
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"
EVENTS=${BENCH_EVENTS:-100000000}
SECONDS_EACH=${BENCH_SECONDS:-30}
BENCH=$BUILD/t/bench/codec-bench
# Not a script that starts it, which would be what is measured.
python=$(python3 -c 'import sys; print(sys.executable)')

# What is run under COMMAND...; redis-server gets its load from outside.
bzip2_under() {
	# shellcheck disable=SC2046 # many times
	timeout "$SECONDS_EACH" "$@" ./bzip2 -9c $(printf 'mixed %.0s' {1..50})
}
python3_under() {
	timeout "$SECONDS_EACH" "$@" "$python" -c 'import os
kept = []
while True:
    for d, _, files in os.walk("/usr/lib"):
        kept.append((d, bytearray(20000), files))
        for f in files[:3]:
            try: open(os.path.join(d, f), "rb").read(5000)
            except OSError: pass
        if len(kept) > 2000: del kept[:1000]'
}
redis_under() {
	ln -sf "$(command -v redis-server || command -v redis-check-rdb)" \
		redis-server
	(
		sleep 1
		timeout "$SECONDS_EACH" redis-benchmark -p 7997 -q -n 100000000 \
			-d 9000 -r 10000 -t set,get,lpush
	) &
	timeout $((SECONDS_EACH + 1)) "$@" ./redis-server --port 7997 --save ''
	wait
}
BENCH_BZIP2_MB=20 prepare_bzip2
for program in bzip2 python3 redis; do
	"${program}_under" "$BUILD/smco-trace" -q -t 10 \
		-m nap,counters,range,samples -o $program.trace -- \
		>/dev/null 2>&1 </dev/null
	command -v strace >/dev/null || continue
	"${program}_under" strace -f -q --absolute-timestamps=unix,ns \
		-o log >/dev/null 2>&1 </dev/null
	"$SRC/t/bench/strace-plain.pl" <log >$program-calls.plain
done
echo "As smco-trace -t 10 with all monitors wrote them, ${NOTES[*]}; then all system calls of the same programs:"
"$BENCH" size ./*.trace ./*.plain
echo
echo "$EVENTS made-up events of 24 bytes, $((EVENTS * 24 / 1000000)) MB:"
"$BENCH" speed "$EVENTS" big.trace || exit 1
stat -c '%s' big.trace | awk '{ printf "         %.0f MB\n", $1 / 1e6 }'
perl -e 'use Time::HiRes "time"; my $t = time; system @ARGV;
	my ($u, $s) = (times)[2, 3];
	printf "report   %.1f s, %.1f s of CPU time\n", time - $t, $u + $s' \
	"$BUILD/smco-report" big.trace >report 2>&1
tail -n 1 report
perl -e 'use Time::HiRes "time"; my $t = time; system @ARGV;
	printf "seek     %.2f s to the records of a millisecond in the middle\n",
		time - $t' "$BUILD/smco-report" --events --top 3 --from 1s --to 1001ms \
	big.trace >report 2>&1
tail -n 1 report
