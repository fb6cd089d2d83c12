#!/bin/bash
# Guarded memory: the program's output, exit status and every system call's
# result are what they are without guards. SMCO_TEST_ATTACHES=200 for more of what
# depends on the moment.
. "$(dirname "$0")/test-lib.sh"

. "$SRC/t/guard-lib.sh"

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
ok "guarded while threads wait in system calls" same guard_inflight
if "$FIXTURES/guard_late" | grep -q EXIT-SUCCESS; then
	ok "guarded while one waits where no stop reaches it" same guard_late
	ok "all but what it waits for" counted guard_late hits 3
fi
ok "how many threads a FUTEX_WAKE has woken" same guard_futex
refused() {
	same "$@" && grep "refused: $why" "$1.err"
}
why="it uses io_uring or kernel AIO"
ok "io_uring: the program is left alone" refused guard_uring
ok "io_uring with a polling kernel thread" refused guard_uring poll
ok "io_uring with registered buffers" refused guard_uring fixed
ok "kernel AIO" refused guard_uring aio
ok "signal stacks set before" same guard_altstack
# A stack that is known is not guarded: its thread would meet that at once.
not_armed() { grep 'hits 0 .*gaps 0 ' "$1.err"; }
ok "signals to a thread whose stack is to be guarded" same guard_stack
ok "it was not" not_armed guard_stack
ok "to one that is far below on it" same guard_stack deep
ok "nor was that" not_armed guard_stack
ok "to one on a stack of its own choice" same guard_stack fiber0
ok "nor was what is around its stack pointer" not_armed guard_stack
ok "to one on a stack that it has switched to" same guard_stack fiber
ok "which was guarded" counted guard_stack hits 1
ok "an area for restartable sequences" same guard_rseq
ok "one from before the first guard" same guard_rseq early
through_the_tool() {
	"$FIXTURES/$1" "${@:3}" 1 >plain &&
		smco-trace -q -t 100 --nap 100ms --mechanism=mprotect \
			-o whole.trace -- "$FIXTURES/$1" "${@:3}" "$2" \
			>traced && cmp plain traced
}
ok "the same through the whole tool" through_the_tool guard_stack 600 fiber
ok "a child that reads and writes what its parent does not use" \
	through_the_tool guard_peers 30
# Through the whole tool: done without, and the report says so.
told() {
	local fixture=$1
	shift
	"$FIXTURES/$fixture" "$@" >plain &&
		smco-trace -q -t 100 --nap 100ms --mechanism=mprotect \
			-o refused.trace -- "$FIXTURES/$fixture" "$@" \
			>traced && cmp plain traced || return
	smco-report refused.trace >report
	cat report
	grep -q "no mprotect guards in process [0-9]*: $why" report
}
why="it uses io_uring"
ok "the report says that it was, and why" told guard_uring poll 1000
why="it lets another process"
ok "another process is let in, and reads" refused guard_shown
ok "the report says that it was, and why" told guard_shown 3000
why="the program adopts orphans"
ok "a program that would see the helper" refused guard_reaper
ok "unshare" same guard_reaper unshare
opt=-a
ok "threads come and go, everything guarded again at once" \
	same guard_threads 300
ok "they were hit" counted guard_threads hits 5
ok "threads that meet at one guard" same guard_same 300
ok "that one was hit" counted guard_same hits 5
ok "none of their faults reached the program" grep -q "faults 0 " guard_same.err
ok "threads that meet guards, of which one blocks SIGSEGV" same guard_masks 500
ok "those were hit" counted guard_masks hits 5
opt="-a -d 5"
ok "detach in the middle leaves nothing" same guard_threads 300 maps

# Threads stand in a fault, before its stop, at the moment of the detach: one
# time in fifty of the program's death if that is not taken back (u-guard-killed
# meets it each time).
left_in_a_storm() {
	local i
	"$FIXTURES/guard_storm" 10 >plain
	for ((i = 0; i < ${SMCO_TEST_ATTACHES:-10}; i++)); do
		timeout -k 2 20 "$drive" -a -d $((RANDOM % 20 + 1)) \
			"$FIXTURES/guard_storm" 30 >out 2>err || {
			echo "run $i: status $?, $(cat out err)"
			return 1
		}
		cmp plain out || return
	done
}
ok "detach while many threads meet guards" left_in_a_storm

done_testing
