# shellcheck shell=bash
# Sourced by t1*.sh after test-lib.sh: programs under nothing but the engine.

DRIVE=$BUILD/t/drive/engine-drive
make -s -C "$SRC" O="$O" "$O/t/drive/engine-drive" >build.out 2>&1 ||
	sed 's/^/# /' build.out

# start FIXTURE ARGS... - in the background, until it has said "ready"; its
# pid is in $pid, its output in ./out.
start() {
	local fixture=$1
	shift
	rm -f out err # or the last one's "ready" would do
	"$FIXTURES/$fixture" "$@" >out 2>err &
	pid=$!
	wait_for 10 grep -q ready out
}

# finish - the started program ends well and said so.
finish() {
	wait "$pid"
	local status=$?
	[ $status -eq 0 ] && grep -q EXIT-SUCCESS out && return
	echo "status $status:"
	head -n 20 out
	return 1
}

# drive ARGS... - our own driver, whose errors count.
drive() {
	timeout 100 "$DRIVE" "$@" 2>drive.err || {
		cat drive.err
		return 1
	}
	cat drive.err >&2
	! grep -q engine-drive: drive.err
}

# state PID - letter of /proc/PID/stat
state() {
	sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"
}

# untouched PID - nobody traces any thread, and none is left in a trace stop.
untouched() {
	local task bad=0
	for task in "/proc/$1/task"/*; do
		grep -q '^TracerPid:[[:space:]]*0$' "$task/status" 2>/dev/null ||
			[ ! -e "$task" ] || {
			echo "$task is traced"
			bad=1
		}
		grep -q '^State:[[:space:]]*t' "$task/status" 2>/dev/null && {
			echo "$task is left in a trace stop"
			bad=1
		}
	done
	return $bad
}

# layout PID - its mappings without their sizes of stacks and heaps: names,
# protections of what comes from files.
layout() {
	awk '$6 ~ /^\// || $6 ~ /vdso/ { print $2, $3, $6 }' "/proc/$1/maps"
	awk '$6 == "" { n[$2]++ } END { for (p in n) if (p ~ /x/) print p, n[p] }' \
		"/proc/$1/maps"
}
