#!/bin/bash
# userfaultfd write-protection: the same programs, the same results; writes
# are seen, also those of system calls; nothing is left by the supervisor's
# death.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/guard-lib.sh"

prereq_UFFD() { [ "$(id -u)" = 0 ] && [ -e /dev/userfaultfd ]; }
need UFFD

opt="-m uffd"
ok "loads and stores" same guard_touch
ok "each store was a hit" counted guard_touch hits 104
ok "all hits were stores" counted guard_touch writes 104
ok "system calls on guarded memory" same guard_syscalls
ok "those that write were hits in the kernel" counted guard_syscalls kernel 30
ok "the program's own faults and handlers" same guard_signals
ok "death by its own fault" same guard_signals null
ok "fork, vfork, spawn, system, exec" same guard_fork
ok "guarded while threads wait in system calls" same guard_inflight
ok "where no stop reaches them" same guard_late
ok "how many threads a FUTEX_WAKE has woken" same guard_futex
ok "io_uring" same guard_uring
ok "each of its reads was a hit in the kernel" counted guard_uring kernel 20
ok "io_uring with a polling kernel thread" same guard_uring poll
ok "io_uring with registered buffers" same guard_uring fixed
ok "kernel AIO" same guard_uring aio
ok "signal stacks set before" same guard_altstack
ok "signals to a thread whose stack is to be guarded" same guard_stack
ok "far below on it" same guard_stack deep
ok "on a stack that it has switched to" same guard_stack fiber
ok "an area for restartable sequences" same guard_rseq
ok "one from before the first guard" same guard_rseq early
ok "unshare" same guard_reaper unshare
opt="-m uffd -a"
ok "threads come and go, everything guarded again at once" \
	same guard_threads 300
ok "they were hit" counted guard_threads hits 5
ok "threads that meet at one guard" same guard_same 300
ok "that one was hit" counted guard_same hits 5
opt="-m uffd -a -d 5"
ok "detach in the middle leaves nothing" same guard_threads 300 maps

# The descriptor comes through /dev/userfaultfd then.
as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$drive" -m uffd "$FIXTURES/guard_touch"
}
unprivileged() {
	"$FIXTURES/guard_touch" >plain || return
	chmod 755 . && timeout 30 "$drive" -m uffd setpriv --reuid=65534 \
		--regid=65534 --clear-groups "$FIXTURES/guard_touch" \
		>nobody 2>nobody.err
	cat nobody.err
	diff plain nobody && grep -q "hits 104" nobody.err
}
ok "a program that may not create one itself" unprivileged
without() {
	as_nobody >out 2>&1
	cat out
	grep -q "needs CAP_SYS_PTRACE" out
}
ok "without any right to one: said, with the fix" without
ok "kill -9 of the supervisor" killed uffd "${SMCO_TEST_KILLS:-40}"

done_testing
