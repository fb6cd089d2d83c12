#!/bin/bash
# What our stops are to the kernel is not counted with the program: wake-ups,
# interrupts, RCU, rseq, registers, moves to other CPUs.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

can_be_counted() {
	smco-trace --list-events sched:sched_waking | grep -q '^yes' &&
		command -v perf >/dev/null && perf stat -e sched:sched_waking true 2>perf.err
}
if ! can_be_counted; then
	TAP_NR=$((TAP_NR + 1))
	echo "ok $TAP_NR # SKIP no tracepoints, or no perf (linux-perf) to compare with"
	done_testing
	exit
fi

events=sched:sched_waking,sched:sched_wakeup,sched:sched_switch,ipi:ipi_send_cpu,csd:csd_queue_cpu
events+=,rcu:rcu_utilization,rseq:rseq_update,x86_fpu:x86_fpu_regs_activated,msr:write_msr
events+=,cpu-migrations,context-switches
by_perf() { # ARGUMENTS... - "EVENT COUNT" of each
	env -i setarch -R perf stat -x, -e "$events" -o perf.csv "$FIXTURES/same-work" "$@" &&
		awk -F, '!/^#/ && $1 ~ /^[0-9]+$/ { print $3, $1 }' perf.csv
}
by_us() {
	env -i setarch -R "$BUILD/smco-trace" -q -t unlimited -e "$events" -o c.trace -- \
		"$FIXTURES/same-work" "$@" &&
		"$BUILD/smco-report" --json c.trace | perl -MJSON::PP -0777 -e '
			my $c = decode_json(<STDIN>)->{counters}[0];
			print "$c->{events}[$_]{name} $c->{counts}[$_]{count}\n" for 0 .. $#{$c->{events}}'
}
# What is beside the program's own doing only adds to it: of all runs the least
# of each event.
least() { # FILE - of FILE.all
	perl -ane '$n{$F[0]} = $F[1] if !defined $n{$F[0]} || $n{$F[0]} > $F[1];
		END { print "$_ $n{$_}\n" for sort keys %n }' "$1.all" >"$1"
}
# within SLACK EVENT-PATTERN - what is in both files is the same, but for SLACK
within() {
	join perf us | grep -E "^($2) " | tee both
	awk -v slack="$1" '{ d = $2 - $3 } d > slack || d < -slack { bad = 1 }
		END { exit bad || !NR }' both
}
# same SLACK EVENT-PATTERN ARGUMENTS... - counted the same: in turn, for one who
# works beside them does so for many runs on end.
same() {
	rm -f perf.all us.all
	for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
		by_perf "${@:3}" >>perf.all && by_us "${@:3}" >>us.all || return 1
		least perf
		least us
		[ "$round" -ge 3 ] && within "$1" "$2" && return
	done
	return 1
}
one_each() { # ARGUMENTS...
	by_perf "$@" | sort >perf && by_us "$@" | sort >us
}

all='sched:.*|ipi:.*|csd:.*|rcu:.*|rseq:.*|msr:.*|context-switches|cpu-migrations|x86_fpu:.*'
ok "2000 signals, each of which is a stop, are as for perf stat" same 20 "$all" 2000 0 0 0
ok "and 30 programs, one after the other" same 6 'sched:.*|rseq:.*|x86_fpu:.*|context-switches' 0 0 0 30

# Who else uses the CPU while it sleeps decides whether registers are loaded: so
# in turn, and one pair has to be the same.
a_pair() { # SLACK EVENT-PATTERN ARGUMENTS...
	for _ in 1 2 3 4 5; do
		one_each "${@:3}" || return 1
		within "$1" "$2" && return
	done
	return 1
}
ok "signals and sleeps: moves and registers are as for perf stat" \
	a_pair 60 'cpu-migrations|x86_fpu:.*' 0 0 0 0 300
# A child's first use is one, and its parent's after that, if the child had its
# CPU: where it had another one, as perf stat's often has on an idle machine,
# and so with nobody counting (334 to 416, 429), there is none to be counted.
forks_between() { # FORKS
	for _ in 1 2 3 4 5; do
		one_each 0 "$1" 0 0 || return 1
		join perf us | grep '^x86_fpu:' | tee both
		awk -v forks="$1" '{ most = $2 > 2 * forks ? $2 : 2 * forks }
			$3 < $2 - 60 || $3 > most + 60 { bad = 1 }
			END { exit bad || !NR }' both && return
	done
	return 1
}
ok "forks: registers are no fewer than for perf stat, nor more than there are" forks_between 200
# On one CPU all use the same. And where the kernel has used some of its own in
# a fork (here in one of eight) its parent's are to be loaded in any case.
# Where others have that CPU, too, some of what they take from it falls into our
# stops: one pair in a calm moment has to be the same (it was off by 22 in each).
on_one_cpu() { (
	taskset -cp "$(taskset -cp $$ | grep -o '[0-9]*$')" "$BASHPID" >/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		one_each "${@:3}" || exit 1
		within "$1" "$2" && exit
		sleep 0.5
	done
	exit 1
); }
ok "the same on one CPU, to a few" on_one_cpu 12 'x86_fpu:.*' 0 200 0 0

# Its counters are read by an interrupt of the CPU where it runs. Others send
# some, too, which are counted for us as for perf stat, and more of them the
# more work there is: how many those were is recorded, with who sent them. (What
# is not to be counted is not in the record either, but that it was sent.) Where
# they have a CPU each, some of ours have to be sent, or nothing was asked.
others_interrupts() { # PROGRAM SUPERVISOR - in the program's time: as counted
	perf script -i interrupts.data -F pid,cpu,event,trace | perl -ne '
		BEGIN { ($program, $supervisor) = splice @ARGV, 0, 2 }
		my ($pid, $cpu, $event, $rest) =
			/^\s*(\d+)\s+\[0*(\d+)\]\s+\w+:(\w+):\s*(.*)/ or next;
		if ($event eq "csd_queue_cpu") { # the last one that sends there
			$sent{$1} = $pid == $supervisor if $rest =~ /cpu=(\d+)/;
			$readings++ if $pid == $supervisor && $rest =~ /func=__perf_event_read/;
			next;
		}
		$ours{$cpu} = delete $sent{$cpu} if $event eq "call_function_single_entry";
		$n{$event}++ if $pid == $program && !$ours{$cpu};
		delete $ours{$cpu} if $event eq "call_function_single_exit";
		END { print join(" ", map { $n{$_} // 0 } qw(call_function_single_entry
			call_function_single_exit csd_function_entry)), " ", $readings + 0, "\n" }' "$@"
}
no_readings() {
	local some=irq_vectors:call_function_single_entry,irq_vectors:call_function_single_exit
	some+=,csd:csd_function_entry
	local counts cpus
	mapfile -t cpus < <(taskset -cp $$ | sed 's/.*: //; s/,/\n/g' | awk -F- '{
		for (i = $1; i <= $NF; i++) print i }')
	# Theirs come in spells.
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		perf record -q -a -e "$some,csd:csd_queue_cpu" -o interrupts.data -- sh -c '
			echo $$ >supervisor.pid
			exec taskset -c "$@"' sh "${cpus[0]}" \
			"$BUILD/smco-trace" -q -t unlimited --interval 60ms -e "$some" -o c.trace -- \
			taskset -c "${cpus[-1]}" perl -MTime::HiRes=time -e '
				$| = 1; print "$$\n";
				my $end = time + 0.5; 1 while time < $end' >program.pid || return 1
		read -ra counts < <(others_interrupts "$(cat program.pid)" "$(cat supervisor.pid)")
		smco-report --json c.trace | perl -MJSON::PP -0777 -e '
			my ($least, @others) = @ARGV;
			my $readings = pop @others;
			my @n = map { $_->{count} } @{decode_json(<STDIN>)->{counters}[0]{counts}};
			print "@n, @others of others; $readings readings\n";
			exit($readings < $least || !!grep { $n[$_] > 3 + $others[$_] } 0 .. $#n)' \
			$((${#cpus[@]} > 1 ? 5 : 0)) "${counts[@]}" && return
	done
	return 1
}
ok "nor are readings of counters, which interrupt it" no_readings

# Where both have one CPU, whatever wakes us to look does so in its time. So do
# the timers of others who trace something (13 to 103 signals), which are
# counted for us as for perf stat: how many those were is recorded.
others_signals() { # PROGRAM SUPERVISOR - sent in the program's time to others
	perf script -i signals.data -F pid,trace | perl -ne '
		BEGIN { ($program, $supervisor) = splice @ARGV, 0, 2 }
		my ($current, $target) = /^\s*(\d+).* pid=(\d+)/ or next;
		$n++ if $current == $program && $target != $supervisor;
		END { print $n + 0, "\n" }' "$@"
}
no_timers() {
	local cpu
	cpu=$(taskset -cp $$ | grep -o '[0-9]*$')
	for _ in 1 2 3 4 5; do
		perf record -q -a -e signal:signal_generate -o signals.data -- sh -c '
			echo $$ >supervisor.pid
			exec taskset -c "$0" "$@"' "$cpu" \
			"$BUILD/smco-trace" -q -t unlimited --interval 10ms \
			-e signal:signal_generate -o c.trace -- perl -MTime::HiRes=time -e '
				$| = 1; print "$$\n";
				my $end = time + 1; 1 while time < $end' >program.pid || return 1
		others_signals "$(cat program.pid)" "$(cat supervisor.pid)" >others &&
			smco-report --json c.trace | perl -MJSON::PP -0777 -ne '
			BEGIN { $others = shift }
			my @n = map { $_->{count} } @{decode_json($_)->{counters}[0]{counts}};
			print "@n, $others of others\n";
			exit !!grep { $_ > 3 + $others } @n' "$(cat others)" && return
	done
	return 1
}
ok "nor is what wakes us to read them" no_timers

# One for each child or thread, one for each time that somebody slept.
# In one of five runs.
each() { # BORN ARGUMENTS...
	for _ in 1 2 3 4 5; do
		by_us "${@:2}" >us || return 1
		perl -ane 'BEGIN { $born = shift } $n{$F[0]} = $F[1];
			END { my $left = $n{"rseq:rseq_update"} - $n{"sched:sched_switch"};
				print "rseq_update without switches: $left\n";
				exit(abs($left - $born) > $born / 20) }' "$1" us && return
	done
	return 1
}
if grep -q rseq perf; then
	ok "what a new process has to do is its own" each 200 0 200 0 0
	ok "what a new thread has to do is its own" each 200 0 0 200 0
fi

# A creator goes on before whom it made: it is there first to wait for it, in one
# of five runs.
waits() { # ARGUMENTS...
	for _ in 1 2 3 4 5; do
		by_us "$@" >us || return 1
		grep context-switches us | tee slept
		awk '{ most = $2 } END { exit most < 150 }' slept && return
	done
	return 1
}
ok "who waits for a child sleeps as it does without us" waits 0 200 0 0
ok "who waits for a thread sleeps as it does without us" waits 0 0 200 0

# Where the tracer has its CPU when it goes on, it is taken to an idle one: what
# it has in caches and TLBs of one is then to be fetched and flushed in two.
stays() { # in one of five runs
	local moves
	for _ in 1 2 3 4 5; do
		moves=$(smco-trace -q -t unlimited -e task-clock -o c.trace -- perl -e '
			$SIG{USR1} = sub { };
			my $cpu = pack "L", 0; # getcpu
			my $where = sub { syscall 309, $cpu, 0, 0; unpack "L", $cpu };
			my $moves = 0;
			for (1 .. 1000) {
				select undef, undef, undef, 0.0002;
				my $before = $where->();
				kill USR1 => $$;
				$moves++ if $where->() != $before;
			}
			print "$moves\n"') || return 1
		echo "$moves"
		[ "${moves:-50}" -ge 50 ] || return 0
	done
	return 1
}
ok "a program that stops and sleeps goes on where it was" stays

# Nor does the tracer stay where what ends its sleeps brings it back to.
keeps_off() { # in one of five runs
	local moves
	for _ in 1 2 3 4 5; do
		moves=$(smco-trace -q -t unlimited -e task-clock -o c.trace -- perl -e '
			$SIG{USR1} = sub { };
			my $cpu = pack "L", 0;
			my $where = sub { syscall 309, $cpu, 0, 0; unpack "L", $cpu };
			my $may = pack "Q", 0;
			my $size = syscall 204, 0, 8, $may; # sched_getaffinity
			my @cpus = grep { vec $may, $_, 1 } 0 .. 63;
			my $moves = 0;
			for my $home (@cpus[0, 1]) {
				my $only = pack "Q", 1 << $home;
				for (1 .. 500) {
					syscall 203, 0, 8, $only; # sched_setaffinity
					syscall 203, 0, 8, $may;
					kill USR1 => $$;
					$moves++ if $where->() != $home;
				}
			}
			print "$moves\n"') || return 1
		echo "$moves"
		[ "${moves:-100}" -ge 100 ] || return 0
	done
	return 1
}
if [ "$(nproc)" -gt 1 ] && [ "$(getconf _NPROCESSORS_CONF)" -le 64 ]; then
	ok "nor is it taken from a CPU to which it goes back" keeps_off
fi

# Nor where it forks: while both stop, they are tasks that run, but who leave
# their CPUs. Beside others' work nobody is taken away, and it moves by itself:
# so in turn with runs without us.
forks_moves() {
	"$@" perl -e '
		use POSIX ();
		my $cpu = pack "L", 0;
		my $where = sub { syscall 309, $cpu, 0, 0; unpack "L", $cpu };
		my $moves = 0;
		for (1 .. 200) {
			my $before = $where->();
			my $pid = fork;
			POSIX::_exit(0) unless $pid;
			$moves++ if $where->() != $before;
			waitpid $pid, 0;
		}
		print "$moves\n"'
}
stays_in_forks() {
	local median most
	rm -f moves.ours moves.alone
	for _ in 1 2 3 4 5 6 7; do
		forks_moves >>moves.alone || return 1
		forks_moves smco-trace -q -t unlimited -e task-clock \
			-o c.trace -- >>moves.ours || return 1
	done
	median=$(sort -n moves.ours | sed -n 4p)
	most=$(sort -n moves.alone | tail -n 1)
	echo "# moves in 200 forks: $(paste -sd' ' moves.ours)," \
		"without us $(paste -sd' ' moves.alone)"
	[ "$median" -le $((most + 2)) ]
}
ok "who forks goes on where it was" stays_in_forks

# A thread of ours that wakes up while the command stands, before its first
# instruction, takes the CPU that it stands on, and it begins on another one.
wakes_nobody() {
	strace -o calls -e trace=futex,ptrace,wait4 "$BUILD/smco-trace" -q -o c.trace \
		-e context-switches -- true || return 1
	awk '/PTRACE_EVENT_EXEC/ { stands = 1 }
		stands && /FUTEX_WAKE.* = [1-9]/ { print; woken = 1 }
		stands && /PTRACE_CONT/ { goes = 1; exit }
		END { exit woken || !goes }' calls
}
if command -v strace >/dev/null; then
	ok "no thread of ours is woken while the command stands" wakes_nobody
fi

done_testing
