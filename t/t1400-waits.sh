#!/bin/bash
# Waits in the kernel end when and how they would have ended without us.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

succeeds() {
	drive "$@" >driven || { head driven; return 1; }
	grep EXIT-SUCCESS driven
}
soon "no EINTR, never early" succeeds "$FIXTURES/waits" 5
for ms in 37 3 0; do
	soon "stopped every $ms ms" succeeds -s $ms "$FIXTURES/waits" 5
	soon "calls run every $ms ms" succeeds -s $ms -i 2 "$FIXTURES/waits" 5
	[ $ms = 37 ] || told
done
# A socket's time that is over is not told by a call that a filter forbids.
filtered() {
	SANDBOX=1 succeeds "$@" "$FIXTURES/waits" 5
}
soon "in a sandbox that kills for calls of no number" filtered -s 3
soon "also when stopped all the time" filtered -s 0
soon "with every system call stopped" succeeds -x "$FIXTURES/waits" 3
told

# Attached to in the middle of waits; a socket's time-out starts anew with each
# detach, so there is time in between.
attached() {
	start waits 20
	while kill -0 "$pid" 2>/dev/null; do
		timeout 20 "$DRIVE" -d 20 -s 3 -i 1 -p "$pid" 2>/dev/null
		sleep 0.13
	done
	finish
}
soon "attached to and left all the time" attached

# Timers go on as set, sleeps for the rest of their time, when we have come,
# stopped all a hundred times, and gone.
timers() {
	rm -f go
	start timers || return
	for _ in 1 2 3; do
		drive -d 200 -s 2 -i 1 -p "$pid" && untouched "$pid" || return 1
	done
	timeout -k 2 60 smco-trace -q -t 50 --nap 20ms -d 0.3 "$@" \
		-o timers.trace -p "$pid" || return
	touch go
	finish
}
soon "timers and sleeps have the time left that they had" timers
told
soon "also with protected pages" timers --mechanism=mprotect

# Everything that waits enters its call once more, and there it is left.
at_entry() {
	start waits 20
	drive -X -p "$pid" && untouched "$pid" || return 1
	for _ in 1 2; do
		sleep 0.13
		drive -X -p "$pid" || ! kill -0 "$pid" || return 1
	done
	finish
}
soon "left at the entry of system calls" at_entry

# The same for a program that a call of number -1 would kill.
sandboxed() {
	SANDBOX=1 at_entry
}
soon "also in a sandbox" sandboxed
told

soon "a handled signal ends a wait, an ignored one does not" \
	succeeds "$FIXTURES/wait_signals" 100
soon "also when stopped all the time" \
	succeeds -s 1 -i 1 "$FIXTURES/wait_signals" 100
soon "also back to back" succeeds -s 0 "$FIXTURES/wait_signals" 50
told

done_testing
