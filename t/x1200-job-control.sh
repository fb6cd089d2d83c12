#!/bin/bash
# Stop signals stop, SIGCONT continues, and the program's parent sees both.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

# jobs_seen DRIVE-OPTIONS... - the parent sees the same with and without us
jobs_seen() {
	local child parent
	mkfifo go
	"$FIXTURES/job_parent" 8 <<<x | grep -v ready >plain
	"$FIXTURES/job_parent" 8 <go >driven.out &
	parent=$!
	exec 9>go
	wait_for 5 grep -q ready driven.out || return 1
	child=$(awk '/ready/ { print $2 }' driven.out)
	"$DRIVE" "$@" -p "$child" 2>drive.err &
	wait_for 5 grep -q 'TracerPid:.[1-9]' "/proc/$child/status" || return 1
	echo x >&9
	exec 9>&-
	rm go
	wait "$parent" || return 1
	wait $! || return 1
	grep -v ready driven.out >driven
	diff plain driven
}
ok "a traced child in a stop" jobs_seen
ok "also while we stop it and run calls" jobs_seen -s 1 -i 2

stays_stopped() {
	start many_threads 3
	kill -STOP "$pid"
	wait_for 5 test "$(state "$pid")" = T
	drive "$@" -p "$pid" || return 1
	untouched "$pid" || return 1
	[ "$(state "$pid")" = T ] || { echo "state $(state "$pid")"; return 1; }
	kill -CONT "$pid"
	wait_for 5 is_state S || return 1
	kill "$pid"
}
is_state() { [ "$(state "$pid")" = "$1" ]; }
ok "a stopped program stays stopped" stays_stopped -d 50
ok "also when calls are run in it" stays_stopped -d 100 -s 5 -i 3
ok "also when left at once" stays_stopped -D

stopped_meanwhile() {
	start many_threads 3
	"$DRIVE" -d 700 -s 3 -i 1 -p "$pid" 2>drive.err &
	wait_for 5 grep -q 'TracerPid:.[1-9]' "/proc/$pid/status" || return 1
	sleep 0.2
	kill -STOP "$pid"
	wait $! || return 1
	[ "$(state "$pid")" = T ] || { echo "state $(state "$pid")"; return 1; }
	kill -CONT "$pid"
	wait_for 5 is_state S || return 1
	kill "$pid"
}
ok "stopped while traced, it is stopped afterwards" stopped_meanwhile

done_testing
