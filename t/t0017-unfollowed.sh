#!/bin/bash
# Where births cost more than the budget has room for they are not followed: none
# of those stops for us, all do their work, and are counted. Those that live on are
# watched when there is room again.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"
need PTRACE ROOT

# figures TRACE - how many processes were followed, and how many not
figures() {
	smco-report --json "$1" | perl -MJSON::PP -0777 -ne '
		my $d = decode_json($_);
		print scalar @{$d->{processes}}, " ",
			$d->{meta}{unfollowed_processes} // 0, "\n"'
}

# BPF, in the first PID namespace
if [ "$(readlink /proc/self/ns/pid)" != "pid:[4026531836]" ]; then
	echo "1..0 # SKIP processes have other numbers here"
	exit 0
fi

# wanted HOW NUMBER - what so many children say without us, sorted: a child that
# becomes another program its number, all others what depends on that alone, so
# that one run tells of all.
"$FIXTURES/births" fork 1000 0 >native 2>/dev/null || exit 1
wanted() {
	case $1 in
	exec | vfork | spawn) seq 0 $(($2 - 1)) && echo EXIT-SUCCESS ;;
	*) awk -v nr="$2" '/EXIT-SUCCESS/ || $1 < nr' "$SCRATCH/native" ;;
	esac | sort
}

# left HOW NUMBER FOLLOWED UNFOLLOWED - with a target of 0. The first child is
# followed, by which births are known to happen, and so is the next one, at whose
# birth the parent hears of it, but where making threads has told it before.
left() {
	wanted "$1" "$2" >want
	smco-trace -q -t 0 -o "$1.trace" -- "$FIXTURES/births" "$1" "$2" |
		sort >got
	cmp want got || return
	figures "$1.trace"
	[ "$(figures "$1.trace")" = "$3 $4" ]
}
ok "1000 forks" left fork 1000 3 999
soon "forks and exec" left exec 200 3 199
soon "vfork" left vfork 200 3 199
told
soon "posix_spawn" left spawn 200 3 199
soon "children of theirs" left nested 200 3 399
told
soon "threads that fork" left threads 400 2 400
soon "children with threads" left thread 200 3 199
told
ok "it is told" eval 'smco-report fork.trace | tr -s " \n" " " |
	grep -q "not 999 processes whose births were not followed, for that alone would have cost more than the budget"'

# What is planted in the parent meanwhile, taken out and put in again, harms none.
busy_with() {
	wanted "$1" 500 >want
	for _ in 1 2 3; do
		smco-trace -q -t 0.5 "${@:2}" -o b.trace -- \
			"$FIXTURES/births" "$1" 500 | sort >got
		cmp want got || return
	done
	figures b.trace
}
# Two at once: each rests for a good part of its time.
for pair in "fork vfork" "nested threads"; do
	for how in $pair; do
		soon "naps and ranges, $how" busy_with "$how" -m nap,range
	done
	told
done

# Some ways to look after each child: all are followed.
followed() {
	rm -f f.trace
	smco-trace -q -o f.trace "$@" -- "$FIXTURES/births" fork 50 >/dev/null || return
	figures f.trace
	[ "$(figures f.trace)" = "52 0" ]
}
soon "--kill-on-exit" followed -t 0 --kill-on-exit
soon "counters of which stops are taken off" followed -t 0.01 -e task-clock,sched:sched_switch
soon "samples" followed -t 0.01 --sample 99
told

# starts NUMBER - a script that starts so many programs.
# among COMMAND - one that starts 400, COMMAND, 40 more, and waits.
starts() { echo "i=0; while [ \$i -lt $1 ]; do /bin/true; i=\$((i + 1)); done"; }
among() { starts 400 && echo "$1 &" && starts 40 && echo wait; }

# What the kernel keeps of each is counted all the same: as the parent is told.
counted() {
	local faults
	smco-trace -q -t 0.01 -e page-faults,minor-faults,major-faults,task-clock \
		-o c.trace -- "$FIXTURES/births" "$1" "$2" 2>faults >/dev/null || return
	figures c.trace
	[ "$(figures c.trace)" = "$3 $4" ] || return
	faults=$(cat faults)
	smco-report --json c.trace | perl -MJSON::PP -0777 -ne '
		my $d = decode_json($_);
		my $c = $d->{counters}[0];
		my ($i) = grep { $c->{events}[$_]{name} eq "minor-faults" } 0 .. 9;
		my ($first) = map { $_->{pid} } grep { $_->{came} eq "launched" } @{$d->{processes}};
		my ($all, @left);
		for my $t (@{$c->{threads}}) {
			push @left, $t if $t->{pid} && !$t->{tid};
			$all += $t->{counts}[$i + $_]{count} // 0
				for grep { ($t->{tid} // 0) != $first } 0, 1;
		}
		my ($minor, $major) = split " ", "'"$faults"'";
		print "faults of children: $all, the kernel says $minor + $major\n";
		print $left[0]{counts}[$_]{count}, " " for 0 .. 3;
		my ($both, $a, $b, $ns) = map { $left[0]{counts}[$_]{count} } 0 .. 3;
		exit !(@left == 1 && $all == $minor + $major && $both == $a + $b && $ns > 0)'
}
ok "faults of 1000 forks" counted fork 1000 3 999
ok "of children of theirs" counted nested 200 3 399
ok "of children with threads" counted thread 200 3 199
ok "they are told as one" eval 'smco-report c.trace | grep "^threads *not followed, "'

# inherited - what else is counted of those that "sh SCRIPT" starts, who are not
# followed, is what it is where all are.
EXECS=sched:sched_process_exec,sched:sched_process_exit,sched:sched_process_fork
counts() {
	smco-report --json "$1" | perl -MJSON::PP -0777 -ne '
		my $c = decode_json($_)->{counters}[0];
		exit print "paused\n" if grep { $_->{running_ns} != $_->{enabled_ns} } @{$c->{counts}};
		print join(" ", map { $_->{count} } @{$c->{counts}}), "\n"'
}
inherited() {
	local all
	smco-trace -q -t unlimited -e $EXECS -o u.trace -- sh "$1" || return
	all=$(counts u.trace)
	for _ in 1 2 3 4 5; do
		smco-trace -q -t 5 -e $EXECS -o i.trace -- sh "$1" || return
		echo "$all; $(counts i.trace), $(figures i.trace)"
		[ "$(counts i.trace)" != paused ] || continue
		[ "$(counts i.trace)" = "$all" ] || return
		[ "$(figures i.trace | cut -d' ' -f2)" -lt 100 ] || return 0
	done
	return 1
}
{ starts 400 && echo "( $(starts 100) )" && starts 100; } >inherits.sh
{ starts 400 && echo "( sleep 0.5; $(starts 100) ) &"; } >outlived.sh
{ starts 400 && echo "exec sh -c '$(starts 100)'"; } >execs.sh
ok "programs and their ends, counted with who started them" inherited inherits.sh
ok "the same, who started them ends before" inherited outlived.sh
ok "the same, who started them calls exec" inherited execs.sh

# Who is killed leaves a program that has children all the time.
killed() {
	local smco pid
	wanted "$1" 1000 >want
	setsid smco-trace -q -t 0 -o k.trace -- "$FIXTURES/births" "$1" 1000 >out &
	smco=$!
	wait_for 20 has_lines || return
	pid=$(pgrep -P $smco births)
	kill -KILL $smco
	wait $smco
	wait_for 60 ended "$pid"
	sort out | cmp want
}
has_lines() { [ "$(wc -l <out)" -gt 100 ]; }
ended() { ! kill -0 "$1"; }
soon "a killed smco-trace" killed fork
soon "the same, vfork" killed vfork
told

# until_watched SECONDS COMMAND... - one of whose children writes a file pid: that
# is ended when it has been traced for so long, or does not come to be.
until_watched() {
	local smco i left=$1
	rm -f pid
	"${@:2}" >/dev/null &
	smco=$!
	wait_for 20 test -s pid || return
	for ((i = 0; i < 150; i++)); do
		pause 0.1
		is_traced && break
	done
	pause "$left"
	kill "$(cat pid)"
	wait $smco
}
is_traced() { grep -q '^TracerPid:.*[1-9]' "/proc/$(cat pid)/status"; }

# One of them that lives on, and a copy of the parent that does.
among "sh -c 'echo \$\$ >pid; exec \"\$0\" 60' $FIXTURES/forgetful-server" >stays.sh
found() {
	for _ in 1 2 3 4 5; do
		until_watched 2 smco-trace -q -t 5 -o s.trace -- sh "$SCRATCH/stays.sh" || return
		smco-report --json s.trace >s.json
		perl -MJSON::PP -0777 -ne '
			my $d = decode_json($_);
			my ($p) = grep { $_->{came} eq "attached" }
				@{$d->{processes}};
			print "unfollowed: $d->{meta}{unfollowed_processes}",
				$p ? ", $p->{command}, unused $p->{unused}{max_bytes}" : "", "\n";
			exit !($p && $p->{command} =~ /forgetful-server/)' s.json &&
			smco-report s.trace | grep -q "allocated .*\|naps of" && return
	done
	return 1
}
soon "one that lives is found and watched" found

# What it did before is counted as well.
among "perl -e '\$x = \"y\" x 8e6; open F, qq(>pid); print F \$\$; close F; sleep 60'" >touches.sh
from_birth() {
	for _ in 1 2 3 4 5; do
		until_watched 0.5 smco-trace -q -t 5 -e minor-faults -o p.trace \
			-- sh "$SCRATCH/touches.sh" || return
		smco-report --json p.trace | perl -MJSON::PP -0777 -ne '
			my $d = decode_json($_);
			my ($p) = grep { $_->{came} eq "attached" }
				@{$d->{processes}} or exit 2;
			my ($t) = grep { $_->{tid} == $p->{pid} }
				grep { $_->{tid} } @{$d->{counters}[0]{threads}};
			print "$p->{command}: $t->{counts}[0]{count}\n";
			exit !($t->{counts}[0]{count} > 8e6 / 4096)'
		case $? in 2) ;; *) return ;; esac
	done
	return 1
}
soon "and counted from its birth" from_birth

# The command ends, what it has begun does not: it is followed to its end.
{ starts 400 && echo "sh -c 'sleep 2; echo done' &"; } >ends.sh
outlives() {
	smco-trace -q -t 0 -o e.trace -- sh "$SCRATCH/ends.sh" >out || return
	grep -q "done" out
}
soon "what outlives the command is waited for" outlives
told

# Left alone, nobody has anything of ours but what was there.
gone_by() {
	"$FIXTURES/births" fork 2000 >out &
	pid=$!
	smco-trace -q -t 0 -d 1 -o d.trace -p $pid || return
	untouched $pid || return
	wait $pid
}
ok "attached to, and left" gone_by

done_testing
