#!/bin/bash
# In a control group that has just memory enough for the program, as a
# container may, it is not killed because of us: blocks do not become larger
# where little is left, and where memory runs out all the same it is smco-trace
# that is killed.
. "$(dirname "$0")/test-lib.sh"
need PTRACE ROOT

# Where groups with a limit of memory can be made: version 1's, or 2's. Who is
# watched is in one below the one that has the limit.
top=$(awk '{
	for (i = 1; $i != "-"; i++)
		;
	if ($(i + 1) == "cgroup" && $NF ~ /(^|,)memory(,|$)/)
		one = $5
	if ($(i + 1) == "cgroup2")
		two = $5
}
END { print one == "" ? two : one }' /proc/self/mountinfo)
group=$top/smco-test-$$
limit=memory.max
[ -e "$top/memory.limit_in_bytes" ] && limit=memory.limit_in_bytes
prereq_MEMORY_GROUP() {
	mkdir "$group" || return
	[ "$limit" != memory.max ] || echo +memory >"$group/cgroup.subtree_control" || return
	mkdir "$group/in" && echo $((40 << 20)) >"$group/$limit" && [ -e "$group/in/$limit" ]
}
remove() {
	# Who was killed leaves it a moment later.
	for _ in {1..50}; do
		rmdir "$group/in" "$group" 2>/dev/null
		[ -d "$group" ] || break
		sleep 0.1
	done
}
trap 'kill -9 $(jobs -p) 2>/dev/null; remove' EXIT
need MEMORY_GROUP

set_limit() { echo $(($1 << 20)) >"$group/$limit"; }
# join COMMAND... - in the group, as the process that this is.
cat >./join <<'EOF'
#!/bin/sh
echo $$ >"$GROUP/cgroup.procs"
exec "$@"
EOF
chmod +x join
export GROUP=$group/in
limits="few pages of their own (memory is limited)"

# 38 MB of 40 MiB: with pages of their own blocks would take 6 to 16 MiB more.
just_enough() {
	local size n
	set_limit 40
	for size in 4200 8200 70000; do
		n=$((38000000 / size))
		[ "$(./join "$FIXTURES/memory-limit" $size $n)" = $n ] || return
		[ "$(smco-trace -q -o j.trace -t unlimited --min-size 4K -- \
			./join "$FIXTURES/memory-limit" $size $n)" = $n ] || return
		smco-report --json j.trace | grep -qF "$limits" || return
	done
}
ok "a program that has just memory enough is not killed" just_enough

# Another one has taken nearly all.
taken() {
	set_limit 200
	mkfifo go
	# shellcheck disable=SC2016 # perl's
	./join perl -e '$| = 1; my @x = map { chr($_) x (1 << 20) } 1 .. 190; print "ready\n"; <STDIN>' \
		<go >said &
	exec 7>go
	wait_for 10 grep -q ready said || return
	smco-trace -q -o t.trace -t unlimited --min-size 4K -- \
		./join "$FIXTURES/memory-limit" 8200 100
	smco-report --json t.trace | grep -qF "no pages of their own (memory is limited)"
	local r=$?
	exec 7>&-
	wait
	return $r
}
ok "where nearly nothing is left none have pages of their own" taken

unlimited() {
	smco-trace -q -o u.trace -t unlimited --min-size 4K -- \
		"$FIXTURES/memory-limit" 8200 100 &&
		! smco-report --json u.trace | grep -F "memory is limited"
}
ok "where there is no limit nothing is said of one" unlimited

# Both are in it, and there is not enough for both.
has_ended() { [ "$(wc -l <out)" = 2 ]; }
we_go_first() {
	local n=$((50000000 / 70000)) smco
	set_limit 54
	rm -f out
	# shellcheck disable=SC2016 # the shell's own
	./join smco-trace -q -o w.trace -t 10 -- sh -c \
		'"$0" 70000 "$1"; echo "$?"' "$FIXTURES/memory-limit" $n >out &
	smco=$!
	wait $smco
	echo "smco-trace ended with $?"
	wait_for 20 has_ended
	cat out
	[ "$(cat out)" = "$n
0" ]
}
ok "where there is not enough for both it is smco-trace that is killed" we_go_first

# The program has what it would have without us.
adjustment() {
	local own
	own=$(cat /proc/self/oom_score_adj)
	# shellcheck disable=SC2016 # the shell's own
	smco-trace -q -o a.trace "$@" -- \
		sh -c 'sleep 0.3; cat /proc/$PPID/oom_score_adj; cat /proc/self/oom_score_adj' >adj
	cat adj
	[ "$(cat adj)" = "$want
$own" ]
}
want=1000
ok "the program's own score is not changed" adjustment
want=$(cat /proc/self/oom_score_adj)
ok "nor ours where it is to end with us" adjustment --kill-on-exit
remove
trap - EXIT
done_testing
