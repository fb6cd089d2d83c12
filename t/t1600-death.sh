#!/bin/bash
# kill -9 of the supervisor at a random moment, while it stops and borrows
# threads all the time. SMCO_TEST_KILLS=200 for more.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

killed() {
	local i us
	start thread_churn 0
	for ((i = 0; i < $1; i++)); do
		us=$(((RANDOM * 32768 + RANDOM) % 60000 + 1000))
		"$DRIVE" -k $us -s 0 -i 60 -p "$pid" >/dev/null 2>&1
		kill -0 "$pid" || { echo "died at $us us"; break; }
	done
	untouched "$pid" || return 1
	# What one of the killed left is no hindrance for the next.
	drive -d 20 -s 1 -i 1 -p "$pid" || return 1
	kill -TERM "$pid"
	finish
}
ok "the program goes on and counts right" killed "${SMCO_TEST_KILLS:-40}"

# While commands start: from exec through the linker to their end.
started() {
	local i us file
	cat >starts <<-'END'
		: >"began.$1"
		n=0
		while [ $n -lt 30 ]; do
			/bin/true || echo "status $?" >>died
			n=$((n + 1))
		done
		: >"ended.$1"
	END
	for ((i = 0; i < $1; i++)); do
		us=$(((RANDOM * 32768 + RANDOM) % 60000 + 8000))
		"$DRIVE" -k $us sh ./starts $i >/dev/null 2>&1
	done 2>/dev/null
	for file in began.*; do
		wait_for 20 test -e "ended.${file#began.}" || return 1
	done
	[ ! -e died ] || { cat died; return 1; }
}
ok "commands that start" started \
	"${SMCO_TEST_KILLS:-60}"

done_testing
