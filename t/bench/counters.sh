#!/bin/bash
# make bench-counters [REPS=5] [SECONDS_EACH=4] [RESULTS=file]
#
# What it costs to read 8 events of 32 busy threads every 10 ms: the CPU time of
# smco-trace attached to them for some seconds, less that of one which reads them
# 20 times a second (as it does to see whether it has to pause), for 100 readings
# a second, as a share of what the machine's CPUs have. Counted work, so that it
# means something on a busy machine, too; each pair one after the other.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${REPS:=5}" "${SECONDS_EACH:=4}"
events=task-clock,minor-faults,major-faults,context-switches,cpu-migrations,page-faults:u,alignment-faults,emulation-faults

# cpu INTERVAL - milliseconds of CPU time
cpu() {
	perl -e 'my ($build, $pid, $events, $interval, $for) = @ARGV;
		system("$build/smco-trace", "-q", "-t", "unlimited", "-e", $events,
			"--interval", $interval, "-d", $for, "-o", "c.trace",
			"-p", $pid) and die "smco-trace";
		my @t = times; printf "%.0f\n", ($t[2] + $t[3]) * 1e3' \
		"$BUILD" $pid "$events" "$1" "$SECONDS_EACH"
}

"$BUILD/t/fixtures/many_threads" 32 run >ready &
pid=$!
until grep -q ready ready; do sleep 0.1; done
for ((i = 0; i < REPS; i++)); do
	often=$(cpu 10ms) && seldom=$(cpu 1h) || exit 1
	echo "$often $seldom"
done >pairs
{
	echo
	echo "## Counting, $(date +%F), $(nproc) CPUs, $(uname -sr)"
	echo
	echo "8 events of 32 busy threads, read every 10 ms, $REPS pairs of $SECONDS_EACH s:"
	echo
	echo "| | median |"
	echo "| --- | --- |"
	awk -v s="$SECONDS_EACH" '{ print ($1 - $2) * 1e3 / (s * 80) }' pairs | sort -n |
		awk -v cpus="$(nproc)" '{ us[NR] = $1 } END {
			m = us[int((NR + 1) / 2)]
			printf "| one reading of all | %.0f µs |\n| share of the CPUs | %.2f %% |\n", m, m / 1e4 * 100 / cpus }'
} | tee -a "$RESULTS"
