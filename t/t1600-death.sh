#!/bin/bash
# kill -9 of the supervisor at a random moment, while it stops and borrows
# threads all the time. SMCO_TEST_KILLS=200 for more.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

killed() {
	local i us
	start thread_churn $((200 * $1 + 500))
	for ((i = 0; i < $1; i++)); do
		us=$(((RANDOM * 32768 + RANDOM) % 60000 + 1000))
		"$DRIVE" -k $us -s 0 -i 60 -p "$pid" >/dev/null 2>&1
		kill -0 "$pid" || { echo "died at $us us"; break; }
	done
	untouched "$pid" || return 1
	# What one of the killed left is no hindrance for the next.
	drive -d 20 -s 1 -i 1 -p "$pid" || return 1
	finish
}
ok "the program goes on and counts right" killed "${SMCO_TEST_KILLS:-40}"

done_testing
