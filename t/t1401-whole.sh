#!/bin/bash
# Calls that block return all that they would have without us, not what they had
# done when they were stopped.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/engine-lib.sh"

# A large write to a slow reader, and the like: all of it, and nothing twice.
whole() {
	local fixture=$1
	shift
	# shellcheck disable=SC2086
	drive "$@" "$FIXTURES/$fixture" 2 interrupt $how >driven || { head driven; return 1; }
	grep EXIT-SUCCESS driven
}
whole_attached() {
	start "$1" 20
	while kill -0 "$pid" 2>/dev/null; do
		timeout 20 "$DRIVE" -d 7 -s 2 -i 1 -p "$pid" 2>/dev/null
	done
	finish
}
how=
for fixture in whole_calls whole_vectors whole_batches whole_control whole_uring; do
	for opts in "-s 3" "-s 1 -i 2" "-s 0" "-x -s 5"; do
		# shellcheck disable=SC2086
		soon "calls that block are not cut short ($fixture $opts)" \
			whole $fixture $opts
	done
	told
	# Whose room for control data is known when it was seen asleep.
	[ $fixture = whole_control ] ||
		soon "attached to and left in the middle of them ($fixture)" \
			whole_attached $fixture
done

how=registered
for opts in "-s 3" "-s 1 -i 2" "-s 0" "-x -s 5"; do
	# shellcheck disable=SC2086
	soon "also with registered rings ($opts)" whole whole_uring $opts
done
told

# Attached to while all of them have got some bytes, and left.
held() {
	rm -f go
	HOLD=go start whole_control 2
	wait_for 20 has_held 5 || return 1
	for _ in 1 2 3; do
		drive -d 20 -s 3 -i 1 -p "$pid" && untouched "$pid" || return 1
	done
	touch go
	finish
}
has_held() {
	[ "$(grep -c held out)" -eq "$1" ]
}
ok "control data that comes after we have left has its room" held

done_testing
