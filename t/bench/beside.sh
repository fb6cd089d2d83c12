#!/bin/bash
# make bench-beside [TARGETS=10] [TURN=1] [TURNS=20] [PAIRS=3] [OPTIONS=]
#	[WORKLOADS="python sqlite redis"]
#
# What a program loses, beside another one that does the same unwatched: the two
# go on in turns of TURN seconds, the other one standing meanwhile (SIGSTOP), so
# that both have the same machine. Then smco-trace leaves (--duration), and they
# go on in as many turns again, neither watched: by where their memory lies two
# runs of one program differ by up to some points, and what these two differ by is
# taken off. All turns of a side count, however long a step takes in them; of
# PAIRS pairs the median, least to most, of the time and of the program's own CPU
# time for a step of its work; and what the two differ by themselves. TARGETS may
# have "none": nobody is watched, which says what a difference means.
# The ledger: what it has spent since the first turn began, of the time in which
# the watched one went on since then, the moments before each turn is measured
# included. What it began with is in neither: there it does other things.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
# shellcheck source=t/bench/workloads.sh
. "$SRC/t/bench/workloads.sh"
# shellcheck source=t/bench/endless.sh
. "$SRC/t/bench/endless.sh"
: "${TARGETS:=none 10}" "${TURN:=1}" "${TURNS:=20}" "${PAIRS:=3}" "${OPTIONS:=}"
: "${WARM:=4500}" "${WORKLOADS:=python sqlite redis}"

# begin NAME WORKLOAD [SUPERVISOR...] - and let it come to where it is steady.
begin() {
	local name=$1 workload=$2
	shift 2
	rm -rf "$name" && mkdir "$name" && cd "$name" || exit 1
	"start_$workload" "$@"
	cd ..
	eval "${name}_runs='$pid $load' ${name}_all='$load $follower $pid $supervisor'"
	others="$others $load $follower $pid $supervisor"
	until [ -e "$name/all" ] && [ "$(wc -l <"$name/all")" -gt 10 ]; do
		sleep 0.1
	done
	sleep 2
	# shellcheck disable=SC2086 # one or two
	kill -STOP $pid $load
}

# turn NAME MARKS - goes on for TURN seconds; "from to" to the file NAME.MARKS, and
# since when it went on, by the clock of the day.
turn() {
	local runs
	eval "runs=\$$1_runs"
	# shellcheck disable=SC2086 # one or two
	perl -MTime::HiRes=time,sleep,clock_gettime,CLOCK_MONOTONIC -e '
		my $for = shift;
		my ($ahead, $began) = (0.05, time); # until its caches are found
		kill CONT => @ARGV;
		sleep $ahead;
		my $from = clock_gettime(CLOCK_MONOTONIC);
		sleep $for;
		printf "%.6f %.6f %.6f\n", $from, clock_gettime(CLOCK_MONOTONIC),
			$began;
		kill STOP => @ARGV' "$TURN" $runs >>"$1.$2"
}

# turns MARKS - of both.
turns() {
	rm -f "plain.$1" "watched.$1"
	for ((i = 0; i < TURNS; i++)); do
		turn plain "$1"
		turn watched "$1"
	done
	turn plain "$1"
}

# leave - until smco-trace has let the watched one go, which stands.
leave() {
	local supervisor all
	eval "all=\$watched_all"
	supervisor=${all##* }
	kill -0 "$supervisor" || fail "smco-trace has left in between"
	while kill -0 "$supervisor" 2>/dev/null; do sleep 0.1; done
	wait "$supervisor" || fail "smco-trace has ended with status $?"
}

end() { # NAME
	local all
	eval "all=\$$1_all"
	# shellcheck disable=SC2086 # not every program has all of them
	{
		kill $all
		kill -CONT $all
		wait $all
	} 2>/dev/null
	pid=''
}

# pair WORKLOAD TARGET - adds to the files ratios and spent.
pair() {
	local watch=() seconds
	seconds=$(perl -e 'print 2 * $ARGV[0] * ($ARGV[1] + 0.3) + 12' \
		"$TURNS" "$TURN")
	# shellcheck disable=SC2206 # options are split
	[ "$2" = none ] ||
		watch=("$BUILD/smco-trace" -q -t "$2" -d "$seconds" -o t.trace
			$OPTIONS --)
	warm
	begin plain "$1"
	begin watched "$1" "${watch[@]}"
	turns marks
	[ "$2" = none ] || leave
	turns own
	end watched
	end plain
	others=''
	perl -e '
	sub rows { open my $f, "<", $_[0] or die; return map { [split] } grep /^\d/, <$f> }
	# The time and the CPU time of a step, in all turns.
	sub rates {
		my ($name, $marks) = @_;
		my @line = rows("$name/all");
		my ($at, $steps, @sum) = (0, 0, 0, 0);
		for (rows("$name.$marks")) {
			my ($from, $to) = @$_;
			$at++ while $at < $#line && $line[$at][0] < $from;
			my $last = $at;
			$last++ while $last < $#line && $line[$last + 1][0] <= $to;
			my $new = ($line[$last][2] // $last) - ($line[$at][2] // $at);
			die "a turn of $name without a step\n" if $new <= 0;
			$steps += $new;
			$sum[$_] += $line[$last][$_] - $line[$at][$_] for 0, 1;
		}
		return map { $_ / $steps } @sum;
	}
	my ($watched, $own) = map {
		my ($marks) = @$_;
		my @plain = rates("plain", $marks);
		my @other = rates("watched", $marks);
		[map { $other[$_] / $plain[$_] } 0, 1];
	} ["marks"], ["own"];
	print join(" ", (map { $watched->[$_] / $own->[$_] - 1 } 0, 1),
		$own->[0] - 1), "\n";' >>ratios || fail "no figures"
	[ "$2" = none ] || perl -MJSON::PP -e '
	my $trace = decode_json(do { local $/; <STDIN> });
	my $start = $trace->{run}{start_real_ns};
	open my $f, "<", "watched.marks" or die;
	my @mark = map { [split] } <$f>;
	# While the other one had its first turn this one stood, and spent nothing.
	my ($before) = reverse grep {
		($start + $_->{time_ns}) / 1e9 <= $mark[0][2]
	} @{$trace->{ledger}};
	my $spent = ($trace->{overhead}{spent_ns} -
		($before ? $before->{spent_ns} : 0)) / 1e9;
	my $ran = 0;
	for (@mark) {
		my ($from, $to) = @$_;
		$ran += 0.05 + $to - $from;
	}
	printf "%.3f\n", 100 * $spent / ($ran - $spent);' \
		< <("$BUILD/smco-report" --json watched/t.trace) >>spent
}

row() { # WORKLOAD TARGET
	perl -e '
	sub cell {
		my @s = sort { $a <=> $b } @_;
		my $mid = @s % 2 ? $s[@s / 2] : ($s[@s / 2] + $s[@s / 2 - 1]) / 2;
		return sprintf "%.1f (%.1f to %.1f)", $mid, $s[0], $s[-1];
	}
	sub rows { open my $f, "<", $_[0] or return; return map { [split] } <$f> }
	my @ratio = rows("ratios");
	my @spent = map { $_->[0] } rows("spent");
	printf "| %s | %s | %s | %s | %s | %s |\n", @ARGV, (map {
		my $k = $_;
		cell(map { 100 * $_->[$k] } @ratio)
	} 0 .. 2), @spent ? cell(@spent) : "-";' "$1" "$2"
}

{
	echo
	echo "## $(date -u +%Y-%m-%d), $(nproc) CPUs, Linux $(uname -r), load $(cut -d' ' -f1 /proc/loadavg): beside one that is not watched"
	echo
	echo "\`smco-trace -t TARGET $OPTIONS\`, $PAIRS pairs, $TURNS turns of $TURN s each."
	echo
	echo "| workload | target % | time % | CPU % | by themselves % | ledger % |"
	echo "| --- | --- | --- | --- | --- | --- |"
} | tee -a "$RESULTS"
for workload in $WORKLOADS; do
	prepare_endless "$workload" || fail "$workload: cannot prepare"
	for target in $TARGETS; do
		rm -f ratios spent
		for ((p = 0; p < PAIRS; p++)); do
			pair "$workload" "$target"
		done
		row "$workload" "$target" | tee -a "$RESULTS"
	done
done
