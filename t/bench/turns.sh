#!/bin/bash
# make bench-turns [TARGETS="none 10"] [TURN=5] [TURNS=12] [OPTIONS=]
#	[WORKLOADS="many-blocks touch-4g"]
#
# What a program loses while it is watched, in one process: by where its memory
# lies two runs of 100 000 blocks differ by ten points, watched or not, and one
# run's first half from its second by some.
# In turns of TURN seconds it is attached to (-p, -d) and left alone. The time for a
# step of its work in a turn, from when it has a tracer until smco-trace has ended,
# beside the mean of those in the two turns around it; so with its CPU time. Of
# these ratios the mean, its standard error, and the median. The ledger: what all
# turns spent of the time that they took beyond that. TARGETS may have "none": then
# nobody attaches, which says what a difference means.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"
# shellcheck source=t/bench/endless.sh
. "$SRC/t/bench/endless.sh"
: "${TARGETS:=none 10}" "${TURN:=5}" "${TURNS:=12}" "${OPTIONS:=}"
: "${WARM:=4500}" "${WORKLOADS:=many-blocks}"

# monotonic [PID] - what time it is; when PID has a tracer.
monotonic() {
	perl -MTime::HiRes=sleep,clock_gettime,CLOCK_MONOTONIC -e '
		my ($pid) = @ARGV;
		sub traced {
			open my $f, "<", "/proc/$pid/status" or exit 1;
			return grep /^TracerPid:\s*[1-9]/, <$f>;
		}
		sleep 0.0005 until !$pid || traced();
		printf "%.6f\n", clock_gettime(CLOCK_MONOTONIC)' "$@"
}

# watch TARGET - for a turn, "from to" to the file marks.
watch() {
	local from smco
	# shellcheck disable=SC2086 # options are split
	"$BUILD/smco-trace" -q -t "$1" -d "$TURN" -o t.trace $OPTIONS -p "$pid" \
		2>err &
	smco=$!
	from=$(monotonic "$pid")
	wait $smco || fail "smco-trace has left with status $?"
	echo "$from $(monotonic)" >>marks
}
# What it spent in that turn, and how long the program ran in it.
note_spent() {
	"$BUILD/smco-report" --json t.trace 2>err | perl -MJSON::PP -0777 -e '
		my $total = decode_json(<STDIN>)->{overhead};
		print "$total->{spent_ns} $total->{run_ns}\n"' >>spent ||
		fail "no report"
}

# turns WORKLOAD TARGET - "from to" of each turn in the file marks.
turns() {
	rm -f all marks spent
	warm
	"start_$1"
	others="$load $follower"
	until [ -e all ] && [ "$(wc -l <all)" -gt 10 ]; do sleep 0.2; done
	sleep 2
	for ((i = 0; i <= TURNS; i++)); do
		echo "$(monotonic) $(sleep "$TURN" && monotonic)" >>marks
		[ $i -lt "$TURNS" ] || break
		if [ "$2" = none ]; then
			echo "$(monotonic) $(sleep "$TURN" && monotonic)" >>marks
		else
			watch "$2"
			note_spent
		fi
	done
	# shellcheck disable=SC2086 # not every program has all of them
	{
		kill $pid $others
		wait $pid $others
	} 2>/dev/null
	pid='' others=''
}

# row WORKLOAD TARGET - from marks, all and spent.
row() {
	perl -e '
	sub rows { open my $f, "<", $_[0] or return; return map { [split] } grep /^\d/, <$f> }
	my ($workload, $target) = @ARGV;
	my @line = rows("all");
	pop @line; # cut short
	my $at = 0;
	# The CPU time and the steps at $when, between two lines in proportion.
	sub at {
		my ($when) = @_;
		$at++ while $at < $#line - 1 && $line[$at + 1][0] <= $when;
		my ($a, $b) = @line[$at, $at + 1];
		my $part = ($when - $a->[0]) / ($b->[0] - $a->[0]);
		my @steps = ($a->[2] // $at, $b->[2] // $at + 1);
		return ($a->[1] + $part * ($b->[1] - $a->[1]),
			$steps[0] + $part * ($steps[1] - $steps[0]));
	}
	my @rate = map {
		my ($from, $to) = @$_;
		my @a = at($from);
		my @b = at($to);
		die "a turn without a step\n" if $b[1] <= $a[1];
		[($to - $from) / ($b[1] - $a[1]), ($b[0] - $a[0]) / ($b[1] - $a[1])];
	} rows("marks");
	my @cell;
	for my $k (0, 1) {
		my @x = sort { $a <=> $b } map {
			200 * $rate[2 * $_ + 1][$k] / ($rate[2 * $_][$k] +
				$rate[2 * $_ + 2][$k]) - 100
		} 0 .. $#rate / 2 - 1;
		my ($sum, $square) = (0, 0);
		$sum += $_ for @x;
		my $mean = $sum / @x;
		$square += ($_ - $mean) ** 2 for @x;
		push @cell, sprintf "%.1f ± %.1f (%.1f)", $mean,
			@x > 1 ? sqrt($square / (@x - 1) / @x) : 0, $x[$#x / 2];
	}
	my ($spent, $run) = (0, 0);
	for (rows("spent")) {
		$spent += $_->[0];
		$run += $_->[1];
	}
	printf "| %s | %s | %d | %s | %s | %s |\n", $workload, $target, $#rate / 2,
		@cell, $run ? sprintf("%.1f", 100 * $spent / ($run - $spent)) : "-";
	' "$1" "$2"
}

{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r), load $(cut -d' ' -f1 /proc/loadavg): watched and left alone in turns"
	echo
	echo "\`smco-trace -t TARGET $OPTIONS\`, every other $TURN s."
	echo
	echo "| workload | target % | turns | time %, mean ± error (median) | CPU time % | ledger % |"
	echo "| --- | --- | --- | --- | --- | --- |"
} | tee -a "$RESULTS"
for workload in $WORKLOADS; do
	prepare_endless "$workload" || fail "$workload: cannot prepare"
	for target in $TARGETS; do
		turns "$workload" "$target"
		row "$workload" "$target" | tee -a "$RESULTS"
	done
done
