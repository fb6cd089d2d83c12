/*
 * How long tasks are held in ptrace stops, seen where it happens: at each
 * context switch. A stop lasts from the switch away from the task in state
 * "traced" until the task is on a CPU again, so the time that it waits for the
 * CPU afterwards is in it. Tasks that were never stopped have no storage, so
 * their switches cost two loads and two compares.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "supervisor/probe/stopclock-bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define STATE_TRACED	 8
#define JOBCTL_LISTENING (1UL << 22)

struct task_struct {
	unsigned int ptrace;
	unsigned long jobctl;
	int tgid;
	struct task_struct *parent; /* the tracer, of a traced task */
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64); /* when its stop began, 0 = not stopped */
} since SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stopclock_sum);
} sums SEC(".maps");

int tracer_tgid; /* as the initial pid namespace counts */

/* Run once by the supervisor: which process's tracees count. */
SEC("syscall") int stopclock_mine(void *ctx)
{
	tracer_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(stopclock_switch, _Bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	if (prev->ptrace && prev_state & STATE_TRACED &&
	    prev->parent->tgid == tracer_tgid) {
		__u64 *t = bpf_task_storage_get(&since, prev, 0,
						BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (t)
			*t = bpf_ktime_get_ns();
	}
	/* Not "if traced": one that was detached in its stop counts too. */
	__u64 *t = bpf_task_storage_get(&since, next, 0, 0);
	if (!t || !*t)
		return 0;
	__u64 ns = bpf_ktime_get_ns() - *t;
	*t = 0;
	/* PTRACE_LISTEN: stopped by job control, not by us. */
	if (next->jobctl & JOBCTL_LISTENING)
		return 0;
	__u32 zero = 0;
	struct stopclock_sum *s = bpf_map_lookup_elem(&sums, &zero);
	if (!s)
		return 0;
	s->stop_ns += ns;
	s->nr_stops++;
	if (ns > s->longest_ns)
		s->longest_ns = ns;
	return 0;
}
