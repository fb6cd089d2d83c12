#!/bin/bash
# In a PID namespace of its own, as in a container, a program has other numbers
# than we see: what we do in it uses its own. Also of what is the first process
# there, to which the kernel is kind with signals.
. "$(dirname "$0")/test-lib.sh"
need PTRACE
prereq_PIDNS() { unshare -pf --mount-proc true; }
need PIDNS

# start COMMAND... - in a container; $first is process 1 there, $second its child
start() {
	unshare -pf --mount-proc "$@" >out &
	shell=$!
	wait_for 10 pgrep -P $shell >/dev/null
	first=$(pgrep -P $shell)
}
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null' EXIT
start "$FIXTURES/forgetful-server" 600 2
pids+=("$first")
one=$first
start sh -c "\"$FIXTURES/forgetful-server\" 600 2; true"
pids+=("$first")
wait_for 10 pgrep -P "$first" >/dev/null
two=$(pgrep -P "$first")
sleep 0.3

# Sensors are planted by calls in the program, and stacks are read at their
# traps.
watched() {
	test_exit 0 timeout -s KILL 40 smco-trace -q -o a.trace -d 2 -p "$1" &&
		smco-report a.trace >report && cat report &&
		grep -q "sensors in glibc malloc" report &&
		! grep -q "does not come back" report &&
		grep -q "^TracerPid:.0$" "/proc/$1/status" &&
		! grep memfd:smco "/proc/$1/maps"
}
[ "$(sed -n 's/^NSpid:.*\t//p' "/proc/$one/status")" = 1 ] || exit 1
ok "the first process of a container" watched "$one"
ok "another one" watched "$two"
killed() {
	smco-trace -q -o k.trace -p "$1" &
	local smco=$!
	wait_for 10 grep -q memfd:smco "/proc/$1/maps" || { kill -9 $smco && return 1; }
	kill -9 $smco
	wait $smco
	watched "$1"
}
ok "killed and attached again, the first" killed "$one"
ok "killed and attached again, the other" killed "$two"
launched() {
	"$FIXTURES/forgetful-server" 2 >plain || return
	# Found in two seconds on a busy machine, too.
	SMCO_DEBUG=ptrace test_exit 0 timeout -s KILL 40 smco-trace -q \
		-t unlimited --nap 500ms -o l.trace -- \
		unshare -pf "$FIXTURES/forgetful-server" 2 \
		>inside 2>said || return
	smco-report l.trace >report
	cat report inside
	! grep "does not come back" said report &&
		grep -q "sensors in glibc malloc" report &&
		grep -q "^allocated\|    allocated .*forgetful-server.c" report &&
		[ "$(wc -l <plain)" = "$(wc -l <inside)" ]
}
ok "begun by what we launched" launched
# Threads call themselves 1, 2 and 3 in there. Short passings beyond the first of
# an interval have no record each (10): their thread's sum (12) says how many.
numbered() {
	test_exit 0 smco-trace -q -t unlimited --if-available --phase sdt:work:load \
		-o n.trace -- unshare -pf "$FIXTURES/phase-work" 30 10 2 "$1" &&
		smco-report --juwel n.trace >records || return
	awk 'function count_of(payload, i, n) {
			for (i = 15; i >= 8; i--)
				n = n * 256 + \
				    16 * index(hex, substr(payload, 2 * i + 1, 1)) + \
				    index(hex, substr(payload, 2 * i + 2, 1)) - 17
			return n
		}
		BEGIN { hex = "0123456789abcdef" }
		$1 == 5 { is_process[$5] }
		$1 == 10 { passed[$4]++ }
		$1 == 12 { passed[$4] += count_of($6); summed++ }
		END {
			for (t in passed) {
				print t, passed[t]
				nr++
				leaders += t in is_process
				whole += passed[t] == 30
			}
			print summed + 0, "sums"
			exit nr != 3 || leaders != 1 || whole != 3 ||
				(short && !summed)
		}' short="$2" records
}
ok "what a thread did is said of the number that we know it by" numbered 2000000
ok "and of short ones" numbered 1000 short
trap - EXIT
kill -9 "${pids[@]}"
done_testing
