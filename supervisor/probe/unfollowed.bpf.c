/*
 * Who is born to a process that we trace, but untraced, since its births are
 * not followed; and who is born to those. Seen where it happens, before the
 * first instruction of a newborn, so that nobody changes text that it runs in.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "supervisor/probe/unfollowed-bpf.h"

#define STATE_DEAD 128 /* it does not come back */

char LICENSE[] SEC("license") = "GPL";

struct signal_struct {
	struct {
		int counter;
	} live; /* threads that have not ended */
} __attribute__((preserve_access_index));

struct sched_entity {
	__u64 sum_exec_runtime, nr_migrations;
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int __state;
	struct sched_entity se;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	unsigned int ptrace;
	int pid;
	int tgid;
	void *mm;
	struct task_struct *parent; /* the tracer, of a traced task */
	struct signal_struct *signal;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNFOLLOWED_MAX);
	__type(key, int);
	__type(value, struct unfollowed_one);
} all SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unfollowed_sums);
} sums SEC(".maps");

/* Threads that have begun to end, and are to be counted. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNFOLLOWED_MAX);
	__type(key, int);
	__type(value, __u8);
} ending SEC(".maps");

static int tracer_tgid, counts;

static __always_inline struct unfollowed_sums *get_sums(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&sums, &zero);
}

/* Run once by the supervisor: whose tracees count. */
SEC("syscall") int unfollowed_mine(struct unfollowed_setup *setup)
{
	tracer_tgid = bpf_get_current_pid_tgid() >> 32;
	counts = setup->counts;
	return 0;
}

static __always_inline void add(int pid, __u32 owner)
{
	struct unfollowed_one one = {bpf_ktime_get_ns(), owner, 0};
	struct unfollowed_sums *s = get_sums();
	int r = bpf_map_update_elem(&all, &pid, &one, BPF_ANY);
	if (!s)
		return;
	__sync_fetch_and_add(r ? &s->nr_lost : &s->nr_born, 1);
	if (!r && owner)
		__sync_fetch_and_add(&s->nr_sharing, 1);
}

static __always_inline void leaves_memory(struct unfollowed_one *one)
{
	struct unfollowed_sums *s = get_sums();
	if (!one->owner)
		return;
	one->owner = 0;
	if (s)
		__sync_fetch_and_add(&s->nr_sharing, -1);
}

static __always_inline void remove(int pid)
{
	struct unfollowed_one *one = bpf_map_lookup_elem(&all, &pid);
	if (!one)
		return;
	leaves_memory(one);
	bpf_map_delete_elem(&all, &pid);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(unfollowed_fork, struct task_struct *parent,
	     struct task_struct *child)
{
	int tgid = parent->tgid;
	if (!tracer_tgid || child->ptrace)
		return 0;
	int is_traced = parent->ptrace && parent->parent->tgid == tracer_tgid;
	struct unfollowed_one *its = 0;
	if (!is_traced)
		its = bpf_map_lookup_elem(&all, &tgid);
	if (!is_traced && !its)
		return 0;
	if (child->tgid == tgid && !is_traced)
		return 0; /* one of its own threads */
	__u32 owner = 0;
	if (child->mm == parent->mm)
		owner = its && its->owner ? its->owner : (__u32)tgid;
	add(child->pid, owner);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(unfollowed_exec, struct task_struct *p)
{
	int tgid = p->tgid;
	struct unfollowed_one *one = bpf_map_lookup_elem(&all, &tgid);
	if (one)
		leaves_memory(one);
	return 0;
}

/* It has yet to do some of its ending, which is counted with it. */
static __always_inline void will_end(const struct task_struct *p)
{
	struct unfollowed_sums *s = get_sums();
	int pid = p->pid, tgid = p->tgid;
	__u8 one = 1;
	if (!bpf_map_lookup_elem(&all, &tgid) &&
	    !bpf_map_lookup_elem(&all, &pid))
		return;
	if (s && !bpf_map_update_elem(&ending, &pid, &one, BPF_ANY))
		__sync_fetch_and_add(&s->nr_ending, 1);
}

/* Only where counts are wanted: it is at each switch of the machine. */
SEC("tp_btf/sched_switch")
int BPF_PROG(unfollowed_switch, _Bool preempt, struct task_struct *prev)
{
	if (!(prev->__state & STATE_DEAD))
		return 0;
	struct unfollowed_sums *s = get_sums();
	int pid = prev->pid;
	if (!s || !s->nr_ending || bpf_map_delete_elem(&ending, &pid))
		return 0;
	__sync_fetch_and_add(&s->run_ns, prev->se.sum_exec_runtime);
	__sync_fetch_and_add(&s->minor_faults, prev->min_flt);
	__sync_fetch_and_add(&s->major_faults, prev->maj_flt);
	/* But for this one, which nobody counts. */
	__sync_fetch_and_add(&s->switches, prev->nvcsw + prev->nivcsw - 1);
	__sync_fetch_and_add(&s->migrations, prev->se.nr_migrations);
	__sync_fetch_and_add(&s->nr_ending, -1);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(unfollowed_exit, struct task_struct *p)
{
	if (counts)
		will_end(p);
	if (p->pid != p->tgid)
		remove(p->pid);
	if (!p->signal->live.counter)
		remove(p->tgid);
	return 0;
}
