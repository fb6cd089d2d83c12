#!/bin/bash
# make bench-counters [REPS=5] [SECONDS_EACH=4] [EVENTS=list] [RESULTS=file]
#
# What it costs to read EVENTS (8) of 32 busy threads every 10 ms: the CPU time
# that smco-trace and its BPF programs, which run in the time of others, take for SECONDS_EACH
# once it has attached to them, less that of one that reads them once an hour, as a share of
# what the machine's CPUs have in that time. The kernel measures its BPF programs meanwhile. Counted work,
# so that it means something on a busy machine, too; each pair one after the
# other. What it takes to start, attach and begin is told beside.
# shellcheck source=t/bench/bench-lib.sh
. "$(dirname "$0")/bench-lib.sh"
: "${REPS:=5}" "${SECONDS_EACH:=4}"
: "${EVENTS:=task-clock,minor-faults,major-faults,context-switches,cpu-migrations,page-faults:u,alignment-faults,emulation-faults}"

# steady INTERVAL - CPU time, µs: of a second of counting, and of all before
steady() {
	perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC,sleep -e '
		my ($pid, $for, $nr_events, @command) = @ARGV;
		my $us = sub {
			my $sum = 0;
			for (glob "/proc/$_[0]/task/*/schedstat") {
				open my $f, "<", $_ or next;
				$sum += (split " ", <$f>)[0] / 1e3;
			}
			$sum;
		};
		my $kernel_us = sub {
			my $sum = 0;
			for (glob "/proc/$_[0]/fdinfo/*") {
				open my $f, "<", $_ or next;
				/^run_time_ns:\s*(\d+)/ and $sum += $1 / 1e3 while <$f>;
			}
			$sum;
		};
		# BPF_ENABLE_STATS, as long as its descriptor is open
		my $none = pack "x128";
		my $stats = syscall 321, 32, $none, 128;
		my $self = fork // die;
		exec @command or die if !$self;
		# Each of the threads has its events, and the session its rest.
		my $nr = 0;
		while ($nr < 32 * $nr_events) {
			sleep 0.1;
			$nr = grep { (readlink // "") =~ /perf_event/ }
				glob "/proc/$self/fd/*";
		}
		sleep 1;
		my ($at, $before) = (clock_gettime(CLOCK_MONOTONIC), $us->($self));
		my $bpf = $kernel_us->($self);
		sleep $for;
		my $took = $us->($self) - $before;
		$bpf = $kernel_us->($self) - $bpf;
		my $s = clock_gettime(CLOCK_MONOTONIC) - $at;
		kill "INT", $self;
		waitpid $self, 0;
		printf "%.0f %.0f %.0f\n", ($took + $bpf) / $s, $before, $bpf / $s' \
		$pid "$SECONDS_EACH" "$nr_events" "$BUILD/smco-trace" -q -t unlimited \
		-e "$EVENTS" --interval "$1" -o c.trace -p $pid
}

nr_events=$(tr , '\n' <<<"$EVENTS" | wc -l)
"$BUILD/t/fixtures/many_threads" 32 run >ready &
pid=$!
until grep -q ready ready; do sleep 0.1; done
for ((i = 0; i < REPS; i++)); do
	often=$(steady 10ms) && seldom=$(steady 1h) || exit 1
	echo "$often $seldom"
done >pairs
# median, least and greatest of a number made of each pair
of_pairs() {
	awk "{ print $1 }" pairs | sort -n | awk -v form="$2" '{ v[NR] = $1 }
		END { printf form, v[int((NR + 1) / 2)], v[1], v[NR] }'
}
cpus=$(nproc)
{
	echo
	echo "## Counting, $(date +%F), $cpus CPUs, $(uname -sr), load $(cut -d' ' -f1 /proc/loadavg)"
	echo
	echo "$EVENTS of 32 busy threads, read every 10 ms, $REPS pairs of $SECONDS_EACH s:"
	echo
	echo "| CPU time | median (spread) |"
	echo "| --- | --- |"
	of_pairs '($1 - $4) / 100' '| each 10 ms | %.0f µs (%.0f to %.0f) |\n'
	of_pairs "(\$1 - \$4) / 1e4 / $cpus" '| share of the CPUs | %.2f %% (%.2f to %.2f) |\n'
	of_pairs "\$4 / 1e4 / $cpus" '| of the CPUs without intervals | %.2f %% (%.2f to %.2f) |\n'
	of_pairs "(\$3 - \$6) / 1e4 / $cpus" '| of that, BPF programs | %.2f %% (%.2f to %.2f) |\n'
	of_pairs '$2 / 1e3' '| start, attach, begin | %.0f ms (%.0f to %.0f) |\n'
} | tee -a "$RESULTS"
