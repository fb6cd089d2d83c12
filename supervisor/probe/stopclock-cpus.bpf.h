/*
 * stopclock-cpus.bpf.h - for stopclock.bpf.c: who has the CPUs, the supervisor,
 * those that it traces, or others, and how much of them they had so far.
 */
#ifndef SMCO_STOPCLOCK_CPUS_H
#define SMCO_STOPCLOCK_CPUS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "supervisor/probe/stopclock-bpf.h"

/* Judged by itself: the kernel's verifier does not go on by each of the ways
 * through it. It takes numbers only. */
#define APART __attribute__((noinline))

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stopclock_sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stopclock_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stopclock_told);
} told SEC(".maps");

/* What clocks that are not read together may differ. */
#define CLOCK_SLACK_NS 20000

volatile int always_0;	/* but the verifier does not know */
int tracer_tgid;	/* as the initial pid namespace counts */
__u64 our_total_ns;	/* the supervisor's CPU time, up to when it last ran */
__u64 our_arrival_ns;	/* of its latest thread on a CPU; 0 = it does not run */
__u64 our_displaced_ns; /* of all CPUs */
/* CPU time of all traced tasks so far: this, and now for each that runs. */
__u64 theirs_offset_ns, theirs_nr;

static __always_inline struct stopclock_sum *get_sum(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&sums, &zero);
}

static __always_inline struct stopclock_cpu *get_cpu(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline struct stopclock_told *get_told(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&told, &zero);
}

/* The supervisor's CPU time so far. */
static __always_inline __u64 our_ns(void)
{
	__u64 since = our_arrival_ns;
	return our_total_ns + (since ? bpf_ktime_get_ns() - since : 0);
}

/* What of that has kept nobody from running so far. */
static __always_inline __s64 free_ns(void)
{
	return (__s64)(our_ns() - our_displaced_ns);
}

/* Many may wait at the same time; only one could have run where we did, so all
 * together missed no more than we ran. */
APART __u64 displaced(__u64 waited, __s64 free_then)
{
	struct stopclock_sum *s = get_sum();
	__s64 ns = free_ns() - free_then;
	if (!s || ns <= 0)
		return 0;
	if ((__u64)ns > waited)
		ns = (__s64)waited;
	s->displaced_ns += ns;
	__sync_fetch_and_add(&our_displaced_ns, ns);
	return ns;
}

static __always_inline void count_displaced(void)
{
	struct stopclock_sum *s = get_sum();
	if (s)
		s->nr_displaced++;
}

/* The supervisor is off the CPU, on which it arrived at c->arrived_ns. Its
 * thread has had @used_ns of CPUs by now, which leaves out what a host took of
 * them: that it would have taken from whoever were here instead of us. */
static __always_inline void count_ours(struct stopclock_cpu *c, __u64 used_ns)
{
	__u64 ns = bpf_ktime_get_ns() - c->arrived_ns;
	__u64 had_ns = used_ns - c->used_ns;
	c->ran_ns += ns;
	if (had_ns + CLOCK_SLACK_NS < ns) {
		c->stolen_ns += ns - had_ns;
		ns = had_ns;
	}
	__sync_fetch_and_add(&our_total_ns, ns);
	our_arrival_ns = 0;
}

/* What a host took of this CPU while the supervisor was here, so far. */
APART __u64 stolen_here(void)
{
	struct stopclock_cpu *c = get_cpu();
	return c ? c->stolen_ns : 0;
}

static __always_inline __u64 theirs_ns(__u64 now)
{
	return theirs_offset_ns + theirs_nr * now;
}

/* A traced task has this CPU from now on, or none has. */
APART int note_theirs(int traced)
{
	struct stopclock_cpu *c = get_cpu();
	if (!c || c->is_theirs == (__u64) !!traced)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	c->is_theirs = !!traced;
	__sync_fetch_and_add(&theirs_offset_ns, traced ? -now : now);
	__sync_fetch_and_add(&theirs_nr, traced ? 1 : -1ULL);
	return 0;
}

/* Since when tasks stand, if any do, and how long at least one did before. */
__u64 nr_standing, standing_since_ns, stood_before_ns;
/* What stops of those that had slept counted so far. */
__u64 slept_total_ns;

/* A task stands from now on, or does not any more. */
APART int note_standing(int begins)
{
	__u64 now = bpf_ktime_get_ns();
	/* It stays while this one stands: asked for before it does not. */
	__u64 since = standing_since_ns;
	if (begins) {
		if (!__sync_fetch_and_add(&nr_standing, 1))
			standing_since_ns = now;
	} else if (__sync_fetch_and_add(&nr_standing, -1ULL) == 1) {
		__sync_fetch_and_add(&stood_before_ns, now - since);
	}
	return 0;
}

/* For how long at least one task stood so far. */
APART __u64 standing_ns(void)
{
	__u64 since = standing_since_ns;
	return stood_before_ns + (nr_standing ? bpf_ktime_get_ns() - since : 0);
}

/*
 * Stops of @ns of a task that had slept are a loss, since when tasks stood for
 * @stood_then and those like it had lost @slept_then: but of a thousand that
 * woke up in a stop of all no more lost time at once than there are CPUs.
 */
APART int count_slept(__u64 ns, __u64 stood_then, __u64 slept_then)
{
	struct stopclock_told *say = get_told();
	struct stopclock_sum *s = get_sum();
	if (!s || !say || !ns)
		return 0;
	__u64 most = (standing_ns() - stood_then) * say->nr_cpus;
	__u64 gone = slept_total_ns - slept_then;
	__u64 left = most > gone ? most - gone : 0;
	if (say->nr_cpus && ns > left)
		ns = left;
	s->stop_ns += ns;
	__sync_fetch_and_add(&slept_total_ns, ns);
	return 0;
}

/* A task of thread group @tgid leaves this CPU, which it got at @arrived_ns by
 * the run queue's clock; 0 = that is not known. It has had @used_ns of CPUs. */
APART int leave_cpu(__u32 tgid, __u64 arrived_ns, __u64 used_ns)
{
	struct stopclock_cpu *c = get_cpu();
	if (!c || !c->arrived_ns)
		return 0;
	if (tgid == (__u32)tracer_tgid)
		count_ours(c, used_ns);
	if (arrived_ns)
		c->clock_offset = c->arrived_ns - arrived_ns;
	return 0;
}

/* This CPU is a traced task's, or @ours, or neither's, who has had @used_ns of
 * CPUs so far. Returns what the supervisor ran here since it was somebody's
 * that counts, or idle. */
APART __u64 enter_cpu(int traced, int ours, __u64 used_ns)
{
	struct stopclock_cpu *c = get_cpu();
	if (!c)
		return 0;
	c->arrived_ns = traced || ours ? bpf_ktime_get_ns() : 0;
	c->used_ns = used_ns;
	if (ours)
		our_arrival_ns = c->arrived_ns;
	return c->ran_ns;
}

/* Thread @pid has the CPU, which the supervisor has taken from thread @from, or
 * from none; -1: it did not take it. */
APART int note_who_runs(__u32 pid, int from)
{
	struct stopclock_sum *s = get_sum();
	if (!s)
		return 0;
	s->runs = pid ? pid : STOPCLOCK_IDLE;
	if (from >= 0)
		s->took = from;
	return 0;
}

#endif
