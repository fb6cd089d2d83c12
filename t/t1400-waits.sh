#!/bin/bash
# Waits in the kernel end when and how they would have ended without us.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

succeeds() {
	drive "$@" >driven || { head driven; return 1; }
	grep EXIT-SUCCESS driven
}
ok "no EINTR, never early" succeeds "$FIXTURES/waits" 5
for ms in 37 3 0; do
	ok "stopped every $ms ms" succeeds -s $ms "$FIXTURES/waits" 5
	ok "calls run every $ms ms" succeeds -s $ms -i 2 "$FIXTURES/waits" 5
done
ok "with every system call stopped" succeeds -x "$FIXTURES/waits" 3

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
ok "attached to and left all the time" attached

ok "a handled signal ends a wait, an ignored one does not" \
	succeeds "$FIXTURES/wait_signals" 100
ok "also when stopped all the time" \
	succeeds -s 1 -i 1 "$FIXTURES/wait_signals" 100
ok "also back to back" succeeds -s 0 "$FIXTURES/wait_signals" 50

done_testing
