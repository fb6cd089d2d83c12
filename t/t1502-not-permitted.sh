#!/bin/bash
# Attaching is not permitted: one line says what forbids it and what helps, the
# status is 125, and the program is left alone.
. "$(dirname "$0")/test-lib.sh"
need PTRACE
prereq_MOUNT() { prereq_ROOT && unshare -m true; }
prereq_USERNS() { prereq_ROOT && unshare -Ur true; }
chmod 755 . # for those that are not root
cp "$BUILD/smco-trace" "$FIXTURES/without" .
mkdir -m 777 traces
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)

# A target, in $pid: COMMAND... that says "ready".
target() {
	rm -f ready
	"$@" >ready &
	pid=$!
	trap 'kill $pid' EXIT
	wait_for 10 grep -q ready ready
}
sleeper='$| = 1; print "ready\n"; sleep 600'

# refused PATTERN COMMAND... - the command is to attach to $pid
refused() {
	local pattern=$1 status
	shift
	timeout 20 "$@" -q -o traces/t -p "$pid" >out 2>err
	status=$?
	cat out err
	[ $status -eq 125 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] &&
		grep -qE "^smco-trace: .*process $pid .*$pattern|$pattern" err &&
		grep -q "^TracerPid:.0$" "/proc/$pid/status" && kill -0 "$pid"
}

target perl -e "$sleeper"
ok "by a filter, as a container's" refused \
	'seccomp filter, probably a container.s; start it with --cap-add' \
	./without ptrace ./smco-trace
tracer() {
	gdb -nx -batch -p "$pid" -ex 'shell touch attached; sleep 100' >gdb.out 2>&1 &
	local gdb=$!
	# Killed before it is ready, gdb may take its target along.
	wait_for 60 test -e attached && grep "TracerPid:.$gdb" "/proc/$pid/status" || return
	timeout 20 ./smco-trace -q -o traces/t -p "$pid" 2>err
	local status=$?
	cat err
	kill "$gdb" "$(pgrep -P "$gdb")"
	wait "$gdb"
	[ $status -eq 125 ] && grep -q "traced by process $gdb (gdb) already" err
}
! command -v gdb >/dev/null || ok "another tracer has it" tracer
# The command is its child, and so another tracer's already.
below_another() {
	smco-trace -q -o outer -- smco-trace -q -o inner -- echo hi >out 2>err
	local status=$?
	cat out err
	[ $status -eq 125 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] &&
		grep -q 'is traced by process [0-9]* (smco-trace) already' err
}
ok "another tracer has smco-trace itself" below_another
if prereq_ROOT; then
	ok "another user's" refused \
		'belongs to user 0, we are 65534 .*; run as that user or as root' \
		"${nobody[@]}" ./smco-trace
fi
# Root inside, nobody outside.
if prereq_USERNS; then
	ok "outside of the container" refused \
		'outside of the user namespace .* run smco-trace outside' \
		unshare -Ur ./smco-trace
	ok "where /proc is another PID namespace's" refused \
		'/proc has the numbers of another PID namespace' \
		unshare -Urpf ./smco-trace
fi
kill "$pid"

if prereq_ROOT; then
	# PR_SET_DUMPABLE
	target "${nobody[@]}" perl -e 'syscall(157, 4, 0);'"$sleeper"
	ok "not dumpable" refused 'protected \(not dumpable.*run as root' \
		"${nobody[@]}" ./smco-trace
	kill "$pid"
fi

# What Yama says is a file; that it forbids, the filter's doing.
if prereq_MOUNT; then
	target "${nobody[@]}" perl -e "$sleeper"
	yama() {
		# shellcheck disable=SC2016
		refused "$2" unshare -m sh -c 'scope=$1; shift
			mount -t tmpfs none /proc/sys/kernel &&
			mkdir /proc/sys/kernel/yama &&
			echo $scope >/proc/sys/kernel/yama/ptrace_scope &&
			exec "$@"' - "$1" "${nobody[@]}" ./without ptrace \
			./smco-trace
	}
	ok "Yama: descendants only" yama 1 \
		'ptrace_scope is 1: only descendants.* smco-trace -- CMD, or sysctl kernel.yama.ptrace_scope=0'
	ok "Yama: root only" yama 2 \
		'ptrace_scope is 2: only root.*run as root, or sysctl'
	ok "Yama: nobody" yama 3 \
		'ptrace_scope is 3: nobody may trace until the next boot'
	# shellcheck disable=SC2016
	ok "where /proc is not mounted" refused 'there is no /proc here' \
		unshare -m sh -c 'umount -l /proc && exec "$@"' - ./smco-trace
	kill "$pid"
fi
trap - EXIT

done_testing
