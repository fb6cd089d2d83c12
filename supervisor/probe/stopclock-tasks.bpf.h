/*
 * stopclock-tasks.bpf.h - for stopclock.bpf.c: what is kept of tasks, those
 * that we trace and those that have to do with them. All room for it is there
 * from the start, for to get more of it while a traced task runs is done by the
 * kernel in interrupts of that task. Tasks of which nothing is kept cost a load
 * of one of the marks.
 */
#ifndef SMCO_STOPCLOCK_TASKS_H
#define SMCO_STOPCLOCK_TASKS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "supervisor/probe/stopclock-bpf.h"

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct sched_info {
	unsigned long pcount; /* times it was given a CPU */
	unsigned long long
		last_arrival;		/* on a CPU; by the run queue's clock */
	unsigned long long last_queued; /* 0 = not waiting */
	unsigned long long run_delay;	/* all waits before that, ns */
} KERNEL_TYPE;

struct sched_entity {
	unsigned long long sum_exec_runtime;
} KERNEL_TYPE;

struct kernel_siginfo {
	int si_code; /* of a stop: signal | event << 8, or the signal's own */
} KERNEL_TYPE;

struct task_struct {
	struct sched_entity se;
	struct sched_info sched_info;
	struct kernel_siginfo *last_siginfo; /* in a stop */
	unsigned int ptrace;
	unsigned long jobctl;
	int pid; /* 0: the idle task */
	int tgid;
	struct task_struct *parent; /* the tracer, of a traced task */
} KERNEL_TYPE;

/* For CPUs, of one task. */
struct waits {
	__u64 ns;      /* as far as they were looked at; 0 = not known */
	__s64 free_ns; /* free_ns() when it left its CPU or was woken up */
	__u64 woke;    /* the latter */
};

struct stopped {
	__u64 since;	  /* when its stop began, 0 = not stopped */
	__u64 exec_ns;	  /* CPU time when it last slept or was let go */
	__u64 run_delay;  /* what it had waited for CPUs by then, ns */
	__u64 pcount;	  /* and how often it had got one */
	__u64 undecided;  /* ns of stops that count if it does not sleep now */
	__u64 stood_ns;	  /* standing_ns() when the first of them began, */
	__u64 slept_ns;	  /* and slept_total_ns */
	__u16 is_known;	  /* it was seen to leave a CPU before, and traced */
	__u16 nr_back;	  /* times it came back from one, up to 2 */
	__u16 slept;	  /* and did not do anything since exec_ns */
	__u16 was_asleep; /* when it was asked to stop */
	__u16 is_lent;	  /* it was let go for us, and did not stop since */
	__u64 theirs_ns;  /* theirs_ns() when its stop began */
	__u64 stolen_ns;  /* stolen_here() then, */
	__u64 cpu;	  /* of this CPU */
	__u64 told_ns;	  /* of its waits */
};

struct partner {
	__u64 is_one;  /* it woke a traced task */
	__u64 exec_ns; /* CPU time when it did last */
};

struct kept {
	struct stopped stop;
	struct partner partner;
	struct waits waits;
	__u64 known_ns; /* when a traced task woke it, or was woken by it,
			   last; 0 = never */
};

/* By key_of() a task. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STOPCLOCK_MAX_TASKS);
	__type(key, __u64);
	__type(value, struct kept);
} tasks SEC(".maps");

/* How many of these there are by eleven bits of the key's: 0 says that there is
 * no need to look one up. */
#define MARKS_BITS 11
__u32 marks[1 << MARKS_BITS];
__u64 nr_kept;
/* Those that we do not trace may have no more than so many. */
__u64 max_with_others;
static const struct kept nothing;

/* Its own from its birth to its end: where it is, as seen from the marks, for
 * only as a distance an address is a number to the kernel's verifier. */
static __always_inline __u64 key_of(const struct task_struct *t)
{
	__u64 key = (__u64)t, from = (__u64)marks;
	asm("%0 -= %1" : "+r"(key) : "r"(from));
	return key;
}

static __always_inline __u32 *mark_of(__u64 key)
{
	return &marks[key * 0x9e3779b97f4a7c15ULL >> (64 - MARKS_BITS)];
}

/* What is kept of @t; 0 = nothing. */
static __always_inline struct kept *kept_of(struct task_struct *t)
{
	__u64 key = key_of(t);
	if (!*mark_of(key))
		return 0;
	return bpf_map_lookup_elem(&tasks, &key);
}

/* From now on something is kept of @t. 0 = there is no room. */
static __always_inline struct kept *keep(struct task_struct *t, int is_traced)
{
	struct kept *k = kept_of(t);
	__u64 key = key_of(t);
	if (k || (!is_traced && nr_kept >= max_with_others))
		return k;
	if (!bpf_map_update_elem(&tasks, &key, &nothing, BPF_NOEXIST)) {
		__sync_fetch_and_add(mark_of(key), 1);
		__sync_fetch_and_add(&nr_kept, 1);
	}
	return bpf_map_lookup_elem(&tasks, &key);
}

/* @t, of which @k is kept, has left its CPU for ever. Another one may be where
 * it was soon: to it nothing must be left, also where the kernel does not get
 * the lock that it wants here. */
static __always_inline void forget(struct task_struct *t, struct kept *k)
{
	__u64 key = key_of(t);
	__builtin_memset(k, 0, sizeof(*k));
	if (bpf_map_delete_elem(&tasks, &key))
		return;
	__sync_fetch_and_add(mark_of(key), -1);
	__sync_fetch_and_add(&nr_kept, -1);
}

#endif
