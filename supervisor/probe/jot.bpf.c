/*
 * Counts of threads, written down by the kernel: when a thread leaves its CPU,
 * and by the scheduler's tick when one runs on from one interval into the next.
 * Both are moments in which the CPU is at this thread anyway. What its events
 * count the kernel puts into the ring of one of them, all of a group at once.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "supervisor/probe/jot-bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* So often in an interval each time, then no more than PER_INTERVAL times. */
#define FREE_TIMES   2
#define PER_INTERVAL 4
/* A tick comes just before a thread has to leave its CPU as a rule, where this
 * is cheaper: it waits for so large a part of an interval. */
#define LATE_PART 4

struct task_struct {
	int pid;
} __attribute__((preserve_access_index));

/* Which slot has the thread of that number, of the initial namespace? */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, JOT_MAX_THREADS);
	__type(key, int);
	__type(value, __u32);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, JOT_MAX_THREADS);
	__type(key, __u32);
	__type(value, struct jot_slot);
} slots SEC(".maps");

/* The events whose rings they go to: JOT_MAX_GROUPS of each slot. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, JOT_MAX_THREADS *JOT_MAX_GROUPS);
	__type(key, __u32);
	__type(value, __u32);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct jot_grid);
} grid SEC(".maps");

static __always_inline struct jot_grid *get_grid(void)
{
	__u32 zero = 0;
	struct jot_grid *g = bpf_map_lookup_elem(&grid, &zero);
	return g && g->interval_ns ? g : 0;
}

static __always_inline struct jot_slot *find(int pid, __u32 *nr_ret)
{
	__u32 *nr = bpf_map_lookup_elem(&threads, &pid);
	if (!nr)
		return 0;
	*nr_ret = *nr;
	return bpf_map_lookup_elem(&slots, nr);
}

/* What the current thread has counted, now. */
static __always_inline void write_down(void *ctx, struct jot_slot *s, __u32 nr,
				       __u64 now_ns, int leaves)
{
	struct jot_note note = {
		.at_ns = now_ns,
		.first_ns = s->first_ns,
		.leaves = leaves,
		.arrived_ns = s->arrived_ns,
	};
	int any = 0;
	/* A group that does not count, or is not there, refuses. */
	for (__u32 i = 0; i < JOT_MAX_GROUPS; i++)
		if (!bpf_perf_event_output(ctx, &rings, nr * JOT_MAX_GROUPS + i,
					   &note, sizeof(note)))
			any = 1;
	if (!any)
		return;
	s->written_ns = now_ns;
	s->nr_written++;
	s->first_ns = leaves ? 0 : now_ns;
}

static __always_inline void leaves(void *ctx, const struct jot_grid *g,
				   struct jot_slot *s, __u32 nr, __u64 now_ns)
{
	if (s->written_ns < jot_edge(g, now_ns))
		s->nr_written = 0;
	if (s->nr_written < FREE_TIMES ||
	    now_ns - s->written_ns >= g->interval_ns / PER_INTERVAL)
		write_down(ctx, s, nr, now_ns, 1);
	s->left_ns = now_ns;
}

SEC("tp_btf/sched_switch")
int jot_switch(unsigned long long *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	__u64 now_ns = bpf_ktime_get_ns();
	struct jot_grid *g = get_grid();
	__u32 nr;
	if (!g)
		return 0;
	struct jot_slot *s = find(prev->pid, &nr);
	if (s) {
		leaves(ctx, g, s, nr, now_ns);
		s->cost_ns += bpf_ktime_get_ns() - now_ns;
	}
	s = find(next->pid, &nr);
	if (s) {
		__u64 at_ns = bpf_ktime_get_ns();
		s->arrived_ns = at_ns;
		if (!s->first_ns)
			s->first_ns = at_ns;
		/* Where prev had none, what came before is its, too. */
		s->cost_ns += at_ns - now_ns;
	}
	return 0;
}

SEC("tp_btf/local_timer_entry")
int jot_tick(unsigned long long *ctx)
{
	int pid = (int)bpf_get_current_pid_tgid();
	__u32 nr;
	if (!pid)
		return 0;
	__u64 now_ns = bpf_ktime_get_ns();
	struct jot_grid *g = get_grid();
	struct jot_slot *s = g ? find(pid, &nr) : 0;
	if (!s)
		return 0;
	__u64 edge_ns = jot_edge(g, now_ns);
	if (s->written_ns < edge_ns && s->arrived_ns < edge_ns &&
	    now_ns - edge_ns >= g->interval_ns / LATE_PART) {
		s->nr_written = 0;
		write_down(ctx, s, nr, now_ns, 0);
	}
	s->cost_ns += bpf_ktime_get_ns() - now_ns;
	return 0;
}
