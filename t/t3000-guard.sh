#!/bin/bash
# Guarded memory: the program's output, exit status and every system call's
# result are what they are without guards.
. "$(dirname "$0")/test-lib.sh"

drive=$BUILD/t/drive/guard-drive
make -s -C "$SRC" O="$O" "$O/t/drive/guard-drive" >build.out 2>&1 || cat build.out

# same FIXTURE [ARGUMENT...] - output and status guarded and not; driver
# options in $opt.
same() {
	local f=$1 want got
	shift
	"$FIXTURES/$f" "$@" >"$f.plain" 2>&1
	want=$?
	# shellcheck disable=SC2086
	"$drive" $opt "$FIXTURES/$f" "$@" >"$f.guarded" 2>"$f.err"
	got=$?
	cat "$f.err"
	[ $want = $got ] || {
		echo "status $got, without guards $want"
		return 1
	}
	diff "$f.plain" "$f.guarded"
}
# counted FIXTURE WHAT MINIMUM - from the driver's summary of the last run.
counted() {
	local n
	n=$(sed -n "s/.*\<$2 \([0-9]*\).*/\1/p" "$1.err")
	echo "$2: ${n:-none}"
	[ "${n:-0}" -ge "$3" ]
}

ok "loads and stores" same guard_touch
ok "each of them was a hit" counted guard_touch hits 108
ok "stores are told from loads" counted guard_touch writes 100
ok "system calls on guarded memory" same guard_syscalls
ok "they were hits in the kernel" counted guard_syscalls kernel 80

ok "the program's own faults and handlers" same guard_signals
ok "none was taken for a guard's" counted guard_signals faults 12
ok "death by its own fault" same guard_signals null
ok "death by a signal sent to itself" same guard_signals raise
ok "fork, vfork, spawn, system, exec" same guard_fork
opt=-a
ok "threads come and go, everything guarded again at once" \
	same guard_threads 300
ok "they were hit often" counted guard_threads hits 100
opt="-a -d 50"
ok "detach in the middle leaves nothing" same guard_threads 300 maps

done_testing
