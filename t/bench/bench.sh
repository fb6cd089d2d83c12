#!/bin/bash
# make bench [WORKLOADS="bzip2 redis"] [TARGETS="0 10"] [REPS=7]
#	     [OPTIONS="--mechanism=uffd"] [RESULTS=file]
# make bench WORKLOADS="bzip2 grep grep-cold" OPTIONS="-m range"
#
# Paired runs: each monitored run stands beside one without smco-trace, in
# turns before and after it, and the overhead is the median of the pairs'
# ratios. Prints a table and appends its rows to t/bench/RESULTS.md. Says what
# it measured and never whether that is good: the status is 0 unless a program
# failed to run.
#
# overhead: of the program's own life, from exec to exit, as seen from outside
#	    (redis: of a fixed load's duration)
# 95 %:	    the interval in which the median of ever more pairs would lie, 19 times
#	    in 20, by their order alone (sign test); from six pairs on
# CPU:	    the same of the program's CPU time, which other load on the machine
#	    disturbs less, but which has no part in it of time held in stops
# ledger:   what smco-trace itself says it cost
# longest:  the longest stop that any thread saw in any of the runs, and what
#	    it was for
# extra:    what starting and stopping takes beside that, in seconds
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${WORKLOADS:=bzip2 bunzip2 redis python sqlite small-malloc touch-4g many-blocks dd}"
: "${TARGETS:=0 1 2 5 10 20 50 100}"
: "${REPS:=7}" "${OPTIONS:=}"
NOTES=()
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"

# one WORKLOAD FILE [SUPERVISOR...] - a run; its lap line goes to FILE.
one() {
	local workload=$1 file=$2
	shift 2
	: >lap
	"run_$workload" "$@" || fail "$workload failed: $*"
	[ -s lap ] || fail "$workload: no time was taken"
	cat lap >>"$file"
}

ledger_percent() {
	"$BUILD/smco-report" --json t.trace 2>>err |
		perl -MJSON::PP -e 'local $/; my $d = decode_json(<STDIN>);
			my $p = $d->{overhead}{overhead_ppb};
			printf "%.3f %.1f %s\n", defined $p ? $p / 1e7 : -1,
				$d->{overhead}{longest_stop_ns} / 1e6,
				$d->{meta}{longest_stop} // ""' 2>>err
}

# row WORKLOAD TARGET - from the files native, watched and ledger.
row() {
	perl -e '
	my ($workload, $target) = splice @ARGV, 0, 2;
	sub column { my ($file, $nr) = @_; open my $f, "<", $file or die;
		return map { (split)[$nr] } <$f> }
	sub median { my @s = sort { $a <=> $b } @_;
		return @s % 2 ? $s[@s / 2] : ($s[@s / 2] + $s[@s / 2 - 1]) / 2 }
	my @n = column("native", 0); my @w = column("watched", 0);
	my @total = column("watched", 1);
	my @over = sort { $a <=> $b } map { 100 * ($w[$_] / $n[$_] - 1) } 0 .. $#n;
	my $within = "-"; # the largest rank with a tail of at most 2.5 %
	my ($tail, $ways, $rank) = (0, 1, 0);
	while (($tail += $ways / 2 ** @over) <= 0.025) {
		$ways *= (@over - $rank) / ($rank + 1);
		$rank++;
	}
	$within = sprintf "%.1f to %.1f", $over[$rank - 1], $over[@over - $rank]
		if $rank;
	my @extra = map { $total[$_] - $w[$_] } 0 .. $#w;
	my @peak_n = column("native", 2); my @peak_w = column("watched", 2);
	my $vsz = median(@peak_n) ? sprintf "%+.1f", 100 *
		(median(@peak_w) / median(@peak_n) - 1) : "-";
	my $ledger = median(column("ledger", 0));
	$ledger = $ledger < 0 ? "unknown" : sprintf "%.2f", $ledger;
	open my $f, "<", "ledger" or die;
	my ($longest) = sort { $b->[1] <=> $a->[1] } map { chomp; [split / /, $_, 3] } <$f>;
	my $rss = median(column("watched", 3));
	my @cpu_n = column("native", 4); my @cpu_w = column("watched", 4);
	my $cpu = !grep({ $_ == 0 } @cpu_n) ? sprintf "%.2f", median(map { 100 *
		($cpu_w[$_] / $cpu_n[$_] - 1) } 0 .. $#cpu_n) : "-";
	printf "| %s | %s | %.2f | %.2f | %.2f | %s | %.1f to %.1f | %s | %s | %.2f | %s | %s | %.1f %s |\n",
		$workload, $target, median(@n), median(@w), median(@over),
		$within, $over[0], $over[-1], $cpu, $ledger, median(@extra), $vsz, $rss ? sprintf "%.1f", $rss / 1024 : "-",
		$longest->[1], $longest->[2];
	' "$1" "$2"
}

cpu=$(sed -n 's/^model name\t: //p;T;q' /proc/cpuinfo)
{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs ($cpu), Linux $(uname -r)"
	echo
	echo "\`smco-trace -t TARGET $OPTIONS\`, $REPS pairs each, medians."
	echo
	echo "| workload | target % | native s | monitored s | overhead % | 95 % | spread % | CPU % | ledger % | extra s | VSZ % | smco MB | longest ms |"
	echo "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
} | tee -a "$RESULTS"

for workload in $WORKLOADS; do
	"prepare_$workload" || fail "$workload: cannot prepare"
	one "$workload" /dev/null # warm caches
	for target in $TARGETS; do
		rm -f native watched ledger
		# shellcheck disable=SC2206 # OPTIONS is a list of words
		supervisor=("$BUILD/smco-trace" -q -t "$target" -o t.trace
			$OPTIONS --)
		for ((rep = 0; rep < REPS; rep++)); do
			[ $((rep % 2)) -eq 1 ] || one "$workload" native
			one "$workload" watched "${supervisor[@]}"
			ledger_percent >>ledger
			[ $((rep % 2)) -eq 0 ] || one "$workload" native
		done
		row "$workload" "$target" | tee -a "$RESULTS"
	done
done
[ -n "$group" ] || NOTES+=("beside all other work on the machine")
for note in "${NOTES[@]}"; do
	printf '\n%s\n' "$note"
done | tee -a "$RESULTS"
