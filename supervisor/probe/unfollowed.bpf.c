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

#define GROUP_EXIT 4 /* all threads end with the group's status */

struct signal_struct {
	struct {
		int counter;
	} live; /* threads that have not ended */
	int group_exit_code;
	unsigned int flags;
} __attribute__((preserve_access_index));

struct sched_entity {
	__u64 sum_exec_runtime, nr_migrations;
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int __state;
	struct sched_entity se;
	unsigned long nvcsw, nivcsw, min_flt, maj_flt;
	unsigned int ptrace;
	int exit_code;
	int pid;
	int tgid;
	void *mm;
	struct task_struct *parent; /* the tracer, of a traced task */
	struct task_struct *group_leader;
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
	__type(value, __u32); /* which sum */
} ending SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNFOLLOWED_SLOTS);
	__type(key, __u32);
	__type(value, struct unfollowed_counted);
} counted SEC(".maps");

/* What was counted of a thread by us, up to when its process was let go. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct unfollowed_counted);
} before SEC(".maps");

extern struct task_struct *bpf_task_from_pid(int pid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;

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
	struct unfollowed_one one = {.born_ns = bpf_ktime_get_ns(),
				     .owner = owner};
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
	if (!is_traced && (!its || its->has_ended))
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
	if (!one)
		return 0;
	leaves_memory(one);
	one->nr_execs++;
	return 0;
}

static __always_inline struct unfollowed_counted
now(const struct task_struct *p)
{
	/* But for the switch that it leaves its CPU by, which nobody counts. */
	return (struct unfollowed_counted){p->se.sum_exec_runtime, p->min_flt,
					   p->maj_flt, p->nvcsw + p->nivcsw - 1,
					   p->se.nr_migrations};
}

/* What @p has done, but for what was counted before, goes into a sum. */
static __always_inline void sum_up(__u32 slot, struct task_struct *p)
{
	struct unfollowed_counted *s = bpf_map_lookup_elem(&counted, &slot);
	struct unfollowed_counted c = now(p);
	struct unfollowed_counted *b = bpf_task_storage_get(&before, p, 0, 0);
	if (!s)
		return;
	if (b) {
		c.run_ns -= b->run_ns;
		c.minor_faults -= b->minor_faults;
		c.major_faults -= b->major_faults;
		c.switches -= b->switches;
		c.migrations -= b->migrations;
	}
	__sync_fetch_and_add(&s->run_ns, c.run_ns);
	__sync_fetch_and_add(&s->minor_faults, c.minor_faults);
	__sync_fetch_and_add(&s->major_faults, c.major_faults);
	__sync_fetch_and_add(&s->switches, c.switches);
	__sync_fetch_and_add(&s->migrations, c.migrations);
}

/* Run by the supervisor; returns 0 if the thread is there. */
SEC("syscall") int unfollowed_thread(struct unfollowed_thread *t)
{
	struct task_struct *p = bpf_task_from_pid(t->tid);
	struct unfollowed_counted *b;
	if (!p)
		return -1;
	if (t->is_back) {
		sum_up(t->slot, p);
		bpf_task_storage_delete(&before, p);
	} else {
		b = bpf_task_storage_get(&before, p, 0,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (b) {
			*b = now(p);
			b->switches++; /* that into the stop is none */
		}
	}
	bpf_task_release(p);
	return 0;
}

/* It has yet to do some of its ending, which is counted with it. */
static __always_inline void will_end(const struct task_struct *p)
{
	struct unfollowed_sums *s = get_sums();
	int pid = p->pid, tgid = p->tgid;
	struct unfollowed_one *one = bpf_map_lookup_elem(&all, &tgid);
	if (!one)
		one = bpf_map_lookup_elem(&all, &pid);
	if (!one)
		return;
	__u32 slot = one->slot;
	if (s && !bpf_map_update_elem(&ending, &pid, &slot, BPF_ANY))
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
	if (!s || !s->nr_ending)
		return 0;
	__u32 *its = bpf_map_lookup_elem(&ending, &pid);
	__u32 slot = its ? *its : 0;
	if (!its || bpf_map_delete_elem(&ending, &pid))
		return 0;
	sum_up(slot, prev);
	__sync_fetch_and_add(&s->nr_ending, -1);
	return 0;
}

/* The last thread of @p's process ends. */
static __always_inline void process_ends(const struct task_struct *p)
{
	int tgid = p->tgid;
	struct unfollowed_one *one = bpf_map_lookup_elem(&all, &tgid);
	if (!one || !one->slot) {
		remove(tgid);
		return;
	}
	one->exit_status = p->signal->flags & GROUP_EXIT
				   ? p->signal->group_exit_code
				   : p->group_leader->exit_code;
	__sync_fetch_and_add(&one->has_ended, 1);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(unfollowed_exit, struct task_struct *p)
{
	if (counts)
		will_end(p);
	if (p->pid != p->tgid)
		remove(p->pid);
	if (!p->signal->live.counter)
		process_ends(p);
	return 0;
}
