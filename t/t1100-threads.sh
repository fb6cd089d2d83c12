#!/bin/bash
# Threads that come and go while they are stopped, attached to and left.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

succeeds() {
	drive "$@" >driven || return 1
	grep EXIT-SUCCESS driven
}
ok "32 threads make threads" succeeds "$FIXTURES/thread_churn" 500
ok "stopped all the time" succeeds -s 1 -i 2 "$FIXTURES/thread_churn" 1000
ok "at every system call" succeeds -x "$FIXTURES/thread_churn" 300

many_attaches() {
	local before
	start thread_churn 0
	before=$(layout "$pid")
	drive -r "$1" -d 5 -s 1 -i 2 -p "$pid" || return 1
	untouched "$pid" || return 1
	diff <(echo "$before") <(layout "$pid") || return 1
	kill -TERM "$pid"
	finish
}
ok "attached to and left 200 times, it loses no count" \
	many_attaches 200

left_at_once() {
	start thread_churn 0
	drive -r 50 -D -p "$pid" && untouched "$pid" && kill -TERM "$pid" && finish
}
ok "left at once 50 times" left_at_once

for opts in "" "-s 1 -i 2" "-s 0" "-n" "-x"; do
	# shellcheck disable=SC2086
	ok "exec by a thread that is not the leader ($opts)" \
		succeeds $opts "$FIXTURES/exec_by_thread" 6
	# shellcheck disable=SC2086
	ok "vfork and clone(CLONE_VM) ($opts)" \
		succeeds $opts "$FIXTURES/vfork_exec" 10
done

# All threads of the old program are told as ended before the new one is, also
# the one that execs: it becomes the leader, and its own number just vanishes.
exec_told() {
	succeeds -e events "$FIXTURES/exec_by_thread" 6 || return 1
	awk '$1 == "task-new" { alive[$3] = 1 }
		$1 == "task-gone" { delete alive[$3] }
		/execed/ { nr++; for (t in alive) { print "left:", t; bad = 1 } }
		END { exit bad || nr != 6 }' events
}
ok "whom an exec ended is told" exec_told

# Attached to at any moment of that; a program that has just become another
# one may be gone from under us, which is no error of its own: what was changed
# is gone with the old one.
exec_attached() {
	local i=0
	"$FIXTURES/exec_by_thread" 150 >out 2>err &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		timeout 20 "$DRIVE" -d $((i++ % 7)) "$@" -p "$pid" 2>>said
		[ $? -ne 124 ] || return 1
	done
	sort said | uniq -c | sort -rn | head -n 5
	grep -E "not be undone|a page of ours" said && return 1
	[ $i -gt 5 ] && finish
}
ok "attached to while a thread execs" exec_attached -s 1 -i 2
ok "the same, left at once" exec_attached -D

# Its exec cannot come to an end, for another tracer has one of its threads and
# does not wait for it: nobody can be attached to meanwhile, and that is said.
exec_stuck() {
	"$FIXTURES/exec_by_thread" 100 >out 2>err &
	pid=$!
	# PTRACE_SEIZE of the first thread that is not the leader.
	perl -e 'my $pid = shift; my ($r, @t) = -1;
		until ($r == 0) {
			@t = sort { $a <=> $b } grep { $_ ne $pid }
				map { m{(\d+)$} } glob "/proc/$pid/task/*";
			exit 1 unless -e "/proc/$pid";
			$r = syscall(101, 0x4206, $t[0], 0, 0) if @t > 3;
		}
		$| = 1;
		print "$t[0]\n";
		sleep 60' "$pid" >seized &
	local other=$! status
	wait_for 10 grep -q . seized
	wait_for 10 grep -q "State:.Z" \
		"/proc/$pid/task/$(cat seized)/status"
	timeout 20 "$DRIVE" -d 5 -p "$pid" 2>said
	status=$?
	kill "$other"
	wait "$other"
	cat said
	[ $status -eq 99 ] && grep -q "its exec" said && finish
}
ok "not attached to while its exec cannot end" exec_stuck

thousand() {
	start many_threads 1000
	drive -d 10 -i 1 -s 1 -p "$pid" && untouched "$pid" || return 1
	grep -q '^stops [1-9]' drive.err || return 1
	local tasks=("/proc/$pid/task"/*)
	[ ${#tasks[@]} = 1001 ] || return 1
	kill "$pid"
}
ok "a thousand threads" thousand

leader_gone() {
	start many_threads 5 leader-ends
	wait_for 5 grep -q 'State:.Z' "/proc/$pid/task/$pid/status"
	drive -d 100 -s 5 -i 2 -p "$pid" || return 1
	grep -q '^stops [1-9].*calls [1-9]' drive.err || return 1
	kill "$pid"
}
ok "a process whose leader has ended" leader_gone

# Among the threads is one that never runs in user mode.
kernel_thread() {
	local status=0
	rm -f go
	mkfifo go
	"$FIXTURES/guard_uring" poll hold <go >out &
	pid=$!
	exec 9>go
	wait_for 60 grep -q setup out || return 1
	if grep -q 'setup 0' out; then
		drive -d 300 -s 5 -i 2 -p "$pid" &&
			grep -q '^stops [1-9].*calls [1-9]' drive.err
		status=$?
	else
		echo "no io_uring here"
	fi
	exec 9>&-
	wait "$pid" && tail -n 1 out && return $status
}
ok "an io_uring's kernel thread runs no calls for us" kernel_thread

done_testing
