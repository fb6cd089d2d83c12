#!/bin/bash
# A thread that steps through itself, or runs 32-bit code in a 64-bit program,
# is borrowed for calls of ours as any other, or not at all: nothing but its own
# steps arrives, its handlers stay in place, and it ends as it would.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

started() {
	local mode=$1
	shift
	test_exit 0 smco-trace -q -t unlimited -o s.trace "$@" -- \
		"$FIXTURES/odd_modes" "$mode" 1500 >out
	cat out
	grep -q EXIT-SUCCESS out
}
# Whatever it is in when it is stopped: several times.
attached() {
	local mode=$1 pid
	shift
	"$FIXTURES/odd_modes" "$mode" 6000 >out &
	pid=$!
	wait_for 10 grep -q ready out || return
	for _ in 1 2 3 4 5; do
		test_exit 0 smco-trace -q -t unlimited -d 300ms -o a.trace "$@" -p $pid ||
			break
	done
	test_exit 0 wait $pid
	cat out
	grep -q EXIT-SUCCESS out
}
for mode in step far; do
	for how in "-m nap,range --nap 100ms" "--mechanism=mprotect --nap 100ms" \
		"--mechanism=uffd --nap 100ms"; do
		# shellcheck disable=SC2086
		soon "$mode, started ($how)" started $mode $how
		# shellcheck disable=SC2086
		soon "$mode, attached to ($how)" attached $mode $how
	done
	told
done
# 32-bit calls on memory under guard; if the kernel has them.
if timeout 20 "$FIXTURES/old_calls" | grep -q EXIT-SUCCESS; then
	old_calls() {
		test_exit 0 smco-trace -q -t unlimited -o o.trace --nap 300ms "$@" -- \
			"$FIXTURES/old_calls" >out
		cat out
		grep -q EXIT-SUCCESS out
	}
	for how in mprotect uffd pagescan bits; do
		soon "calls of 32 bits ($how)" old_calls --mechanism=$how
	done
	told
fi

done_testing
