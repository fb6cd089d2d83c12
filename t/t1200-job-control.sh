#!/bin/bash
# Stop signals stop, SIGCONT continues, and the program's parent sees both.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

# jobs_seen DRIVE-OPTIONS... - the parent sees the same with and without us
jobs_seen() {
	local child parent driver
	"$FIXTURES/job_parent" 8 </dev/null | grep -v ready >plain
	grep EXIT-SUCCESS plain || return 1
	rm -f go driven.out
	mkfifo go
	"$FIXTURES/job_parent" 8 <go >driven.out &
	parent=$!
	exec 9>go
	wait_for 5 grep -q ready driven.out || return 1
	child=$(awk '/ready/ { print $2 }' driven.out)
	timeout -k 2 60 "$DRIVE" "$@" -p "$child" 2>drive.err &
	driver=$!
	wait_for 5 grep -q 'TracerPid:.[1-9]' "/proc/$child/status" || return 1
	echo x >&9
	exec 9>&-
	wait "$parent" || { cat driven.out; return 1; }
	wait "$driver"
	[ $? = 3 ] || { cat drive.err; return 1; } # the child's status
	grep -v ready driven.out >driven
	diff plain driven
}
ok "a traced child in a stop" jobs_seen
ok "also while we stop it and run calls" jobs_seen -s 1 -i 2

stays_stopped() {
	start many_threads 3
	kill -STOP "$pid"
	wait_for 5 is_state T || return 1
	drive "$@" -p "$pid" || return 1
	untouched "$pid" || return 1
	wait_for 5 is_state T || { echo "state $(state "$pid")"; return 1; }
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
	wait_for 5 is_state T || { echo "state $(state "$pid")"; return 1; }
	kill -CONT "$pid"
	wait_for 5 is_state S || return 1
	kill "$pid"
}
ok "stopped while traced, it is stopped afterwards" stopped_meanwhile

# Sent all the time they would keep a borrowed thread from its next instruction.
storm() {
	local senders=() status
	perl -e '1 while 1' &
	pid=$!
	for _ in 1 2 3; do
		perl -e 'kill "STOP", $ARGV[0] while 1' "$pid" &
		senders+=($!)
	done
	timeout -k 2 100 "$DRIVE" -s 0 -i 5 -d 1500 -p "$pid" 2>drive.err
	status=$?
	cat drive.err
	kill "${senders[@]}"
	wait "${senders[@]}"
	kill -CONT "$pid"
	[ $status -eq 0 ] && untouched "$pid" && kill "$pid"
}
ok "stop signals without end do not keep us" storm

done_testing
