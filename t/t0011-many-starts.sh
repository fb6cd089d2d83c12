#!/bin/bash
# Short programs one after the other: starting to watch each would cost more
# than there is to spend. The one that lives is watched all the same.
. "$(dirname "$0")/test-lib.sh"
need PTRACE

cat >script.sh <<EOF
i=0
while [ \$i -lt 150 ]; do
	i=\$((i + 1))
	/bin/true || echo failed
done
exec "$FIXTURES/fork-data" 4 1
EOF
sh script.sh >want
# On a busy machine it may take longer than four seconds till there is room.
run() {
	run_it && grep -qE 'naps? of at least 300 ms' summary && return
	sed -i 's/fork-data" 4/fork-data" 24/' script.sh
	run_it
}
run_it() {
	smco-trace -t 10 --nap 300ms -o t.trace -- sh script.sh >got 2>summary
	local status=$?
	cat summary
	[ $status -eq 0 ] && diff want got
}
ok "output and status" run
# Where they wait for a CPU so long that starting to watch each of them is within
# the budget, there is nothing to leave out.
within_budget() {
	grep '^overhead' summary && ! grep -q 'above the target' summary
}
left_out() {
	grep -q 'not [0-9]* process.* that ended, or w.* left, before the budget had room' summary ||
		within_budget
}
ok "not all of them were watched" left_out
ok "the last was, when there was room again" grep -q \
	'naps* of at least 300 ms' summary
ok "what it had by then was found" grep -q 'allocated  ' summary
for_programs() {
	smco-report --json t.trace | grep -q '"unwatched_processes":"[1-9]' ||
		within_budget
}
ok "for programs" for_programs

# What the command itself becomes does not wait: of a launcher's program the
# first blocks are those that stay.
# On a busy machine it may take longer than two seconds till there is room.
launcher() {
	launcher_for 2 || launcher_for 20
}
# after_many NAP COMMAND - watched, after all of these
after_many() {
	sed "s,^exec .*,$2," script.sh >many.sh
	smco-trace -t 10 --nap "$1" -o t.trace -- sh many.sh >got 2>summary
	cat summary
}
launcher_for() {
	after_many 500ms "exec $FIXTURES/forgetful-server $1"
	grep -q 'allocated  reserve_pool' summary && grep -q 'main' summary
}
ok "what the command becomes is watched from its first instruction" launcher
ok "where the budget had no room" left_out

# One that has to wait, and its children, too, that it had before it was watched.
# On a busy machine it may take them longer than six seconds till there is room.
forks() {
	forks_for 6 || forks_for 30
}
forks_for() {
	after_many 300ms "$EXEC$FIXTURES/grow-forks $1"
	grep -q EXIT-SUCCESS got || return 1
	smco-report --json t.trace | sed -n 's/^{.*"object".*"pid":\([0-9]*\),.*/\1/p' |
		sort -u >pids
	echo "naps in $(wc -l <pids) processes"
	[ "$(wc -l <pids)" -ge 2 ]
}
EXEC=
ok "and its children" forks

# Copies of one that is watched at once wait; what they have made until they are
# woken is found.
EXEC="exec "
ok "copies that have to wait" forks

done_testing
