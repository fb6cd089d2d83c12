#!/bin/bash
# make bench-samples [PAIRS=10] [RUNS=6] [WORKLOADS="bzip2 python words"]
#	[TURN=100] [CPU=0] [RESULTS=file]
#
# What --sample at -t 2 costs, and how true the shares of functions are that it
# tells; bzip2 -O2, python3 and a program in C++.
#
# Cost: by time and by CPU time, of a run beside the same run without us, both in
# turns of TURN ms on one CPU (t/bench/abreast.c), and what two runs without us
# differ by. Shares: each limited run beside one with 3999 samples a second at any
# cost, all runs together; and how far the even and the odd ones of these
# references are apart, which is what two runs of the program, and chance, differ
# by. (perf's names of functions in stripped files are others.)
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${PAIRS:=10}" "${RUNS:=6}" "${WORKLOADS:=bzip2 python words}"
: "${TURN:=100}" "${CPU:=0}"
HZ=3999 # asked for: as many as the target has room for

prepare() {
	"$SRC/t/bench/mixed-file.pl" "${BENCH_SAMPLES_MB:-24}" >text
	"${CXX:-c++}" -O2 -o words "$SRC/t/bench/words.cc" 2>err || fail "no words"
	# shellcheck disable=SC2034 # for prepare_bzip2
	NOTES=()
	# shellcheck source=t/bench/workloads.sh
	. "$SRC/t/bench/workloads.sh"
	BENCH_BZIP2_MB=${BENCH_SAMPLES_MB:-24} prepare_bzip2
}
command_of() {
	case $1 in
	bzip2) echo ./bzip2 -9c mixed ;;
	python) echo /usr/bin/python3 "$SRC/t/bench/index.py" text ;;
	words) echo ./words text 2 ;;
	esac
}
# sampled TARGET HZ FILE - the supervisor's command line
sampled() { echo "$BUILD/smco-trace" -q -t "$1" --sample "$2" -o "$3" --; }
cost() { # WORKLOAD [SUPERVISOR...] - pairs of runs, to the file "cost"
	local i command
	command=$(command_of "$1")
	shift
	rm -f cost
	for ((i = 0; i < PAIRS; i++)); do
		# shellcheck disable=SC2086 # words
		taskset -c "$CPU" "$BUILD/t/bench/abreast" cost "$TURN" $# "$@" \
			$command >/dev/null 2>err || fail "$command failed"
	done
}
# lost WITHOUT WITH - these columns of "cost" compared, per cent
lost() { awk -v a="$1" -v b="$2" '{ print ($b / $a - 1) * 100 }' cost | median; }
# take FILE TARGET - a run that goes there, as lines "samples module function",
# and what was said of it to the file "said"
take() {
	# shellcheck disable=SC2046 # words
	$(sampled "$2" $HZ s.trace) $(command_of "$w") >/dev/null 2>err ||
		fail "$w failed, sampled"
	"$BUILD/smco-report" --json s.trace | python3 -c '
import json, sys
d = json.load(sys.stdin)
s = d["samples"]
for f in s["functions"]:
    if f["self"]:
        n = int(f["self_ppb"] / 1e9 * s["samples"] + 0.5)
        print(n, f["module"], f["function"], sep="\t")
print("%d %.1f %.2f" % (s["hz"], s["cost_ns"] / 1e3,
      d["overhead"].get("overhead_ppb", 0) / 1e7), file=sys.stderr)' >>"$1" 2>>said
}
shares() { # runs in turns; "ours", "even" and "odd" are what was seen
	local i
	rm -f ours even odd said
	for ((i = 0; i < RUNS; i++)); do
		take even unlimited && take ours 2 && take odd unlimited
	done
}
# median - of the numbers read, and where it lies 19 times in 20 (sign test)
median() {
	sort -n | perl -e 'my @v = map { $_ + 0 } <>; my ($tail, $ways, $rank) = (0, 1, 0);
		while (($tail += $ways / 2 ** @v) <= 0.025) { $rank++; $ways *= (@v - $rank + 1) / $rank }
		printf "%.2f", @v % 2 ? $v[@v / 2] : ($v[@v / 2] + $v[@v / 2 - 1]) / 2;
		printf " (%.2f to %.2f)", $v[$rank - 1], $v[@v - $rank] if $rank'
}
# apart FILES... -- FILES... - samples of both, and the share that differs most
apart() {
	perl -e 'my ($side, %n, @all) = (0);
	for my $file (@ARGV) {
		if ($file eq "--") { $side = 1; next }
		open my $f, "<", $file or die;
		while (<$f>) { my ($nr, $what) = /^(\d+)\t(.*)/; $n{$what}[$side] += $nr; $all[$side] += $nr }
	}
	my ($most, $where) = (0, "none");
	for (keys %n) {
		my $d = abs(100 * ($n{$_}[0] // 0) / $all[0] - 100 * ($n{$_}[1] // 0) / $all[1]);
		($most, $where) = ($d, $_) if $d > $most;
	}
	die "no samples" unless $all[0] && $all[1];
	printf "%d, %d | %.2f (%s)", @all, $most, $where =~ s/.*\t//r =~ s/<.*//r' "$@"
}
prepare
{
	echo
	echo "## Sampling, $(date +%F), $(nproc) CPUs, $(uname -sr)"
	echo
	echo "\`smco-trace -t 2 --sample $HZ\`: $PAIRS pairs of runs abreast, turns of $TURN ms, for the cost: its median and where that lies 19 times in 20"
	echo "(in brackets two without us); $RUNS for the shares, $((2 * RUNS)) of the reference."
	echo
	echo "| workload | cost, % of its time | % of its CPU time | ledger % | Hz at µs a sample | samples, reference's | share that differs most, points | among references |"
	echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
	for w in $WORKLOADS; do
		cost "$w"
		alike=("$(lost 1 2)" "$(lost 3 4)")
		# shellcheck disable=SC2046 # words
		cost "$w" $(sampled 2 $HZ s.trace)
		shares "$w"
		echo "| $w | $(lost 1 2) [${alike[0]}] | $(lost 3 4) [${alike[1]}] | $(awk 'NR % 3 == 2 { print $3 }' said | median) | $(
			awk 'NR % 3 == 2 { print $1 }' said | median) at $(awk 'NR % 3 == 2 { print $2 }' said | median) | $(
			apart ours -- even odd) | $(apart even -- odd | sed 's/.*| //') |"
	done
} | tee -a "$RESULTS"
