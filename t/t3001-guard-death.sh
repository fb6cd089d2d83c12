#!/bin/bash
# kill -9 of the supervisor at a random moment, while threads run into guards
# all the time: they go on, with right results. SMCO_TEST_KILLS=200 for more.
. "$(dirname "$0")/test-lib.sh"

drive=$BUILD/t/drive/guard-drive
make -s -C "$SRC" O="$O" "$O/t/drive/guard-drive" >build.out 2>&1 ||
	cat build.out

# killed MECHANISM N
killed() {
	local i us bad=0
	for ((i = 0; i < $2; i++)); do
		us=$(((RANDOM * 32768 + RANDOM) % 100000 + 1))
		if ! timeout 20 "$drive" -m "$1" -a -k $us \
			"$FIXTURES/guard_threads" 120 >out 2>err ||
			! grep -q '^wrong 0$' out; then
			bad=$((bad + 1))
			echo "killed after $us us: $(cat out err)"
		fi
	done
	echo "$bad of $2 went wrong"
	[ $bad -eq 0 ]
}
ok "mprotect" killed mprotect "${SMCO_TEST_KILLS:-40}"

done_testing
