#!/bin/bash
# One run that perf stat and smco-trace count at once: each event the same.
. "$(dirname "$0")/test-lib.sh"
. "$SRC/t/same-run-lib.sh"
need PTRACE

# What a stop is to the kernel (switches, moves, interrupts, RCU) is counted by
# perf stat here, for it is told of ours; t7005 has that.
patterns=(page-faults minor-faults major-faults 'syscalls:sys_*_'{openat,write,pread64,ftruncate}
	'syscalls:sys_*_'{read,close,pipe2,rename,unlink,mkdir,rmdir,mmap,munmap,clone,wait4}
	'raw_syscalls:*' 'kmem:*' 'memcg:*'
	'filemap:*' 'pagemap:*' 'maple_tree:*' 'mmap_lock:*' 'percpu:*' 'writeback:*' 'skb:*'
	'task:*' 'exceptions:*' 'vmalloc:*' 'capability:*' 'ext4:*' 'jbd2:*' 'timestamp:*'
	sched:sched_process_fork sched:sched_process_exit sched:sched_process_wait)
could_be_counted() {
	local p
	for p in "${patterns[@]}"; do smco-trace --list-events "$p" 2>/dev/null; done |
		awk '$1 == "yes" { print $2 }' | grep -v '^syscalls-'
}
could_be_counted >names
if ! command -v perf >/dev/null || ! perf stat -e "$(tail -n 1 names)" true 2>perf.err ||
	! grep -q : names; then
	TAP_NR=$((TAP_NR + 1))
	echo "ok $TAP_NR # SKIP no tracepoints, or no perf (linux-perf) to compare with"
	done_testing
	exit
fi

# all CHILDREN - each of the names, some at a time; what was counted is in all.perf, all.us
all() {
	local few
	rm -f all.perf all.us
	while mapfile -t -n 64 few && [ ${#few[@]} -gt 0 ]; do
		# An interrupt that comes when only one of them counts yet is in
		# its counts: not in each run.
		for _ in 1 2 3; do
			both "$(IFS=,; echo "${few[*]}")" "$1" </dev/null || return 1
			! cmp -s perf us || break
		done
		cat perf >>all.perf
		cat us >>all.us
	done <names
	diff all.perf all.us && [ "$(wc -l <names)" = "$(wc -l <all.us)" ]
}
# So that the same of nothing is not the same: many of them happened.
happened() { [ "$(awk '$2 > 0' all.us | wc -l)" -ge "$1" ]; }

ok "each event of a program with children is as perf stat counts it in the same run" all 5
ok "many kinds of them happened" happened 40
done_testing
