#!/bin/bash
# A process whose signals cost more than the budget has room for is let go for a
# while: it does what it would without us, and is watched again later.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE ROOT

# BPF, in the first PID namespace
if [ "$(readlink /proc/self/ns/pid)" != "pid:[4026531836]" ]; then
	echo "1..0 # SKIP processes have other numbers here"
	exit 0
fi

# fact TRACE NAME - a number of what is said of the session; 0 = it is not.
fact() {
	smco-report --json "$1" | NAME=$2 perl -MJSON::PP -0777 -ne '
		print decode_json($_)->{meta}{$ENV{NAME}} // 0, "\n"'
}

# as_without STATUS OPTIONS - STORMS HOW NUMBER [REST] - the same output and status,
# which the rest is no part of, and let go.
as_without() {
	local status=$1 opts=()
	shift
	while [ "$1" != - ]; do opts+=("$1") && shift; done
	shift
	test_exit "$status" smco-trace -q "${opts[@]}" -o s.trace -- "$@" >got || return
	cmp "$SCRATCH/$2-$3.want" got || return
	echo "let go $(fact s.trace let_go) times, $(fact s.trace signal_stops) stops"
	[ "$(fact s.trace let_go)" -ge 1 ]
}
# few NUMBER - fewer than half of so many stops.
few() {
	smco-report --json s.trace | MOST=$1 perl -MJSON::PP -0777 -ne '
		my $nr = decode_json($_)->{overhead}{stops};
		print "$nr stops\n";
		exit !($nr < $ENV{MOST} / 2)'
}
STORMS=$FIXTURES/storms
# What it does is the same each time.
for storm in "one 50000" "threads 50000" "read 100000" "one 200000" "read 200000"; do
	# shellcheck disable=SC2086 # words
	"$STORMS" $storm >"${storm/ /-}.want" &
done
wait
few_stops() { as_without "$@" && few 100000; }
for t in 0 1 10; do
	soon "each signal comes, in order, -t $t" as_without 5 -t $t - "$STORMS" one 50000
	soon "to each of four threads, -t $t" as_without 5 -t $t - "$STORMS" threads 50000
	soon "a call that waits, most of them without a stop, -t $t" few_stops 5 -t $t - "$STORMS" read 100000
	told
done
ok "with ranges" as_without 5 -t 2 -m range - "$STORMS" threads 50000
ok "with naps and ranges" as_without 5 -t 2 -m nap,range - "$STORMS" one 50000

# What 1500 children are born to, who say what depends on their numbers alone;
# programs say those.
BIRTHS=$FIXTURES/births
"$BIRTHS" fork 1500 0 2>/dev/null | sort >fork.want
ln -s fork.want threads.want
{ seq 0 1499 && echo EXIT-SUCCESS; } | sort >vfork.want
as_births() {
	smco-trace -q -t 0 -o s.trace -- "$BIRTHS" "$1" "$2" 2>/dev/null |
		sort >got
	grep -q EXIT-SUCCESS got && cmp "$1.want" got || return
	[ "$(fact s.trace let_go)" = 1 ] &&
		[ "$(fact s.trace unfollowed_processes)" -ge $(($2 - 10)) ]
}
for how in fork vfork threads; do
	ok "its children, $how" as_births $how 1500
	ok "most of their ends stop nobody, $how" few 1500
done

# All that it and its children do is counted, as the kernel tells of them.
cat >faults.pl <<'E2'
# A child and a rest, by which births are known to happen, then children, then
# itself.
use strict;
for my $i (0 .. $ARGV[0]) {
	select undef, undef, undef, 0.5 if $i == 1;
	my $pid = fork // die;
	exit 0 unless $pid;
	waitpid $pid, 0;
}
my @hold;
push @hold, "x" x 1e6 for 1 .. 20;
sub faults { # of RUSAGE_SELF, RUSAGE_CHILDREN
	my $ru = "\0" x 144;
	syscall(98, $_[0], $ru) == 0 or die;
	return (unpack "q*", $ru)[8];
}
my $children = faults(-1);
print STDERR faults(0) + $children, "\n";
exit 9;
E2
counted() {
	test_exit 9 smco-trace -q -t "$1" -e minor-faults -o s.trace -- \
		perl faults.pl 1500 2>faults || return
	[ "$(fact s.trace let_go)" -ge 1 ] || return
	smco-report --json s.trace | FAULTS=$(cat faults) perl -MJSON::PP -0777 -ne '
		my $d = decode_json($_);
		my $all = 0;
		$all += $_->{counts}[0]{count} // 0 for @{$d->{counters}[0]{threads}};
		print "$all, the kernel says $ENV{FAULTS}\n";
		exit !(abs($all - $ENV{FAULTS}) <= 20)'
}
ok "what is counted" counted 0.01

# begin OPTIONS - PROGRAM - in the background: $smco and, let go, $pid.
begin() {
	local opts=()
	while [ "$1" != - ]; do opts+=("$1") && shift; done
	shift
	rm -f out
	setsid smco-trace -q "${opts[@]}" -o b.trace -- "$@" >out &
	smco=$!
	wait_for 20 grep -q ready out || return
	pid=$(pgrep -P $smco "$(basename "$1")")
	wait_for 20 is_away "$pid"
}
is_away() { grep -q '^TracerPid:.0$' "/proc/$1/status"; }
ended() { ! kill -0 "$1" || is_in Z "$1"; }
is_in() { [ "$(state "$2")" = "$1" ]; }
as_wanted() { cmp "$SCRATCH/read-100000.want" out; }

killed() {
	begin -t 0 - "$STORMS" read 100000 || return
	kill -KILL $smco
	wait $smco
	wait_for 60 ended "$pid"
	as_wanted
}
soon "a killed smco-trace" killed

stopped() {
	begin -t 0 - "$STORMS" read 100000 || return
	kill -STOP "$pid"
	wait_for 20 is_in T "$pid" || return
	pause 0.5
	is_in T "$pid" || return
	kill -CONT "$pid"
	test_exit 5 wait $smco && as_wanted
}
soon "SIGSTOP and SIGCONT" stopped

# ^Z: what is let go stands, and so does smco-trace then.
suspended() {
	rm -f out
	perl -e 'setpgrp(0, 0); exec @ARGV' \
		smco-trace -q -t 0 -o b.trace -- "$STORMS" read 100000 >out &
	smco=$!
	wait_for 20 grep -q ready out || return
	pid=$(pgrep -P $smco storms)
	wait_for 20 is_away "$pid" || return
	kill -TSTP -- -$smco
	wait_for 20 is_in T $smco && is_in T "$pid" || return
	kill -CONT -- -$smco
	test_exit 5 wait $smco && as_wanted
}
soon "the whole job is stopped, and goes on" suspended

ended_by() {
	begin -t 0 - "$STORMS" read 100000 || return
	kill -"$1" "${!2}"
	test_exit "$3" wait $smco
}
soon "a signal ends it" ended_by USR1 pid 138
soon "SIGTERM comes to it" ended_by TERM smco 143

# Attached to: we leave, or it ends.
left() {
	"$STORMS" read 200000 >out &
	pid=$!
	wait_for 20 grep -q ready out
	smco-trace -q "$@" -o s.trace -p $pid || return
	echo "let go $(fact s.trace let_go) times"
	[ "$(fact s.trace let_go)" = 1 ] || return
	! kill -0 $pid 2>/dev/null || untouched $pid || return
	test_exit 5 wait $pid && cmp "$SCRATCH/read-200000.want" out
}
# How it has ended is known, where we were there.
is_known() {
	left -t 0 && smco-report --json s.trace | perl -MJSON::PP -0777 -ne '
		exit(decode_json($_)->{processes}[0]{exit_status} != 5)'
}
told
soon "attached to, and left" left -t 0 -d 1
soon "attached to, until it ends" is_known

# Another program begun meanwhile, and what comes of it.
cat >execs.sh <<'E2'
#!/bin/sh
i=0
while [ $i -lt 1000 ]; do /bin/true; i=$((i + 1)); done
exec perl -e '$x = "y" x 8e6; $SIG{ALRM} = sub { exit 6 }; alarm $ARGV[0];
	sub traced { open F, "/proc/self/status"; grep { /^TracerPid:.*[1-9]/ } <F> }
	select undef, undef, undef, 0.1 until traced;
	alarm 1; 1 while sleep 9' "$1"
E2
# execs TARGET MOST - it is ended a second after it is traced, or after MOST.
execs() {
	test_exit 6 smco-trace -q -t "$1" -o s.trace -- sh "$SCRATCH/execs.sh" "$2" >/dev/null || return
	[ "$(fact s.trace let_go)" -ge 1 ] || return
	smco-report --json s.trace >s.json
	AGAIN=$1 perl -MJSON::PP -0777 -ne '
		my $p = decode_json($_)->{processes}[0];
		print "$p->{command}, unused $p->{unused}{max_bytes}\n";
		exit !($p->{exit_status} == 6 &&
			(!$ENV{AGAIN} || $p->{command} =~ /^perl/))' s.json
}
soon "exec meanwhile" execs 0 2
soon "a program that a script ends with is watched" execs 2 20

# It is watched again: what it did not use before it ended is found.
again() {
	as_without 5 -t 10 - "$STORMS" one 200000 10 || return
	smco-report --json s.trace | perl -MJSON::PP -0777 -ne '
		my $nr = decode_json($_)->{overhead}{naps};
		print "$nr naps\n";
		exit !$nr' || return
	smco-report s.trace | tr -s " \n" " " |
		grep "not for [0-9.]* m\?s: a process was let go [0-9]* times\?, for its signals"
}
soon "it is watched again, and told" again
told

# Counted is what it does meanwhile, and all who are born to it, once. (Where
# counting pauses, for it is dear beside others' work, the numbers are scaled.)
starts() { echo "i=0; while [ \$i -lt $1 ]; do /bin/true; i=\$((i + 1)); done"; }
starts 1500 >starts.sh
{ starts 1000 && echo "exec sh -c '/bin/sleep 2; $(starts 50)'"; } >comes-back.sh
inherited() {
	for _ in 1 2 3 4 5; do
		smco-trace -q -t "$2" -e sched:sched_process_exec,sched:sched_process_fork \
			-o s.trace -- sh "$1" || return
		smco-report --json s.trace | ALL="$3 $4" perl -MJSON::PP -0777 -ne '
			my @c = @{decode_json($_)->{counters}[0]{counts}};
			my @n = map { $_->{count} } @c;
			print "@n\n";
			exit 2 if grep { $_->{running_ns} != $_->{enabled_ns} } @c;
			exit !("@n" eq $ENV{ALL})'
		case $? in
		0) [ "$(fact s.trace let_go)" = 0 ] || return 0 ;;
		1) return 1 ;;
		esac
	done
	return 1
}
ok "programs that it starts are counted" inherited starts.sh 2 1501 1500
ok "those that it starts when it is back, too" inherited comes-back.sh 2 1053 1051

# Who is not to be let go is not.
stays() {
	test_exit 5 smco-trace -q "$@" -o s.trace -- "$STORMS" one 20000 >got || return
	grep -q EXIT-SUCCESS got && [ "$(fact s.trace let_go)" = 0 ]
}
ok "--kill-on-exit" stays -t 0 --kill-on-exit
ok "no limit" stays -t unlimited
ok "--no-follow" stays -t 0 --no-follow
ok "counters that nobody keeps" stays -t 0.01 -e sched:sched_switch

done_testing
