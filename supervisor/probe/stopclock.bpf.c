/*
 * How long tasks are held in ptrace stops, seen where it happens: at each
 * context switch. A stop lasts from the switch away from the task in state
 * "traced" until it is let go. Its wait for a CPU afterwards is in it where
 * that CPU was idle, or the supervisor's for so long: with others it would have
 * had to share it without us. Tasks that nobody traces have no storage, so
 * their switches cost a few loads and compares.
 *
 * A task that slept when it was asked to stop, and goes back to sleep when it
 * may, has lost nothing. So its stop counts only when it is seen to do
 * something else afterwards.
 *
 * Where other traced tasks have all the CPUs meanwhile, what one of them is
 * late the others are early: a stop counts only as far as a CPU was not theirs.
 *
 * A task that is let go to make a call of ours is in the same stop until it
 * goes on with its own work.
 *
 * And how long they waited for a CPU because the supervisor ran: what it ran
 * meanwhile, on that CPU or on another one, to which the scheduler would have
 * taken one of those that waited. The same of their partners, those who woke a
 * traced task lately: a server whose client has to wait gets no work.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "supervisor/probe/stopclock-bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define STATE_SLEEPS 3 /* interruptible or not */
#define STATE_TRACED 8
/* On a CPU for this long from sleep to stop or from stop to sleep: it did
 * nothing but that. */
#define BRIEF_NS 60000
/* And from its first stop, whose way back takes page faults where pages of the
 * guest's are mapped by a hypervisor one by one. */
#define FIRST_BRIEF_NS	 (2 * BRIEF_NS)
#define JOBCTL_LISTENING (1UL << 22)
#define EVENT_STOP	 128 /* PTRACE_EVENT_STOP: it was asked to */

/* Who used less CPU than this since it woke a traced task is its partner. */
#define PARTNER_NS 10000000
/* Who has met none for so long is a stranger. */
#define KNOWN_NS 1000000000ULL
/* What clocks that are not read together may differ. */
#define CLOCK_SLACK_NS 20000

struct sched_info {
	unsigned long pcount; /* times it was given a CPU */
	unsigned long long
		last_arrival;		/* on a CPU; by the run queue's clock */
	unsigned long long last_queued; /* 0 = not waiting */
	unsigned long long run_delay;	/* all waits before that, ns */
} __attribute__((preserve_access_index));

struct sched_entity {
	unsigned long long sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct {
	struct sched_entity se;
	struct sched_info sched_info;
	int exit_code; /* of a stop: signal | event << 8 */
	unsigned int ptrace;
	unsigned long jobctl;
	int pid; /* 0: the idle task */
	int tgid;
	struct task_struct *parent; /* the tracer, of a traced task */
} __attribute__((preserve_access_index));

struct pt_regs___x86 {
	unsigned long ax;
	unsigned long orig_ax; /* the system call; -1 = none */
} __attribute__((preserve_access_index));

/* For CPUs, of one task. */
struct waits {
	__u64 ns;      /* as far as they were looked at; 0 = not known */
	__s64 free_ns; /* free_ns() when it left its CPU or was woken up */
};

struct stopped {
	__u64 since;	  /* when its stop began, 0 = not stopped */
	__u64 exec_ns;	  /* CPU time when it last slept or was let go */
	__u64 run_delay;  /* what it had waited for CPUs by then, ns */
	__u64 pcount;	  /* and how often it had got one */
	__u64 undecided;  /* ns of stops that count if it does not sleep now */
	__u16 is_known;	  /* it was seen to leave a CPU before */
	__u16 nr_back;	  /* times it came back from one, up to 2 */
	__u16 slept;	  /* and did not do anything since exec_ns */
	__u16 was_asleep; /* when it was asked to stop */
	__u16 is_lent;	  /* it was let go for us, and did not stop since */
	__u64 theirs_ns;  /* theirs_ns() when its stop began */
	struct waits waits;
	__u64 told_ns; /* of its waits */
};

struct partner {
	__u64 exec_ns; /* CPU time when it last woke a traced task */
	struct waits waits;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stopped);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct partner);
} partners SEC(".maps");

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

/* When a traced task woke it, or was woken by it, last. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stopclock_told);
} told SEC(".maps");

int tracer_tgid;	/* as the initial pid namespace counts */
__u64 our_total_ns;	/* the supervisor's CPU time, up to when it last ran */
__u64 our_arrival_ns;	/* of its latest thread on a CPU; 0 = it does not run */
__u64 our_displaced_ns; /* of all CPUs */
/* CPU time of all traced tasks so far: this, and now for each that runs. */
__u64 theirs_offset_ns, theirs_nr;

/* Run once by the supervisor: which process's tracees count. */
SEC("syscall") int stopclock_mine(void *ctx)
{
	tracer_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

static __always_inline struct stopclock_sum *get_sum(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&sums, &zero);
}

/* Since when @next waits for a CPU, by our clock; 0 = it does not. */
static __always_inline __u64 waits_since(const struct stopclock_cpu *c,
					 struct task_struct *next)
{
	if (!bpf_core_field_exists(next->sched_info))
		return 1;
	__u64 t = next->sched_info.last_queued;
	return t ? t + c->clock_offset : 0;
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

static __always_inline int is_ours(const struct task_struct *t)
{
	return t->ptrace && t->parent->tgid == tracer_tgid;
}

static __always_inline struct partner *get_partner(struct task_struct *t)
{
	struct partner *p = bpf_task_storage_get(&partners, t, 0, 0);
	if (p && t->se.sum_exec_runtime - p->exec_ns >= PARTNER_NS)
		p = 0;
	return p;
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
static __always_inline __u64 displaced(__u64 waited, __s64 free_then)
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

/* The supervisor is off the CPU, on which it arrived at c->arrived_ns. */
static __always_inline void count_ours(struct stopclock_cpu *c)
{
	__u64 ns = bpf_ktime_get_ns() - c->arrived_ns;
	c->ran_ns += ns;
	__sync_fetch_and_add(&our_total_ns, ns);
	our_arrival_ns = 0;
}

static __always_inline __u64 theirs_ns(__u64 now)
{
	return theirs_offset_ns + theirs_nr * now;
}

/* A traced task has this CPU from now on, or none has. */
static __always_inline void note_theirs(int traced)
{
	struct stopclock_cpu *c = get_cpu();
	if (!c || c->is_theirs == (__u64)traced)
		return;
	__u64 now = bpf_ktime_get_ns();
	c->is_theirs = traced;
	__sync_fetch_and_add(&theirs_offset_ns, traced ? -now : now);
	__sync_fetch_and_add(&theirs_nr, traced ? 1 : -1ULL);
}

/* What of a stop from @since to @now no other traced task used a CPU for. The
 * two figures may be read while they are changed: then all of it. */
static __always_inline __u64 not_theirs_ns(const struct stopped *st,
					   __u64 since, __u64 now)
{
	struct stopclock_told *say = get_told();
	__u64 ns = now - since;
	__u64 all = say ? ns * say->nr_cpus : 0;
	__u64 theirs = theirs_ns(now) - st->theirs_ns;
	if (!all || theirs > all + CLOCK_SLACK_NS || theirs <= all - ns)
		return ns;
	return theirs < all ? all - theirs : 0;
}

/* The supervisor comes or goes, or the CPU is somebody's that counts, or idle.
 * Returns what the supervisor ran here until then since it was. */
static __always_inline __u64 account_cpu(struct task_struct *prev,
					 struct task_struct *next, int traced,
					 int was_stopped)
{
	struct stopclock_cpu *c = get_cpu();
	if (!c)
		return 0;
	if (c->arrived_ns) {
		if (prev->tgid == tracer_tgid)
			count_ours(c);
		if (bpf_core_field_exists(prev->sched_info))
			c->clock_offset =
				c->arrived_ns - prev->sched_info.last_arrival;
	}
	int ours = next->tgid == tracer_tgid;
	c->arrived_ns = traced || ours ? bpf_ktime_get_ns() : 0;
	if (ours)
		our_arrival_ns = c->arrived_ns;
	__u64 ran_ns = c->ran_ns;
	if (!ran_ns)
		return 0;
	int counts = traced || get_partner(next) != 0;
	if (counts && !was_stopped && waits_since(c, next))
		count_displaced();
	/* Where nothing tells of waits: as if it had waited all the time. */
	if (counts && !was_stopped && !bpf_core_field_exists(next->sched_info))
		displaced(ran_ns, 0);
	if (counts || next->pid == 0)
		c->ran_ns = 0;
	return ran_ns;
}

/*
 * @next is on a CPU and had to wait for that, in queues of several perhaps.
 * Returns how long all its waits were by now, ns; *last_ret the last one,
 * which is added to its run_delay right after this.
 */
static __always_inline __u64 account_waits(struct stopclock_cpu *c,
					   struct task_struct *next,
					   struct waits *w, int was_stopped,
					   __u64 *last_ret)
{
	__u64 delay = next->sched_info.run_delay;
	__u64 since = waits_since(c, next);
	__s64 waited = bpf_ktime_get_ns() - since;
	__u64 last = c->clock_offset && since && waited > 0 ? waited : 0;
	__s64 moved = w->ns ? delay - w->ns : 0;
	/* The last one is looked at the next time where it cannot be known. */
	w->ns = c->clock_offset ? delay + last : 0;
	*last_ret = last;
	if (was_stopped)
		return delay;
	if (moved <= CLOCK_SLACK_NS) /* or below 0 */
		moved = 0;
	if (displaced(moved + last, w->free_ns) && moved)
		count_displaced();
	return delay;
}

static __always_inline void note_known(struct task_struct *t)
{
	__u64 *at = bpf_task_storage_get(&known, t, 0,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (at)
		*at = bpf_ktime_get_ns();
}

/* Clients of a server that is never idle do not wake it, but it wakes them: who
 * has to do with the program in either way has more to do as it gets on. */
static __always_inline int is_known(struct task_struct *t)
{
	__u64 *at = bpf_task_storage_get(&known, t, 0, 0);
	return at && bpf_ktime_get_ns() - *at < KNOWN_NS;
}

/* @prev leaves the CPU, which was kept from whoever waited for one. */
static __always_inline void account_stranger(struct task_struct *prev,
					     int prev_is_traced)
{
	if (prev_is_traced || prev->pid == 0 || prev->tgid == tracer_tgid ||
	    !bpf_core_field_exists(prev->sched_info) || is_known(prev))
		return;
	struct stopclock_cpu *c = get_cpu();
	struct stopclock_sum *s = get_sum();
	__u64 since = prev->sched_info.last_arrival;
	if (!c || !s || !c->clock_offset || !since)
		return;
	__s64 ran = bpf_ktime_get_ns() - (since + c->clock_offset);
	if (ran > 0)
		s->strange_ns += ran;
}

/* @next was traced. */
static __always_inline void account_traced(struct task_struct *next,
					   struct stopped *st, int was_stopped)
{
	struct stopclock_cpu *c = get_cpu();
	if (!c || !bpf_core_field_exists(next->sched_info))
		return;
	__u64 last;
	__u64 delay = account_waits(c, next, &st->waits, was_stopped, &last);
	delay += last;
	struct stopclock_sum *s = get_sum();
	if (s && st->told_ns && !was_stopped)
		s->waited_ns += (__s64)(delay - st->told_ns);
	st->told_ns = delay;
}

static __always_inline void account_partner(struct task_struct *next)
{
	struct partner *p = get_partner(next);
	struct stopclock_cpu *c = get_cpu();
	__u64 last;
	if (p && c && bpf_core_field_exists(next->sched_info))
		account_waits(c, next, &p->waits, 0, &last);
}

/* @next has the CPU. @prev could have gone on, or not. */
static __always_inline void note_who_runs(struct task_struct *prev,
					  struct task_struct *next,
					  int prev_could)
{
	struct stopclock_sum *s = get_sum();
	if (!s)
		return;
	s->runs = next->pid ? next->pid : STOPCLOCK_IDLE;
	if (next->tgid == tracer_tgid && prev->tgid != tracer_tgid)
		s->took = prev_could ? prev->pid : 0;
}

static __always_inline void count(__u64 ns)
{
	struct stopclock_sum *s = get_sum();
	if (s)
		s->stop_ns += ns;
}

/* A stop, of whose beginning or end nobody was told. */
static __always_inline void count_unseen(void)
{
	struct stopclock_sum *s = get_sum();
	if (s)
		s->nr_unseen++;
}

/*
 * Was it waiting in a system call when it was asked to stop? By what the call
 * would return: to be restarted (ERESTARTSYS and its kin), or EINTR.
 */
static __always_inline int left_a_wait(struct task_struct *t)
{
	const struct pt_regs___x86 *regs =
		(const struct pt_regs___x86 *)bpf_task_pt_regs(t);
	long ret = (long)regs->ax;
	return (long)regs->orig_ax >= 0 &&
	       ((ret <= -512 && ret >= -516) || ret == -4);
}

static __always_inline void tell_stopped(const struct task_struct *t)
{
	struct stopclock_told *say = get_told();
	__u32 cpu = bpf_get_smp_processor_id();
	if (!say || cpu >= STOPCLOCK_STOP_CPUS)
		return;
	say->stopped[cpu] = t->pid;
	say->stopped_ns[cpu] = bpf_ktime_get_ns();
}

/* A traced task leaves the CPU. */
static __always_inline void leaves(struct task_struct *prev, unsigned int state)
{
	if (state & STATE_TRACED)
		tell_stopped(prev);
	struct stopped *st = bpf_task_storage_get(
		&tasks, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* A task's first storage cannot be had while its CPU is in the middle
	 * of freeing another's. */
	if (!st && state & STATE_TRACED)
		count_unseen();
	if (!st)
		return;
	/* The stop goes on. */
	if (st->is_lent && st->since) {
		if (!(state & STATE_TRACED))
			return;
		st->is_lent = 0;
		if (bpf_core_field_exists(prev->sched_info))
			st->pcount = prev->sched_info.pcount;
		return;
	}
	st->is_lent = 0;
	/* It was put on a CPU and the kernel did not tell, as where the one
	 * before it was idle in a way that RCU does not watch. */
	if (st->since)
		count_unseen();
	st->since = 0;
	__u64 exec = prev->se.sum_exec_runtime;
	int is_brief = exec - st->exec_ns <
		       (st->nr_back == 1 ? FIRST_BRIEF_NS : BRIEF_NS);
	int sleeps = state & STATE_SLEEPS && !(state & STATE_TRACED);

	if (!is_brief)
		st->slept = 0;
	if (state & STATE_TRACED) {
		/* Nobody looked while it was not traced. */
		if (!st->is_known)
			st->slept = left_a_wait(prev);
		st->was_asleep =
			st->slept && prev->exit_code >> 8 == EVENT_STOP;
		st->since = bpf_ktime_get_ns();
		st->theirs_ns = theirs_ns(st->since);
		if (bpf_core_field_exists(prev->sched_info)) {
			st->run_delay = prev->sched_info.run_delay;
			st->pcount = prev->sched_info.pcount;
		}
	}
	st->is_known = 1;
	if (st->undecided && !(is_brief && (sleeps || !state)) &&
	    !(state & STATE_TRACED && st->was_asleep)) {
		count(st->undecided);
		st->undecided = 0;
	}
	if (sleeps) {
		st->undecided = 0;
		st->slept = 1;
		st->exec_ns = exec;
	}
}

/*
 * The waits for a CPU of @next since it was let go that are not our doing. The
 * last one is, where the CPU was idle or the supervisor's.
 */
static __always_inline __u64 not_ours_ns(struct task_struct *prev,
					 struct task_struct *next,
					 const struct stopped *st, __u64 ran_ns)
{
	struct stopclock_cpu *c = get_cpu();
	if (!c || !bpf_core_field_exists(next->sched_info))
		return 0;
	/* It may have been moved from one queue to another meanwhile. */
	__u64 before = next->sched_info.run_delay - st->run_delay;
	__u64 since = waits_since(c, next);
	__u64 last = bpf_ktime_get_ns() - since;
	if (!c->clock_offset || !since || (__s64)last <= 0 || prev->pid == 0)
		return before;
	return before + last - (last < ran_ns ? last : ran_ns);
}

/* @next was stopped and is on a CPU again. */
static __always_inline void returns(struct task_struct *prev,
				    struct task_struct *next,
				    struct stopped *st, __u64 ran_ns)
{
	__u64 now = bpf_ktime_get_ns(), since = st->since;
	__u64 ns = now - since;
	if (st->is_lent)
		return;
	st->since = 0;
	if (st->nr_back < 2)
		st->nr_back++;
	/* It was on a CPU before, and then not traced any more. */
	if (bpf_core_field_exists(next->sched_info) &&
	    next->sched_info.pcount != st->pcount) {
		count_unseen();
		return;
	}
	__u64 not_ours = not_ours_ns(prev, next, st, ran_ns);
	if (not_ours > ns)
		not_ours = ns;
	ns -= not_ours;
	/* PTRACE_LISTEN: stopped by job control, not by us. */
	if (next->jobctl & JOBCTL_LISTENING)
		return;
	struct stopclock_sum *s = get_sum();
	if (!s)
		return;
	s->nr_stops++;
	s->waited_ns += (__s64)not_ours;
	if (ns > s->longest_ns)
		s->longest_ns = ns;
	__u64 most = not_theirs_ns(st, since, now);
	if (ns > most) {
		s->waited_ns += (__s64)(ns - most);
		ns = most;
	}
	struct stopclock_told *say = get_told();
	ns += say ? say->own_ns : 0;
	if (!st->was_asleep) {
		s->stop_ns += ns;
		return;
	}
	st->undecided += ns;
	st->exec_ns = next->se.sum_exec_runtime;
}

/* From now on, or soon, if it is traced or a partner. */
static __always_inline void begins_to_wait(struct task_struct *t, int traced)
{
	struct stopped *st = 0;
	struct partner *p = 0;
	if (traced)
		st = bpf_task_storage_get(&tasks, t, 0, 0);
	else
		p = bpf_task_storage_get(&partners, t, 0, 0);
	if (st)
		st->waits.free_ns = free_ns();
	if (p)
		p->waits.free_ns = free_ns();
}

/* The supervisor lets @t go. */
static __always_inline void note_lent(struct task_struct *t)
{
	struct stopclock_told *say = get_told();
	struct stopped *st = 0;
	if (say && say->is_lent)
		st = bpf_task_storage_get(&tasks, t, 0, 0);
	if (st && st->since)
		st->is_lent = 1;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(stopclock_switch, _Bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	int prev_is_traced = is_ours(prev);
	if (prev_is_traced)
		leaves(prev, prev_state);
	account_stranger(prev, prev_is_traced);
	note_who_runs(prev, next, preempt || !prev_state);
	/* Not "if traced": one that was detached in its stop counts too. */
	struct stopped *st = bpf_task_storage_get(&tasks, next, 0, 0);
	int is_traced = is_ours(next);
	int was_stopped = st && st->since;
	__u64 ran_ns = account_cpu(prev, next, is_traced, was_stopped);
	note_theirs(is_traced);
	if (st)
		account_traced(next, st, was_stopped);
	else
		account_partner(next);
	if (was_stopped)
		returns(prev, next, st, ran_ns);
	/* After what @next has waited for: @prev has not. */
	begins_to_wait(prev, prev_is_traced);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(stopclock_waking, struct task_struct *woken)
{
	int traced = is_ours(woken);
	begins_to_wait(woken, traced);
	struct task_struct *waker = bpf_get_current_task_btf();
	if (traced && waker->tgid == tracer_tgid)
		note_lent(woken);
	if (!traced && is_ours(waker))
		note_known(woken);
	if (!traced || waker->pid == 0 || waker->tgid == tracer_tgid)
		return 0;
	note_known(waker);
	struct partner *p = bpf_task_storage_get(
		&partners, waker, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (p)
		p->exec_ns = waker->se.sum_exec_runtime;
	return 0;
}
