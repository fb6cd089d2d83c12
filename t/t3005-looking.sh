#!/bin/bash
# Accessed bits and the kernel's record of written pages, looked at and reset
# all the time: nothing is closed, and every program of the matrix for guards
# has the output, status and results that it has without.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/guard-lib.sh"

works() { "$BUILD/t/unit/u-access" | grep -q "^# $1: works here"; }

# the_matrix NAME HITS WRITES - hits in guard_touch and in guard_syscalls.
the_matrix() {
	opt="-m $1"
	ok "$1: loads and stores" same guard_touch
	ok "$1: they were seen" counted guard_touch hits "$2"
	ok "$1: system calls" same guard_syscalls
	ok "$1: memory that they touched was seen" \
		counted guard_syscalls hits "$3"
	ok "$1: also from other threads, in the middle" \
		counted guard_syscalls looks 500
	ok "$1: the program's own faults and handlers" same guard_signals
	ok "$1: death by its own fault" same guard_signals null
	ok "$1: death by a signal sent to itself" same guard_signals raise
	ok "$1: fork, vfork, spawn, system, exec" same guard_fork
	ok "$1: threads wait in system calls" same guard_inflight
	ok "$1: where no stop reaches them" same guard_late
	ok "$1: how many threads a FUTEX_WAKE has woken" same guard_futex
	ok "$1: io_uring" same guard_uring
	ok "$1: io_uring with a polling kernel thread" same guard_uring poll
	ok "$1: io_uring with registered buffers" same guard_uring fixed
	ok "$1: kernel AIO" same guard_uring aio
	ok "$1: signal stacks" same guard_altstack
	ok "$1: signals to a thread on watched memory" same guard_stack
	ok "$1: on a stack that it has switched to" same guard_stack fiber
	ok "$1: an area for restartable sequences" same guard_rseq
	ok "$1: one from before" same guard_rseq early
	ok "$1: a program that adopts orphans" same guard_reaper
	ok "$1: unshare" same guard_reaper unshare
	opt="-m $1 -a"
	ok "$1: threads come and go" same guard_threads 300
	ok "$1: threads that meet at one block" same guard_same 300
	ok "$1: that one was touched" counted guard_same hits 5
	opt="-m $1 -a -d 5"
	ok "$1: detach in the middle leaves nothing" same guard_threads 300 maps
	ok "$1: kill -9 of the supervisor" killed "$1" "${SMCO_TEST_KILLS:-10}"
}

prereq_LOOKING() { works bits || works pagescan; }
need LOOKING
works bits && the_matrix bits 100 230
works pagescan && the_matrix pagescan 100 200

# Without CAP_SYS_NICE the bits are reset by calls that the program is made to
# do.
injected() {
	local drive=$SCRATCH/drive
	same "$@"
}
printf '#!/bin/sh\nexec setpriv --inh-caps -sys_nice --bounding-set -sys_nice %s "$@"\n' \
	"$drive" >drive && chmod +x drive
opt="-m bits"
if works bits && setpriv --bounding-set -sys_nice true; then
	ok "bits, by calls: loads and stores" injected guard_touch
	ok "bits, by calls: system calls" injected guard_syscalls
	ok "bits, by calls: threads wait in system calls" \
		injected guard_inflight
	ok "bits, by calls: io_uring with a polling kernel thread" \
		injected guard_uring poll
	ok "bits, by calls: the program's own faults" injected guard_signals
	opt="-m bits -a"
	ok "bits, by calls: threads come and go" injected guard_threads 300
fi

done_testing
