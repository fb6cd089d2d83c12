#!/bin/bash
# make bench-turns [TARGETS=10] [TURN=1] [TURNS=40] [OPTIONS=]
#	[WORKLOADS="many-blocks touch-4g python sqlite redis"]
#
# What a program loses, in one process: where its memory lies makes more of a
# difference between two runs than the target. 100 000 blocks, or 4 GiB, that are
# touched all the time; python3 that builds an index again and again; sqlite3 that
# queries a table of 1 GB, of which a quarter fits into its cache; redis-server
# under a load that never ends.
# In turns of TURN seconds smco-trace, which is attached, works and stands still
# (SIGSTOP). Each turn of work stands beside the two without around it; of these
# ratios the median and the quartiles, of the time and of the program's own CPU
# time. The ledger, of the time at work: all of its run time but the turns in
# which it stood still.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"
: "${TARGETS:=10}" "${TURN:=1}" "${TURNS:=40}" "${OPTIONS:=}"
: "${WORKLOADS:=many-blocks}"

# start_NAME: the program, whose process id is $pid then, and in the file "all"
# how far it is, line by line: monotonic clock, its own CPU time and, where one
# line is not a step, steps.
start_many-blocks() {
	"$BUILD/t/fixtures/many-blocks" 100000 100000000 lines >all &
	pid=$!
}
start_touch-4g() {
	"$BUILD/t/fixtures/touch-4g" 4 100000000 lines >all &
	pid=$!
}
start_python() {
	prepare_python
	/usr/bin/python3 "$SRC/t/bench/index-laps.py" text >all 2>err &
	pid=$!
}
start_sqlite() {
	prepare_sqlite
	# shellcheck disable=SC2094 # it is made by the first command
	[ -e db ] || sqlite3 -batch -init fill.sql db .quit >out
	perl -e 'print "PRAGMA cache_size = -262144;\n";
		for (1 .. 1000000) {
			my $k = $_ * 7919 % 990000;
			printf "SELECT sum(length(v)) FROM t WHERE k BETWEEN %d AND %d;\n",
				$k, $k + 2000;
		}' >queries.sql
	sqlite3 -batch db <queries.sql >out 2>err &
	pid=$!
	follow syscr &
	follower=$!
}
start_redis() {
	prepare_redis
	./redis-server --port "$REDIS_PORT" --save '' --appendonly no \
		--bind 127.0.0.1 --daemonize no >out 2>err &
	pid=$!
	until redis-cli -p "$REDIS_PORT" ping >/dev/null 2>&1; do
		kill -0 $pid || fail "redis-server has ended"
		sleep 0.05
	done
	redis-benchmark -p "$REDIS_PORT" -q -t set -n 50000 -r 50000 -d 10000 \
		-c 20 >>out
	redis-benchmark -p "$REDIS_PORT" -q -l -t set -r 50000 -d 10000 -c 20 \
		>load 2>&1 &
	load=$!
	follow syscw &
	follower=$!
}
load='' follower=''
end_program() {
	# shellcheck disable=SC2086 # not every program has all of them
	{
		kill $load $follower $pid
		wait $load $follower $pid 2>/dev/null
	}
	pid='' load='' follower=''
}

# follow COUNTER - twenty times a second how many system calls of a kind (syscr,
# syscw of /proc/PID/io) $pid has made: its steps.
follow() {
	exec perl -MTime::HiRes=sleep,clock_gettime,CLOCK_MONOTONIC -e '
		my ($pid, $counter) = @ARGV;
		$| = 1;
		sub text { open my $f, "<", "/proc/$pid/$_[0]" or exit; local $/; <$f> }
		for (;; sleep 0.05) {
			my ($steps) = text("io") =~ /^$counter: (\d+)/m;
			my ($ns) = split " ", text("schedstat");
			printf "%.6f %.6f %d\n", clock_gettime(CLOCK_MONOTONIC),
				$ns / 1e9, $steps;
		}' $pid "$1" >all
}

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
	rm -f all
	"start_$1"
	until [ -e all ] && [ "$(wc -l <all)" -gt 10 ]; do sleep 0.2; done
	sleep 2
	# A background job of a script ignores SIGINT.
	# shellcheck disable=SC2086 # options are split
	"$BUILD/smco-trace" -q -t "$2" -o t.trace $OPTIONS -p $pid 2>err &
	local smco=$! end
	sleep 3
	: >marks
	for ((i = 0; i < TURNS; i++)); do
		stand_still $smco
		perl -MTime::HiRes=:DEFAULT,clock_gettime,CLOCK_MONOTONIC -e '
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
	end_program
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
	# The time and the CPU time of a step between $from and $to.
	sub rate {
		my ($from, $to) = @_;
		$at++ while $at < $#line && $line[$at][0] < $from;
		my $last = $at;
		$last++ while $last < $#line && $line[$last + 1][0] <= $to;
		my $steps = ($line[$last][2] // $last) - ($line[$at][2] // $at);
		die "a turn without a step\n" if $steps <= 0;
		return map { ($line[$last][$_] - $line[$at][$_]) / $steps } 0, 1;
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
