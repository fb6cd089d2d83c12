#!/bin/bash
# make bench-turns [TARGETS=10] [TURN=1] [TURNS=40] [OPTIONS=]
#	[WORKLOADS="many-blocks touch-4g"]
#
# What 100 000 blocks, or 4 GiB, that are touched all the time lose, in one
# process: where its memory lies makes more of a difference between two runs
# than the target.
# In turns of TURN seconds smco-trace, which is attached, works and stands still
# (SIGSTOP). Each turn of work stands beside the two without around it; of these
# ratios the median and the quartiles, of the time and of the program's own CPU
# time. The ledger, of the time at work: all of its run time but the turns in
# which it stood still. Not for programs that allocate all the time: they would
# stand, too, as soon as their buffer is full (t/bench/beside.sh).
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${TARGETS:=10}" "${TURN:=1}" "${TURNS:=40}" "${OPTIONS:=}"
: "${WORKLOADS:=many-blocks}"

start_many-blocks() { "$BUILD/t/fixtures/many-blocks" 100000 100000000 lines >all & }
start_touch-4g() { "$BUILD/t/fixtures/touch-4g" 4 100000000 lines >all & }

# stand_still PID - not while it holds a thread of the program, or has told it to
# stop.
stand_still() {
	for (( ; ; )); do
		kill -STOP "$1" || fail "smco-trace has ended"
		sleep 0.01
		grep -qs "^State:.*[tT] (" "/proc/$pid/task/"*/status ||
			return 0
		kill -CONT "$1"
		sleep 0.01
	done
}

turns() { # WORKLOAD TARGET
	"start_$1"
	pid=$!
	until [ "$(wc -l <all)" -gt 10 ]; do sleep 0.2; done
	sleep 2
	# A background job of a script ignores SIGINT.
	# shellcheck disable=SC2086 # options are split
	"$BUILD/smco-trace" -q -t "$2" -o t.trace $OPTIONS -p $pid 2>err &
	local smco=$! end
	sleep 3
	: >marks
	for ((i = 0; i < TURNS; i++)); do
		stand_still $smco
		perl -MTime::HiRes=sleep,clock_gettime,CLOCK_MONOTONIC -e '
			printf "%.6f ", clock_gettime(CLOCK_MONOTONIC);
			sleep($ARGV[0]);
			printf "%.6f\n", clock_gettime(CLOCK_MONOTONIC)' \
			"$TURN" >>marks
		kill -CONT $smco
		perl -MTime::HiRes=sleep -e 'sleep($ARGV[0])' "$TURN"
	done
	kill -TERM $smco
	wait $smco
	end=$?
	kill $pid
	wait $pid 2>/dev/null
	pid=
	[ $end -eq 0 ] || fail "smco-trace has left with status $end"
}

# row WORKLOAD TARGET - from marks, all and t.trace.
row() {
	grep -v ready all >progress
	"$BUILD/smco-report" --json t.trace >report.json 2>err || fail "no report"
	perl -MJSON::PP -e '
	my ($workload, $target) = @ARGV;
	open my $f, "<", "progress" or die;
	my @line = map { [split] } <$f>;
	pop @line; # cut short
	my $at = 0;
	# The time and the CPU time of a line between $from and $to.
	sub rate {
		my ($from, $to) = @_;
		$at++ while $at < $#line && $line[$at][0] < $from;
		my $last = $at;
		$last++ while $last < $#line && $line[$last + 1][0] <= $to;
		die "a turn without a line\n" if $last == $at;
		return map { ($line[$last][$_] - $line[$at][$_]) / ($last - $at) }
			0, 1;
	}
	open $f, "<", "marks" or die;
	my @still = map { [split] } <$f>;
	my (@with, @without);
	for my $i (0 .. $#still) {
		push @without, [rate(@{$still[$i]})];
		push @with, [rate($still[$i][1], $still[$i + 1][0])]
			if $i < $#still;
	}
	sub quartiles {
		my @s = sort { $a <=> $b } @_;
		return map { 100 * $s[$_ / 4 * $#s] } 1 .. 3;
	}
	my @cell;
	for my $k (0, 1) {
		my @ratio = map { 2 * $with[$_][$k] / ($without[$_][$k] +
			$without[$_ + 1][$k]) - 1 } 0 .. $#with;
		my ($low, $mid, $high) = quartiles(@ratio);
		push @cell, sprintf "%.1f | %.1f to %.1f", $mid, $low, $high;
	}
	open $f, "<", "report.json" or die;
	my $total = decode_json(do { local $/; <$f> })->{overhead};
	my $at_work = $total->{run_ns} / 1e9;
	$at_work -= $_->[1] - $_->[0] for @still;
	my $spent = $total->{spent_ns} / 1e9;
	printf "| %s | %s | %d | %s | %s | %.1f |\n", $workload, $target, scalar @with, @cell,
		100 * $spent / ($at_work - $spent);' "$1" "$2"
}

{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r): in turns"
	echo
	echo "\`smco-trace -t TARGET $OPTIONS\`, every other $TURN s at work."
	echo
	echo "| workload | target % | turns | time % | quartiles | CPU % | quartiles | ledger % |"
	echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
} | tee -a "$RESULTS"
for workload in $WORKLOADS; do
	for target in $TARGETS; do
		turns "$workload" "$target"
		row "$workload" "$target" | tee -a "$RESULTS"
	done
done
