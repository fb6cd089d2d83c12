#!/bin/bash
# -m counters: what the kernel counts for the program, all of it and nothing
# else, by thread and interval.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

# get FILE EXPRESSION - of its JSON's counters, in perl: $c is that object, and
# n(NAME) the count of an event.
get() {
	smco-report --json "$1" | perl -MJSON::PP -0777 -e '
		our $c = decode_json(<STDIN>)->{counters}[0];
		sub n { my $w = shift; my @e = @{$c->{events}};
			for (0 .. $#e) { return $c->{counts}[$_]{count}
				if $e[$_]{name} eq $w } -1 }
		print eval shift, "\n"; die $@ if $@' "$2"
}

# count EVENT ARGUMENTS... - of count-work, without address randomisation.
count() {
	local event=$1
	shift
	setarch -R smco-trace -q -t unlimited -e "$event" -o count.trace -- \
		"$FIXTURES/count-work" "$@" >out 2>err </dev/null || { cat err && return 1; }
	grep -q EXIT-SUCCESS out && get count.trace "n('$event')"
}

# exactly EVENT WANT SLACK ARGUMENTS... - so many more than without the work.
exactly() {
	local event=$1 want=$2 slack=$3 with without
	shift 3
	with=$(count "$event" "$@") && without=$(count "$event" "$1" "$2" 0 0) ||
		return 1
	echo "$event: $with with, $without without, want $want more"
	[ $((with - without - want)) -le "$slack" ] &&
		[ $((with - without - want)) -ge "-$slack" ]
}

# What the threads share is there before they begin (count-work). Left to chance
# is what the kernel does: of a file's pages around one that is touched it maps
# those that nobody has locked that moment, and each of the others is one more
# fault: one or two in one of thirty runs, at the start and in each child.
ok "page faults of one thread" exactly page-faults 20000 8 1 0 20000 0
ok "page faults of 16 threads" exactly minor-faults 16000 16 16 0 1000 0
ok "page faults of 8 children" exactly page-faults 16000 16 0 8 2000 0
ok "none of them major" test "$(count major-faults 2 2 10 0)" -le 4

# Others may take the CPU away meanwhile, which the kernel knows of. A stop of
# ours in a sleep is that sleep's switch for the fixture.
sleeps() {
	local nr taken
	nr=$(count context-switches 4 4 0 500) || return
	taken=$(sed -n 's/ taken$//p' out)
	echo "$nr switches, $taken times taken away"
	[ "$nr" -ge 3990 ] && [ "$nr" -le $((4100 + taken)) ]
}
ok "context switches, without those of our stops" sleeps

several() {
	setarch -R smco-trace -q -t unlimited -e page-faults:u,page-faults:k,page-faults,minor-faults,task-clock \
		-o s.trace -- "$FIXTURES/count-work" 4 0 1000 0 >out || return 1
	get s.trace 'join " ", n("page-faults:u"), n("page-faults:k"), n("page-faults"),
		n("minor-faults"), n("task-clock")' | tee line
	read -r user kernel all minor clock <line
	# The kernel's own faults before a thread first stops are in neither.
	[ "$((all - user - kernel))" -ge 0 ] && [ "$((all - user - kernel))" -le 60 ] &&
		[ "$user" -ge 4000 ] && [ "$kernel" -gt 0 ] && [ "$all" -ge "$minor" ] &&
		[ "$clock" -gt 0 ]
}
ok "user and kernel level add up" several

threads() {
	smco-trace -q -e page-faults -o t.trace -- "$FIXTURES/count-work" 5 3 300 0 >out || return 1
	get t.trace 'join " ", scalar(@{$c->{threads}}),
		scalar(grep { $_->{counts}[0]{count} >= 300 } @{$c->{threads}})' | tee line
	# main, five threads, three children; all but main have touched 300
	[ "$(cat line)" = "9 8" ]
}
ok "each thread and child has its own counts" threads

# Tracepoints and the kernel's own counters would be apart, for what a new
# thread does at first is known of these only; nothing is lost for it.
together='minor-faults,task-clock,sched:sched_switch'
smco-trace --list-events sched:sched_switch | grep -q '^yes' || together='minor-faults,task-clock,page-faults:k'
grouped() {
	local alone
	alone=$(count minor-faults 30 60 10 1) || return 1
	setarch -R smco-trace -q -t unlimited -e "cs,{$together},{minor-faults,cs}:u" -o g.trace -- \
		"$FIXTURES/count-work" 30 60 10 1 >out || return 1
	get g.trace 'join " ", map { "$_->{group}:$_->{name}" } @{$c->{events}}' | tee groups
	get g.trace 'n("minor-faults")' >grouped
	echo "$alone alone, $(cat grouped) in a group"
	[ "$(cat groups)" = "0:cs 1:${together//,/ 1:} 2:minor-faults:u 2:cs:u" ] && [ "$alone" -ge 900 ] &&
		[ $(($(cat grouped) - alone)) -le 16 ] && [ $((alone - $(cat grouped))) -le 16 ]
}
ok "groups as of perf, counted together, lose nothing" grouped
refused_groups() {
	local list
	for list in '{' '{}' '{faults,cs' 'faults}' '{faults}:x' '{faults,{cs}}' '{faults,cs:D}' "{$(seq -s, -f 'r%.0f' 17)}"; do
		smco-trace -q -e "$list" -o no.trace touch started 2>err && return 1
		cat err
		[ "$(grep -c ^smco-trace: err)" = 1 ] && [ ! -e started ] && [ ! -e no.trace ] || return 1
	done
}
ok "what is no group is refused, and nothing started" refused_groups

intervals() {
	smco-trace -q -e task-clock --interval 10ms -o i.trace -- \
		sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' || return 1
	get i.trace 'my ($s) = (0); $s += $_ for @{$c->{series}{scaled}[0]};
		join " ", $c->{interval_ns}, $c->{records} > 3 ? 1 : 0,
		abs($s - n("task-clock")) < 1 ? 1 : 0' | tee line
	[ "$(cat line)" = "10000000 1 1" ]
}
ok "a record at each interval, and their sum is the total" intervals

# by_record FILE EXPRESSION - @r has its records: [tid, values...], and %t
# those of each thread.
by_record() {
	smco-report --juwel "$1" | perl -ne '
		my @f = split; next if $f[0] != 6;
		my ($pid, $nr, $l, $e, $m, @v) = unpack "L2Q3Q16", pack "H*", $f[5];
		push @r, [$f[3], @v[0 .. $nr - 1]];
		push @{$t{$f[3]}}, $r[-1];
		END { print eval $expression, "\n"; die $@ if $@ }
		BEGIN { $expression = shift }' "$2"
}
# A thread's first record has what came before its first instruction, too.
of_events() {
	smco-trace -t unlimited --interval 100:page-faults -e page-faults,task-clock,page-faults:u \
		-o events.trace -- "$FIXTURES/count-work" 3 2 1000 0 >out 2>err || return 1
	cat err
	by_record events.trace 'my ($whole, $odd, $sum) = (0, 0, 0);
		for (values %t) { my ($first, @more) = @$_; my $last = pop @more;
			$odd += $first->[1] < 100 || $first->[1] > 150 if $last;
			$odd += grep { $_->[1] != 100 || !$_->[2] } @more;
			$odd += $last->[1] >= 100 if $last && $last->[1] != 100;
			$whole += grep { $_->[1] >= 100 } @$_;
			$sum += $_->[1] for @$_ }
		join " ", $whole >= 50 && $whole <= 55 ? 1 : $whole, $odd, $sum' | tee line
	read -r whole odd sum <line
	[ "$whole $odd" = "1 0" ] && [ "$sum" = "$(get events.trace 'n("page-faults")')" ] &&
		[ "$(get events.trace '$e = $c->{every}; "$e->{count} $e->{event} $e->{joined}"')" = "100 page-faults 0" ] &&
		grep -q ' records, each 100 page-faults of a thread$' err
}
ok "a record each so many events of a thread, with all counts of that event" of_events
too_fast() {
	smco-trace -q -t unlimited --interval 1:page-faults -e page-faults -o fast.trace -- \
		"$FIXTURES/count-work" 1 0 40000 0 >out || return 1
	by_record fast.trace 'my ($sum, $joined) = (0, 0);
		for (@r) { $sum += $_->[1]; $joined += $_->[1] - 1 }
		join " ", scalar(@r), $sum, $joined' | tee line
	read -r nr sum joined <line
	# A thread's last record was ended by no event.
	[ "$sum" = "$(get fast.trace 'n("page-faults")')" ] && [ "$sum" -ge 40000 ] &&
		get fast.trace '$c->{every}{joined}' | tee told && [ "$(cat told)" -ge "$joined" ] &&
		[ $(($(cat told) - joined)) -le 2 ]
}
ok "where they come too fast none is lost, and how many were joined is said" too_fast

# System calls of ours are in them, some at each stop.
if smco-trace --list-events raw_syscalls:sys_enter | grep -q '^yes'; then
	# A program's exec and a task's first return begin in no call of its own,
	# its last call does not return: of all tasks together as many as not.
	calls_of_all() { # ARGUMENTS...
		local with
		in_calls() { # PROGRAM ARGUMENTS...
			smco-trace -q -t unlimited -e raw_syscalls:sys_enter,raw_syscalls:sys_exit,sched:sched_process_fork \
				"${follow[@]}" -o calls.trace -- "$FIXTURES/count-work" "$@" >out &&
				get calls.trace 'join " ", map { n($_) } qw(raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_process_fork)'
		}
		for with in "6 0 10 3" "0 20 10 3" "3 4 10 3"; do
			read -r -a args <<<"$with"
			in_calls "${args[@]}" | tee line
			read -r enters exits born <line
			[ "$enters" = "$exits" ] && [ "$born" = $((args[0] + args[1])) ] || return 1
		done
	}
	follow=()
	ok "calls of new threads and children, to the first return" calls_of_all
	follow=(--no-follow)
	ok "of new threads alone" calls_of_all
	switches() {
		smco-trace -q -t unlimited -e context-switches,sched:sched_switch,signal:signal_deliver -o switch.trace -- \
			perl -e '$SIG{USR1} = sub {}; for (1 .. 50) { kill USR1 => $$; exit unless fork; wait }' &&
			get switch.trace 'join " ", map { n($_) } qw(context-switches sched:sched_switch signal:signal_deliver)' | tee line
		# SIGCHLD, ignored, is delivered to nobody.
		[[ $(cat line) =~ ^([0-9]+)\ ([0-9]+)\ 50$ ]] && [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
	}
	time_is_no_hit() {
		smco-trace -q -t unlimited -e sched:sched_stat_runtime -o time.trace -- \
			"$FIXTURES/count-work" 2 0 1000 0 >out || return 1
		smco-report --json time.trace | perl -MJSON::PP -0777 -ne '
			my $all = decode_json($_); my $c = $all->{counters}[0]{counts}[0]{count};
			my $other = $all->{overhead}{by_mechanism_ns}{other};
			print "$c ns ran, $other ns charged\n"; exit !($c > 0 && $other < $c)'
	}
	# Where BPF tells which are ours they are not counted, and not said.
	own_part() {
		"$FIXTURES/without" bpf smco-trace -t unlimited -e sched:sched_waking,page-faults -o own.trace -- \
			perl -e '$SIG{USR1} = sub {}; kill USR1 => $$ for 1 .. 50' 2>err || return 1
		tr -s '\n ' '  ' <err | grep -o 'up to [0-9]* stops of ours are in each of [^ ]*' | tee line
		[[ $(cat line) =~ ^"up to "([0-9]+)" stops of ours are in each of sched:sched_waking"$ ]] &&
			[ "${BASH_REMATCH[1]}" -ge 50 ] && [ "${BASH_REMATCH[1]}" -le 60 ] &&
			[ "$(get own.trace '$c->{stops}')" = "$(cat line)" ] &&
			"$FIXTURES/without" bpf smco-trace -t unlimited -e sched:sched_waking,irq_vectors:call_function_single_entry --interval 10ms -o own.trace -- \
				perl -e 'my $i; my $end = time + 2; $i++ while time < $end' 2>err &&
			get own.trace '$c->{stops}' | tee line &&
			grep -q '^up to [1-9][0-9]* stops of ours are in each of sched:sched_waking; up to [1-9][0-9]* readings of ours are in each of irq_vectors:call_function_single_entry$' line &&
			smco-trace -t unlimited -e sched:sched_switch -o own.trace true 2>err && ! grep 'stops of ours' err
	}
	no_readings_part() {
		smco-trace -t unlimited -e irq_vectors:call_function_single_entry,sched:sched_waking --interval 60ms -o own.trace -- \
			perl -e 'my $i; my $end = time + 2; $i++ while time < $end' 2>err && ! grep 'of ours are in' err
	}
	no_part() {
		smco-trace -t unlimited -e sched:sched_waking,cpu-migrations -o own.trace -- \
			perl -e '$SIG{USR1} = sub {}; kill USR1 => $$ for 1 .. 50' 2>err && ! grep 'stops of ours' err
	}
	ok "where they cannot be told from the program's own that is said" own_part
	moved() { # EXPECTED MASK... - it goes to these CPUs, stopped five times
		local want=$1
		shift
		"$FIXTURES/without" bpf smco-trace -q -t unlimited -e cpu-migrations -o moved.trace -- \
			perl -e '$SIG{USR1} = sub {}; for my $m (@ARGV) { syscall 203, 0, 8, pack "Q", $m; kill USR1 => $$ for 1 .. 5 }' "$@" &&
			get moved.trace '"$c->{stops} of " . n("cpu-migrations")' | tee line && grep -Eq "$want" line
	}
	if [ "$(nproc)" -gt 1 ] && taskset -c 0 true 2>err && taskset -c 1 true 2>err; then
		ok "also where they move it" moved '^up to 1[0-9] stops of ours are in each of cpu-migrations of [1-9]' 1 2
		on_one() { FIXTURES=$FIXTURES taskset -c 0 bash -c "$(declare -f get moved); moved '^ of 0$' 1 1"; }
		ok "and not where nobody does" on_one
	fi
	if [ "$(id -u)" = 0 ] && [ -r /sys/kernel/btf/vmlinux ]; then
		ok "where they are not counted nothing is said" no_part
		ok "nor of readings" no_readings_part
	fi
	ok "a statistic of time is not charged as so many hits" time_is_no_hit
	ok "no stops of ours among switches by tracepoint, nor signals that only a tracer sees" switches
fi
if [ "$(id -u)" = 0 ] && smco-trace --list-events timestamp:inode_set_ctime_to_ts | grep -q '^yes'; then
	# An inode is made for whoever asks first: its directory, exe and stat. That
	# may be somebody else (ps, pgrep).
	untouched() {
		local nr
		for _ in 1 2 3 4 5; do
			smco-trace -q -t unlimited -e timestamp:inode_set_ctime_to_ts -o inode.trace -- \
				perl -e 'readlink "/proc/self/exe"; open my $f, "<", "/proc/$$/stat"; exit !<$f>' || return 1
			nr=$(get inode.trace 'n("timestamp:inode_set_ctime_to_ts")')
			echo "$nr inodes"
			[ "$nr" != 3 ] || return 0
		done
		return 1
	}
	ok "what it asks /proc of itself was not asked there before" untouched
fi
if smco-trace --list-events signal:signal_generate | grep -q '^yes'; then
	# Each of these is a stop, of which the kernel would tell us by one more.
	signals_of_its_own() {
		smco-trace -q -t unlimited -e signal:signal_generate -o sig.trace -- \
			perl -e '$SIG{USR1} = sub {}; kill USR1 => $$ for 1 .. 1000' &&
			get sig.trace 'n("signal:signal_generate")' >sent &&
			[ "$(cat sent)" -ge 1000 ] && [ "$(cat sent)" -le 1020 ]
	}
	ok "a stop sends no signal in the program's name" signals_of_its_own
fi

if smco-trace --list-events raw_syscalls:sys_enter | grep -q '^yes'; then
	os_layer() {
		local with without
		calls() { # NUMBER
			smco-trace -q -t unlimited -e os -o os.trace -- \
				perl -e 'for (1 .. shift) { getppid }' "$1" && get os.trace 'n("raw_syscalls:sys_enter")'
		}
		without=$(calls 0) && with=$(calls 5000) || return 1
		echo "$with, $without without"
		[ $((with - without)) -ge 4900 ] && [ $((with - without)) -le 5100 ] &&
			[ "$(get os.trace 'join " ", map { n($_) >= 0 ? 1 : $_ } qw(context-switches cpu-migrations minor-faults major-faults)')" = "1 1 1 1" ] &&
			smco-report --html os.trace -o os.html && grep -q 'raw_syscalls:sys_enter' os.html
	}
	ok "what the operating system does: system calls and more, and strips of them" os_layer

	# Calls by number, of each class as many as of no other: read, close,
	# madvise, getsockname, sched_yield, rt_sigpending, and of those without a
	# list uname and numbers that no call has. Our stops' own are some, as above.
	# Each call is in one class, ours, too.
	classes() {
		local class want n i=0 sum_with=0 sum_without=0
		of_classes() { # EVENTS FACTOR
			smco-trace -q -t unlimited -e "$1" -o class.trace -- \
				perl -e 'my ($f, $nr) = (shift, 0);
				for my $call (0, 3, 28, 51, 24, 127) { $nr += 1000; syscall $call, -1, 0, 0 for 1 .. $f * $nr }
				for my $call (-1, 63, 511, 512, 1500, -9, 63) { syscall $call, -1, 0, 0 for 1 .. $f * 1000 }' "$2" || return 1
			for class in io file memory network wait process other; do
				get class.trace "n('syscalls-$class')"
			done
			get class.trace 'n("raw_syscalls:sys_enter")'
		}
		of_classes os 0 >without && of_classes os 1 >with && paste with without | tee both || return 1
		while read -r want n; do
			i=$((i + 1))
			[ $((want - n - (i < 8 ? i * 1000 : 28000))) -ge -100 ] && [ $((want - n - (i < 8 ? i * 1000 : 28000))) -le 100 ] || return 1
			[ $i -lt 8 ] || [ "$sum_with $sum_without" = "$want $n" ] || return 1
			sum_with=$((sum_with + want)) sum_without=$((sum_without + n))
		done <both
		[ $i = 8 ] || return 1
		# Alone; what is counted besides, to know what it costs, is not shown.
		of_classes syscalls-wait 1 >alone && paste -sd ' ' alone | tee line
		[ "$(get class.trace 'scalar @{$c->{events}}')" = 1 ] || return 1
		[[ $(cat line) =~ ^-1\ -1\ -1\ -1\ 5[0-9]{3}\ -1\ -1\ -1$ ]]
	}
	ok "system calls by class" classes
fi
without_tracefs() { # EVENTS - no tracefs, and nobody who may have one mounted
	unshare -m sh -c 'mount -t tmpfs none /sys/kernel/tracing; mount -t tmpfs none /sys/kernel/debug
		exec setpriv --bounding-set=-sys_admin "$@"' - smco-trace -t unlimited -e "$1" -o os.trace -- true 2>err
}
os_without() {
	without_tracefs os || { cat err; return 1; }
	cat err
	[ "$(get os.trace 'n("minor-faults") >= 0 && n("raw_syscalls:sys_enter") < 0 ? 1 : 0')" = 1 ] &&
		grep -q 'not counted: .*raw_syscalls:sys_enter, syscalls-io, .*, syscalls-other, [^;]*$' err
}
if unshare -m sh -c 'mount -t tmpfs none /sys/kernel/tracing && setpriv --bounding-set=-sys_admin true' 2>/dev/null; then
	ok "and what of it cannot be counted is said" os_without
	os_and_more() {
		without_tracefs os,page-faults,minor-faults || { cat err; return 1; }
		[ "$(get os.trace 'join " ", map { n($_) >= 0 || 0 } qw(task-clock minor-faults page-faults raw_syscalls:sys_enter)')" = "1 1 1 0" ] || return 1
		! without_tracefs os,raw_syscalls:sys_enter && grep -q "event 'raw_syscalls:sys_enter'" err
	}
	ok "others stand beside the set, and what is named has to be there" os_and_more
fi

exec_once() {
	setarch -R smco-trace -q -e page-faults -o e.trace -- \
		sh -c 'exec "$0" 1 0 5000 0' "$FIXTURES/count-work" >out || return 1
	[ "$(get e.trace 'n("page-faults")')" -ge 5000 ]
}
ok "counting goes on across exec" exec_once

attach() {
	local pid smco status
	"$FIXTURES/count-work" 1 0 1000 200000 >out &
	pid=$!
	wait_for 10 sh -c "grep -q '^Threads:.2' /proc/$pid/status"
	wait_for 10 sh -c "[ \$(awk '{print \$10}' /proc/$pid/stat) -gt 1000 ]"
	smco-trace -q -m counters -e page-faults,context-switches -o p.trace -p $pid &
	smco=$!
	wait_for 20 grep -q '^TracerPid:.*[1-9]' /proc/$pid/status &&
		wait_for 20 has_slept $pid $(($(slept $pid) + 1000))
	kill $smco
	wait $smco
	status=$?
	kill $pid
	get p.trace 'join " ", n("page-faults"), n("context-switches") > 100 ? 1 : 0' | tee line
	# What it touched before is not counted.
	read -r faults switched <line
	[ $status = 0 ] && [ "$faults" -lt 50 ] && [ "$switched" = 1 ]
}
slept() { awk '/^voluntary/ { n += $2 } END { print n }' "/proc/$1"/task/*/status; }
has_slept() { [ "$(slept "$1")" -ge "$2" ]; }
ok "attached: since then only" attach

# To open them takes long where there are many threads.
while_it_runs() {
	sleep 100 &
	local pid=$!
	wait_for 10 grep -q sleep "/proc/$pid/comm"
	SMCO_DEBUG=stop smco-trace -q -m counters -d 0.1 -o p.trace -p $pid 2>&1 |
		grep -o 'attached to\|counters of [0-9]* are open' | tee order
	kill $pid
	[ "$(cat order)" = "attached to
counters of $pid are open" ]
}
ok "counters of what is attached to are opened when it runs again" while_it_runs

# Each switch of a thread costs a little more when it is counted. Two that wait
# for each other on one CPU do nothing but switch, in their own time, whatever
# else runs: sleeps take as long as the machine's timers, and are cheap to count
# where these are late.
dear() {
	# shellcheck disable=SC2016 # perl's
	smco-trace -t 1 -e context-switches -o dear.trace -- \
		taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" perl -e '
		pipe my $there, my $ask; pipe my $here, my $answer;
		my $pid = fork() // die;
		for (1 .. 100000) {
			syswrite $ask, "x" if $pid;
			sysread $pid ? $here : $there, my $byte, 1;
			syswrite $answer, "x" if !$pid;
		}' >out 2>err || return 1
	cat err
	get dear.trace 'my $t = $c->{counts}[0];
		join " ", $t->{count} > 100 ? 1 : 0, $t->{count} < 190000 ? 1 : 0,
		$t->{running_ns} < $t->{enabled_ns} ? 1 : 0, $t->{scaled} > $t->{count} ? 1 : 0' | tee line
	[ "$(cat line)" = "1 1 1 1" ] && grep -q 'scaled, counted [0-9.]* %' err
}
ok "where counting costs more than the target it pauses, and says so" dear

both() {
	smco-trace -m counters,nap -o b.trace -- "$FIXTURES/forgetful-server" 4 2 >out 2>err || return 1
	cat err
	grep -q '^counters ' err && grep -q '^unused ' err && grep -q '^1 ' err &&
		get b.trace 'n("minor-faults") > 1000 ? 1 : die'
}
ok "counters and naps in one run" both
alone() {
	smco-trace -m counters -o a.trace -- "$FIXTURES/count-work" 1 1 10 1 >out 2>err || return 1
	cat err
	grep -q '^counters  *task-clock ' err && ! grep -q '^unused ' err &&
		! grep -q 'watched no block' err
}
ok "counters alone say nothing of naps" alone

table() {
	smco-report --counters --csv --where 'event == "page-faults" && count >= 300' t.trace >table || return 1
	cat table
	[ "$(tail -n +2 table | wc -l)" = 9 ] && # all together, and eight
		[ "$(smco-report --counters --csv --thread "$(tail -n 1 table | cut -d, -f 3)" t.trace | wc -l)" = 3 ]
}
ok "smco-report --counters has them by thread" table
# rate_of_part NS - by the time since counting began, and of that by what was
# selected, from NS later.
rate_of_part() {
	local start
	start=$(smco-report --counters --json t.trace | perl -MJSON::PP -0777 -e '
		print decode_json(<STDIN>)->{rows}[0]{start_ns}')
	smco-report --json --from "$((start + $1))ns" t.trace | perl -MJSON::PP -0777 -e '
		my $d = decode_json(<STDIN>);
		my $c = $d->{counters}[0];
		my $s = $c->{counts}[0]{scaled};
		my $by = $c->{derived}[0]{per_second} * ($d->{run}{duration_ns} - $ARGV[0]) / 1e9;
		print "$s, $by\n";
		exit !($ARGV[0] && $s && abs($s - $by) < 1e-9 * $s)' $((start + $1))
}
ok "a rate, since counting began" rate_of_part 0
ok "a rate in a part of the time" rate_of_part 1000000
ok "its columns are in the manual" columns_in_manual counters 10
none() {
	smco-trace -q -t 0 -o nap.trace true
	smco-trace -q -e page-faults -o faults.trace true
	lacks() { # TRACE TABLE MONITOR
		test_exit 9 smco-report "--$2" "$1" >out 2>err && cat err &&
			grep -q "no $2 in the trace.*smco-trace -m $3$" err && [ ! -s out ]
	}
	lacks nap.trace counters counters && lacks nap.trace ranges range &&
		lacks faults.trace naps nap && lacks faults.trace sites nap &&
		smco-report --naps nap.trace faults.trace && smco-report --naps faults.trace nap.trace
}
ok "a trace without what the table is about: how to get it" none

# What the machine does not have.
if smco-trace --list-events CYCLES | grep -q '^no'; then
	missing() {
		smco-trace -e cycles -o m.trace touch started 2>err
		[ $? = 125 ] && cat err && [ ! -e started ] && [ ! -e m.trace ] &&
			grep -q "^smco-trace: 'cycles' .*; there are task-clock, .*--if-available" err
	}
	ok "an event that is not here: what there is, nothing started" missing
	available() {
		smco-trace -e cycles,page-faults --if-available -o v.trace true 2>err
		cat err
		[ "$(get v.trace 'join ",", map { $_->{name} } @{$c->{events}}')" = page-faults ] &&
			grep -q 'not counted: cycles: ' err
	}
	ok "--if-available leaves it out and says so" available
	none() {
		smco-trace -e cycles --if-available -o n.trace touch started 2>err
		[ $? = 125 ] && [ ! -e started ] && cat err && ! grep -q if-available err &&
			grep -q "^smco-trace: nothing is left to count: 'cycles' .*; there are task-clock, " err
	}
	ok "but nothing at all to count is an error" none
fi

# Of one model of CPU and not of another, whichever this machine has.
elsewhere() { # MODEL EVENT
	LIBPFM_FORCE_PMU=$1 smco-trace -e "page-faults,$2" -o e.trace touch started 2>err
	[ $? = 125 ] && cat err && [ ! -e started ] &&
		grep -q "^smco-trace: '$2' is an event of other CPUs than this one: of .*; there are task-clock, .*--if-available" err || return 1
	LIBPFM_FORCE_PMU=$1 smco-trace -e "page-faults,$2" --if-available -o e.trace true 2>err
	cat err
	[ "$(get e.trace 'join ",", map { $_->{name} } @{$c->{events}}')" = page-faults ] &&
		grep -q "not counted: $2: is an event of other CPUs" err
}
ok "an event of another CPU: which ones have it, or left out" elsewhere knl L1D.REPLACEMENT
ok "with a modifier, and of AMD's" elsewhere skl LS_DISPATCH:ld_dispatch:u
# As above, but no CPU has it. NAME, what is said.
misspelt() {
	LIBPFM_FORCE_PMU=knl smco-trace -e "$1" --if-available -o e.trace touch started 2>err
	[ $? = 125 ] && cat err && [ ! -e started ] &&
		grep -qF "smco-trace: unknown event '$1'; $2" err
}
ok "a wrong unit mask of another CPU's event: the nearest" misspelt L1D.REPLACMENT 'nearest: L1D:REPLACEMENT (of other CPUs)'
ok "of a PMU by name" misspelt skl::L1D.REPLACMENT 'nearest: skl::L1D:REPLACEMENT'
ok "a wrong event of another CPU" misspelt retired_instrutions 'nearest: RETIRED_INSTRUCTIONS, '
ok "nothing near: where to look" misspelt skl::foo "see --list-events 'skl::*'"
ok "a wrong PMU" misspelt zen5::CYCLES "no PMU 'zen5'; nearest: amd64_fam17h_zen1, "
ok "part of its name" misspelt zen4::CYCLES "see --list-events 'amd64_fam19h_zen4::*'"
no_pmu() {
	smco-trace -e page-faults,cstate_nowhere/c6/ --if-available -o e.trace true 2>err
	cat err
	grep -q "not counted: cstate_nowhere/c6/: is not here: the kernel has no PMU 'cstate_nowhere' on this machine" err &&
		test_exit 125 smco-trace -e page-faults,cycels --if-available -o e.trace touch started 2>err &&
		grep -q 'nearest:.*CYCLES' err && [ ! -e started ]
}
ok "a PMU that the kernel does not have here, but no wrong name" no_pmu

not_an_interval() {
	local what
	for what in 0:page-faults 10: :page-faults x:page-faults 1X:page-faults -1:page-faults; do
		smco-trace --interval "$what" -e page-faults -o m.trace touch started 2>err
		[ $? = 125 ] && cat err && [ ! -e started ] &&
			grep -q '^smco-trace: --interval: .* is not a number of events' err || return 1
	done
	smco-trace --interval 10:page-fautls -e page-faults -o m.trace touch started 2>err
	[ $? = 125 ] && cat err && [ ! -e started ] && grep -q 'page-faults' err &&
		! smco-trace --interval 10:page-faults -m nap -o m.trace touch started 2>err &&
		cat err && grep -q '^smco-trace: --interval is for counters' err && [ ! -e started ]
}
ok "an interval of no event, of none, of none that there is: nothing started" not_an_interval

no_room() {
	local n
	# What is left out first is what can be done without.
	for n in 32 34 36 38 40 42 44 46 48 52 56 60; do
		(ulimit -Sn $n && ulimit -Hn $n &&
			smco-trace -q -m counters -o f.trace -- true) || return
	done
	(ulimit -Sn 40 && ulimit -Hn 40 &&
		smco-trace -m counters -o f.trace -- "$FIXTURES/count-work" 30 0 10 1000 >out 2>err)
	local status=$?
	cat err
	[ $status = 0 ] && grep -q EXIT-SUCCESS out &&
		grep -q 'not counted: [0-9]* threads\?: .*no file descriptor is left' err
}
ok "threads beyond the limit of files are said, and harmed is nobody" no_room

if command -v perf >/dev/null && perf stat -e page-faults true 2>/dev/null; then
	# The least, median and greatest of five runs of COMMAND...
	five() { for _ in 1 2 3 4 5; do "$@"; done | sort -n | sed -n '1p;3p;5p' | tr '\n' ' '; }
	# A program's strings lie on its stack: how many there are decides what
	# page the frames begin in, and each exec below faults once more or less.
	# So the strings are the same whoever starts it and wherever this is, and
	# this many put the frames in the middle of a page.
	strings=(PATH=/usr/bin:/bin "PADDING=$(printf '%900s' '')")
	cp "$FIXTURES/count-work" "$FIXTURES/exec_by_thread" "$FIXTURES/vfork_exec" .
	by_perf() {
		env -i "${strings[@]}" perf stat -x, -e "$event" -o perf.csv setarch -R "$@" >out 2>&1
		awk -F, '!/^#/ && NF > 3 { print $1 }' perf.csv
	}
	# perf adds some to them.
	env -i "${strings[@]}" perf stat -o /dev/null env -0 >perf.env
	mapfile -d '' -t perf_env <perf.env
	ours() {
		env -i "${perf_env[@]}" "$BUILD/smco-trace" -q -t unlimited "$@"
	}
	same_environment() {
		ours -e page-faults -o c.trace -- env -0 >our.env &&
			cmp perf.env our.env
	}
	ok "perf stat and we start programs in the same environment" same_environment
	by_us() {
		ours -e "$event" -o c.trace -- setarch -R "$@" >out
		get c.trace "n('$event')"
	}
	# same SLACK EVENT COMMAND...
	same() {
		local slack=$1
		event=$2
		shift 2
		local a b
		a=$(five by_perf "$@")
		b=$(five by_us "$@")
		echo "$event: perf stat $a, smco-trace $b"
		# Medians a thousandth apart, or not more than the pages by
		# which runs of one kind differ: here, or on any machine.
		awk -v a="$a" -v b="$b" -v slack="$slack" 'BEGIN {
			split(a, p); split(b, o)
			d = p[2] > o[2] ? p[2] - o[2] : o[2] - p[2]
			exit !(p[1] > 0 && (d <= p[2] / 1000 ||
				(o[1] <= p[3] + slack && p[1] <= o[3] + slack))) }'
	}
	ok "page faults: as perf stat" same 2 page-faults ./count-work 8 8 1000 0
	ok "page faults of programs that threads exec: as perf stat" same 8 page-faults \
		./exec_by_thread 6
	ok "page faults of vfork and exec: as perf stat" same 4 page-faults \
		./vfork_exec 10
	ok "minor faults of a shell's children: as perf stat" same 3 minor-faults \
		sh -c 'for i in 1 2 3 4 5 6 7 8; do /bin/true; ls >/dev/null; done'
else
	TAP_NR=$((TAP_NR + 1))
	echo "ok $TAP_NR # SKIP no perf (linux-perf) to compare with"
fi

# What they need for a thread is there from the start: to get memory for it is
# done by the kernel in interrupts (irq_work) that count as the thread's own.
our_maps() { # ARGUMENTS... - "TYPE FLAGS" of the maps of BPF programs beside it
	smco-trace -q -t unlimited "$@" -o m.trace -- \
		sh -c 'cat /proc/$PPID/fdinfo/*' 2>err |
		awk '$1 == "map_type:" { type = $2 } $1 == "map_flags:" { print type, $2 }'
}
have_memory() { # arrays, per CPU or of perf events as well, and filled hash tables
	our_maps -e task-clock,page-faults,sched:sched_switch >maps &&
		our_maps -m counters,nap,samples >>maps && cat maps err &&
		! grep -vE '^([246]|1) 0x[0-9a-f]*[02468ace]$' maps
}
if [ -n "$(our_maps -e task-clock)" ]; then
	ok "what is kept of new threads takes no interrupt of theirs" have_memory
else
	TAP_NR=$((TAP_NR + 1))
	echo "ok $TAP_NR # SKIP no BPF: $(tail -n 1 err)"
fi

done_testing
