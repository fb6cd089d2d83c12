#!/bin/bash
# One run that perf stat and smco-trace count at once: each event the same.
. "$(dirname "$0")/test-lib.sh"
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

# both EVENTS CHILDREN - the counts of each in perf and us: "EVENT COUNT".
both() {
	local program perf us
	rm -f ctl ack
	mkfifo ctl ack
	"$FIXTURES/when-told" 200 "$2" &
	program=$!
	wait_for 5 grep -q '^State:[[:space:]]*T' "/proc/$program/status"
	perf stat -x, -o perf.csv -D -1 --control fifo:ctl,ack -e "$1" -p $program 2>perf.err &
	perf=$!
	exec 6<>ctl 7<>ack
	smco-trace -q -t unlimited -e "$1" -o c.trace -p $program 2>err &
	us=$!
	wait_for 5 traced $program $us
	echo enable >&6
	read -rn 3 -t 60 <&7 # "ack"
	kill -CONT $program
	wait $program && wait $perf && wait $us || return 1
	exec 6>&- 7>&-
	awk -F, '$1 ~ /^[0-9]+$/ { print $3, $1 }' perf.csv | sort >perf
	smco-report --json c.trace | perl -MJSON::PP -0777 -e '
		my $c = decode_json(<STDIN>)->{counters}[0];
		print "$c->{events}[$_]{name} $c->{counts}[$_]{count}\n" for 0 .. $#{$c->{events}}' |
		sort >us
}
# Who stands still is let run when it is counted, and not before.
traced() { # PROGRAM TRACER
	grep -q 'TracerPid:[[:space:]]*[1-9]' "/proc/$1/status" || ! kill -0 "$2"
}

# all CHILDREN - each of the names, some at a time; what was counted is in all.perf, all.us
all() {
	local few
	rm -f all.perf all.us
	while mapfile -t -n 64 few && [ ${#few[@]} -gt 0 ]; do
		both "$(IFS=,; echo "${few[*]}")" "$1" </dev/null || return 1
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
