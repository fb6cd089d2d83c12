#!/bin/bash
# Leaving: whatever the program is at, it goes on with that.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

is_state() { [ "$(state "$pid")" = "$1" ]; }
running() {
	sh -c 'while :; do :; done' &
	pid=$!
	drive -d 50 -s 1 -i 1 -p "$pid" && untouched "$pid" || return 1
	is_state R || return 1
	kill "$pid"
}
ok "a running program runs on" running

sleeping() {
	sleep 100 &
	pid=$!
	sleep 0.1
	drive -d 50 -s 1 -i 1 -p "$pid" && untouched "$pid" || return 1
	wait_for 5 is_state S || return 1
	kill "$pid"
}
ok "a sleeping program sleeps on" sleeping

vforking() {
	start vfork_sleep 1
	drive -d 50 -p "$pid" || true
	finish || return 1
}
soon "attached to and left in the middle of a vfork" vforking

vfork_followed() {
	"$DRIVE" -d 200 "$FIXTURES/vfork_sleep" 1 >out 2>err
	cat err
	wait_for 10 grep EXIT-SUCCESS out
}
soon "left while a followed vfork child sleeps" vfork_followed

# Nothing stays of the page that calls are run in.
leftover() {
	start many_threads 3
	cat "/proc/$pid/maps" >before
	drive -d 50 -s 1 -i 5 -p "$pid" || return 1
	grep -q 'calls [1-9]' drive.err || return 1
	diff before "/proc/$pid/maps" || return 1
	kill "$pid"
}
soon "mappings are as they were" leftover

# Also when its only thread waited for a vfork child that nobody traces.
leftover_vfork() {
	start vfork_untraced
	cat "/proc/$pid/maps" >before
	for _ in 1 2 3 4 5 6 7 8; do
		"$DRIVE" -r 15 -d 30 -s 3 -i 1 -p "$pid" 2>said || {
			# Too busy a machine: what could not be left is said.
			grep "cannot be released yet" said
			kill "$pid"
			return
		}
		grep -q 'calls [1-9]' said || return 1
		diff before "/proc/$pid/maps" || return 1
	done
	kill "$pid"
	finish
}
soon "also after waiting for a vfork child" leftover_vfork
told

# Who waits for a futex does so in code of ours once it was stopped, and one in
# vfork stops only when all others are left: then that code goes, too.
left_last() {
	local i
	rm -f vdso
	start vfork_wait && text_is_own "$pid" vdso || return
	for ((i = 0; i < 10; i++)); do
		drive -s 4 -i 5 -d 60 -p "$pid" && text_is_own "$pid" vdso ||
			return
	done
	kill "$pid"
	finish
}
ok "code for those who wait is gone, also where one is late" left_last

# Nobody's next instruction is in the vdso.
outside_of_vdso() {
	perl -e 'my $pid = shift; open my $maps, "<", "/proc/$pid/maps" or exit 1;
		my ($from, $to) = map { hex } map { /^(\w+)-(\w+) .*\[vdso\]/ } <$maps>;
		for (glob "/proc/$pid/task/*/syscall") {
			open my $f, "<", $_ or next;
			my $pc = <$f> =~ /(\w+)$/ ? hex $1 : 0;
			print "$_: next is vdso+", $pc - $from, "\n" and exit 1
				if $pc >= $from && $pc < $to }' "$1"
}
# The same while signals come that nobody cares about: a thread that stands at
# one when it is left is not led there anew, where the code goes a moment later.
left_at_signal() {
	local i senders
	rm -f vdso
	start vfork_wait && text_is_own "$pid" vdso || return
	perl -e 'while (kill CHLD => $ARGV[0]) { select undef, undef, undef, 0.0002 }' "$pid" &
	senders=$!
	for ((i = 0; i < 25; i++)); do
		drive -s 4 -i 5 -d 60 -p "$pid" >said 2>&1
		grep -q 'cannot be released' said && continue
		if ! text_is_own "$pid" vdso || ! outside_of_vdso "$pid"; then
			break
		fi
	done
	kill "$senders"
	wait "$senders"
	kill "$pid"
	finish && [ "$i" -eq 25 ]
}
ok "nor is anybody in it who stood at a signal" left_at_signal

# freeze GROUP FIXTURE ARGS... - started in a control group of its own, and
# nothing of it runs. thaw GROUP ends both.
freeze() {
	local group=$1
	shift
	mkdir "$group" && start "$@" &&
		echo "$pid" >"$group/cgroup.procs" &&
		echo 1 >"$group/cgroup.freeze" &&
		wait_for 10 grep -q 'frozen 1' "$group/cgroup.events"
}

# Calls are to be made in it, which it cannot come back from before it is
# thawed. AFTER: seconds from the attach to that.
frozen_before() {
	local group=$1/smco-t1500-$BASHPID after=$2 status
	freeze "$group" whole_vectors 10 || return 1
	timeout -k 1 30 "$DRIVE" -s 0 -i 9 -d 5000 -p "$pid" 2>said &
	local drive=$!
	wait_for 10 grep -q 'TracerPid:.[1-9]' "/proc/$pid/status" || return 1
	if [ "$after" != never ]; then
		sleep "$after"
		echo 0 >"$group/cgroup.freeze"
	fi
	wait "$drive"
	status=$?
	cat said
	echo "status $status"
	[ "$after" != never ] || {
		untouched "$pid" &&
			grep -q 'frozen 1' "$group/cgroup.events" || return 1
		echo 0 >"$group/cgroup.freeze"
	}
	finish && [ $status -ne 124 ] &&
		grep -qE '^stops|could not be undone|cannot be released|is frozen' said
	status=$?
	wait_for 5 rmdir "$group"
	return $status
}

frozen_told() {
	local group=$1/smco-t1500-$BASHPID status
	rm -f vdso
	freeze "$group" many_threads 60 && text_is_own "$pid" vdso || return 1
	timeout -k 1 60 "$BUILD/smco-trace" -p "$pid" -d 1 -o frozen.trace >report 2>&1
	status=$?
	cat report
	grep -q "it is frozen" report && untouched "$pid" &&
		text_is_own "$pid" vdso && [ $status -eq 0 ]
	status=$?
	echo 0 >"$group/cgroup.freeze"
	kill "$pid"
	wait "$pid"
	wait_for 5 rmdir "$group"
	return $status
}

# Frozen by its control group, maybe while it runs a call of ours, it does not
# come back: that is waited for a while and said, not for ever, and it goes on
# as ever when it is thawed. Both kinds of control groups.
frozen() {
	local group=$1/smco-t1500-$BASHPID status left=0
	shift
	mkdir "$group" || return 1
	start whole_vectors 12
	echo "$pid" >"$group/cgroup.procs"
	timeout -k 1 30 "$DRIVE" -s 0 -i 9 -d 1500 -p "$pid" 2>said &
	local drive=$!
	wait_for 10 grep -q 'TracerPid:.[1-9]' "/proc/$pid/status"
	sleep 0.3
	echo "$1" >"$group/$3"
	# While it is frozen.
	wait "$drive"
	status=$?
	kill -0 "$pid" && left=1
	echo "$2" >"$group/$3"
	cat said
	echo "status $status"
	{ finish || short_and_said "$3"; } && [ $left = 1 ] &&
		[ $status -ne 124 ] &&
		grep -qE '^stops|could not be undone|cannot be released' said
	status=$?
	wait_for 5 rmdir "$group"
	return $status
}
# The old freezer ends calls by itself, ten of these each time. Whom it catches on
# the way into a stop nobody can lead on: such a call is short then, with us as
# without, and that its thread could not be released is said.
kinds_cut() { sed -n 's/: .* not .*//p' "$1" | sort -u | wc -l; }
cut_once() {
	local group=$1 nr
	start whole_vectors 30 || return
	echo "$pid" >"$group/cgroup.procs"
	sleep 0.3
	echo FROZEN >"$group/freezer.state"
	wait_for 10 grep -q FROZEN "$group/freezer.state"
	echo THAWED >"$group/freezer.state"
	# Who was cut needs a CPU to say so.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(kinds_cut out)" -eq 0 ] || break
		sleep 0.1
	done
	sleep 0.2
	kill "$pid"
	wait "$pid"
	nr=$(kinds_cut out)
	[ "$nr" -le "$cut_natively" ] || cut_natively=$nr
}
# On a busy machine none of them may have been at a call just then.
cut_without_us() {
	local group=$1/smco-t1500-$BASHPID i
	mkdir "$group" || return 1
	cut_natively=0
	for ((i = 1; i <= (cut_natively ? 20 : 60) && cut_natively < 5; i++)); do
		cut_once "$group"
	done
	wait_for 5 rmdir "$group"
	echo "$cut_natively kinds of calls, $((i - 1)) times frozen"
	[ "$cut_natively" -ge 1 ]
}
short_and_said() {
	[ "$1" = freezer.state ] && grep -q 'cannot be released yet' said &&
		! grep -v 'errno 0)$' out | grep -v '^ready' &&
		[ "$(kinds_cut out)" -lt "$cut_natively" ]
}
for dir in /sys/fs/cgroup /sys/fs/cgroup/unified; do
	[ -w $dir/cgroup.procs ] || continue
	soon "a frozen program" frozen $dir 1 0 cgroup.freeze
	soon "one that was frozen before we came" frozen_before $dir never
	soon "and is thawed while we wait for it" frozen_before $dir 0.7
	soon "and is thawed when we wait no more" frozen_before $dir 3
	soon "the report says that it was" frozen_told $dir
	told
done
if [ -w /sys/fs/cgroup/freezer/cgroup.procs ]; then
	ok "the old way a program's calls end early" \
		cut_without_us /sys/fs/cgroup/freezer
	ok "a frozen program, the old way" \
		frozen /sys/fs/cgroup/freezer FROZEN THAWED freezer.state
fi

twice() {
	start many_threads 3
	"$DRIVE" -d 1000 -p "$pid" 2>/dev/null &
	local first=$!
	wait_for 5 grep -q 'TracerPid:.[1-9]' "/proc/$pid/status" || return 1
	"$DRIVE" -d 10 -p "$pid" 2>second
	cat second
	grep -q "traced by process $first (engine-drive)" second || return 1
	wait "$first" || return 1
	kill "$pid"
}
ok "a second tracer is told who the first is" twice

ok "no such process" grep -q 'no process' \
	<("$DRIVE" -p 999999999 2>&1)
has_zombie() { [[ $(ps -o stat= --ppid "$1") == *Z* ]]; }
zombie() {
	sh -c 'true & exec sleep 60' &
	local z parent=$!
	wait_for 10 has_zombie $parent || return 1
	z=$(ps -o pid= --ppid $parent | head -n 1)
	"$DRIVE" -p "$z" 2>&1 | tee said
	kill $parent
	grep -q zombie said
}
ok "a zombie" zombie
ok "a kernel thread" grep -q 'kernel thread' <("$DRIVE" -p 2 2>&1)
other_user() {
	[ "$(id -u)" = 0 ] || return 0
	cp "$DRIVE" drive-copy
	chmod 755 . drive-copy
	setpriv --reuid=65534 --clear-groups ./drive-copy -p $$ 2>&1 |
		tee said
	grep -q 'belongs to user 0.*run as that user or as root' said
}
ok "another user's process" other_user

done_testing
