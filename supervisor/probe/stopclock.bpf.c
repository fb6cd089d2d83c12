/*
 * How long tasks are held in ptrace stops, seen where it happens: at each
 * context switch. A stop lasts from the switch away from the task in state
 * "traced" until it is let go. Its wait for a CPU afterwards is in it where
 * that CPU was idle, or the supervisor's for so long: with others it would have
 * had to share it without us.
 *
 * A task that slept when it was asked to stop, and goes back to sleep when it
 * may, has lost nothing. So its stop counts only when it is seen to do
 * something else afterwards. On its way it may stop where its call ends for us,
 * or begins anew, which is no more of a loss. Of many that did something else
 * no more lost time at once than there are CPUs.
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
#include "supervisor/probe/stopclock-cpus.bpf.h"
#include "supervisor/probe/stopclock-tasks.bpf.h"

char LICENSE[] SEC("license") = "GPL";

#define STATE_SLEEPS 3 /* interruptible or not */
#define STATE_TRACED 8
#define STATE_DEAD   128 /* it does not come back */
/* On a CPU for this long from sleep to stop or from stop to sleep: it did
 * nothing but that. */
#define BRIEF_NS 60000
/* And from its first stop, whose way back takes page faults where pages of the
 * guest's are mapped by a hypervisor one by one. */
#define FIRST_BRIEF_NS	 (2 * BRIEF_NS)
#define JOBCTL_LISTENING (1UL << 22)
#define EVENT_STOP	 128	    /* PTRACE_EVENT_STOP: it was asked to */
#define SYSCALL_STOP	 (5 | 0x80) /* SIGTRAP, PTRACE_O_TRACESYSGOOD */

/* Who used less CPU than this since it woke a traced task is its partner. */
#define PARTNER_NS 10000000
/* Who has met none for so long is a stranger. */
#define KNOWN_NS 1000000000ULL

struct pt_regs___x86 {
	unsigned long ax;
	unsigned long orig_ax; /* the system call; -1 = none */
} __attribute__((preserve_access_index));

/* Run once by the supervisor: which process's tracees count. */
SEC("syscall") int stopclock_mine(struct stopclock_setup *setup)
{
	tracer_tgid = bpf_get_current_pid_tgid() >> 32;
	max_with_others = setup->max_with_others;
	return 0;
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

/* What a task's parent is costs the verifier two milliseconds each time that it
 * comes by, and to know the answer doubles the ways from here on: so it is to
 * ask once, and not to know. */
static __always_inline int is_ours(const struct task_struct *t)
{
	int ours = t->ptrace && t->parent->tgid == tracer_tgid;
	return ours + always_0;
}

static __always_inline int is_partner(struct task_struct *t,
				      const struct kept *k)
{
	return k && k->partner.is_one &&
	       t->se.sum_exec_runtime - k->partner.exec_ns < PARTNER_NS;
}

/* What is kept of a task since it was first seen traced. */
static __always_inline struct stopped *get_stopped(struct kept *k)
{
	return k && k->stop.is_known ? &k->stop : 0;
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

/* Who woke up to find us there has only waited: it had left that CPU long
 * before, and what it had in the caches. */
static __always_inline int had_to_go(const struct kept *k)
{
	return !k || !k->waits.woke;
}

/* The supervisor comes or goes, or the CPU is somebody's that counts, or idle.
 * Returns what the supervisor ran here until then since it was. */
static __always_inline __u64 account_cpu(struct task_struct *prev,
					 struct task_struct *next,
					 struct kept *k, int traced,
					 int was_stopped)
{
	leave_cpu(prev->tgid,
		  bpf_core_field_exists(prev->sched_info)
			  ? prev->sched_info.last_arrival
			  : 0,
		  prev->se.sum_exec_runtime);
	__u64 ran_ns = enter_cpu(traced, next->tgid == tracer_tgid,
				 next->se.sum_exec_runtime);
	struct stopclock_cpu *c = get_cpu();
	if (!c)
		return 0;
	if (!ran_ns)
		return 0;
	int counts = traced || is_partner(next, k);
	if (counts && !was_stopped && waits_since(c, next) && had_to_go(k))
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
	if (displaced(moved + last, w->free_ns) && moved && !w->woke)
		count_displaced();
	return delay;
}

static __always_inline void note_known(struct kept *k)
{
	if (k)
		k->known_ns = bpf_ktime_get_ns();
}

/* Clients of a server that is never idle do not wake it, but it wakes them: who
 * has to do with the program in either way has more to do as it gets on. */
static __always_inline int is_known(const struct kept *k)
{
	return k && k->known_ns && bpf_ktime_get_ns() - k->known_ns < KNOWN_NS;
}

/* @prev leaves the CPU, which was kept from whoever waited for one. */
static __always_inline void account_stranger(struct task_struct *prev,
					     const struct kept *k,
					     int prev_is_traced)
{
	if (prev_is_traced || prev->pid == 0 || prev->tgid == tracer_tgid ||
	    !bpf_core_field_exists(prev->sched_info) || is_known(k))
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
					   struct kept *k, int was_stopped)
{
	struct stopped *st = &k->stop;
	struct stopclock_cpu *c = get_cpu();
	if (!c || !bpf_core_field_exists(next->sched_info))
		return;
	__u64 last;
	__u64 delay = account_waits(c, next, &k->waits, was_stopped, &last);
	delay += last;
	struct stopclock_sum *s = get_sum();
	if (s && st->told_ns && !was_stopped)
		s->waited_ns += (__s64)(delay - st->told_ns);
	st->told_ns = delay;
}

static __always_inline void account_partner(struct task_struct *next,
					    struct kept *k)
{
	struct stopclock_cpu *c = get_cpu();
	__u64 last;
	if (k && is_partner(next, k) && c &&
	    bpf_core_field_exists(next->sched_info))
		account_waits(c, next, &k->waits, 0, &last);
}

/* A stop, of whose beginning or end nobody was told. */
APART int count_unseen(void)
{
	struct stopclock_sum *s = get_sum();
	if (s)
		s->nr_unseen++;
	return 0;
}

/* Of one that began at @since, if it did, nobody was told the end. */
APART int end_unseen(__u64 since)
{
	if (since) {
		count_unseen();
		note_standing(0);
	}
	return 0;
}

APART int is_left_wait(__s64 call, __s64 ret)
{
	return call >= 0 && ((ret <= -512 && ret >= -516) || ret == -4);
}

/*
 * Was it waiting in a system call when it was asked to stop? By what the call
 * would return: to be restarted (ERESTARTSYS and its kin), or EINTR.
 */
static __always_inline int left_a_wait(struct task_struct *t)
{
	const struct pt_regs___x86 *regs =
		(const struct pt_regs___x86 *)bpf_task_pt_regs(t);
	return is_left_wait((__s64)regs->orig_ax, (__s64)regs->ax);
}

/* Which stop @t is in. What wait(2) tells, its exit_code, is gone as soon as it
 * has told the supervisor, who may have waited on another CPU. */
static __always_inline int kind_of_stop(struct task_struct *t)
{
	return t->last_siginfo->si_code; /* 0 if there is none */
}

/* Is a stop of this kind, of one that had slept, in a wait that is left or goes
 * on? @undecided: of stops before. */
APART int is_of_sleeper(int kind, int left_wait, __u64 undecided)
{
	return kind >> 8 == EVENT_STOP ||
	       (kind == SYSCALL_STOP && (undecided || left_wait));
}

/* These spare the verifier the ways that lead on from an "if". */
APART __u64 either(__u64 is_first, __u64 first, __u64 other)
{
	return is_first ? first : other;
}

APART int was_brief(__u64 exec_ns, int nr_back)
{
	return exec_ns < (nr_back == 1 ? FIRST_BRIEF_NS : BRIEF_NS);
}

/* What of @undecided counts, now that it leaves its CPU in @state. */
APART __u64 lost_by(__u64 undecided, int is_brief, unsigned int state,
		    int was_asleep)
{
	int goes_on =
		is_brief &&
		(!state || (state & STATE_SLEEPS && !(state & STATE_TRACED)));
	return goes_on || (state & STATE_TRACED && was_asleep) ? 0 : undecided;
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

/* A traced task leaves the CPU. Without @k there is no room for it. */
static __always_inline void traced_leaves(struct task_struct *prev,
					  struct kept *k, unsigned int state)
{
	if (state & STATE_TRACED)
		tell_stopped(prev);
	if (!k && state & STATE_TRACED)
		count_unseen();
	if (!k)
		return;
	struct stopped *st = &k->stop;
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
	end_unseen(st->since);
	st->since = 0;
	__u64 exec = prev->se.sum_exec_runtime;
	int is_brief = was_brief(exec - st->exec_ns, st->nr_back);
	int sleeps = state & STATE_SLEEPS && !(state & STATE_TRACED);

	st->slept &= is_brief;
	if (state & STATE_TRACED) {
		int left = left_a_wait(prev);
		/* Nobody looked while it was not traced. */
		st->slept = either(st->is_known, st->slept, left);
		st->was_asleep = st->slept & is_of_sleeper(kind_of_stop(prev),
							   left, st->undecided);
		note_standing(1);
		st->stood_ns =
			either(st->undecided, st->stood_ns, standing_ns());
		st->slept_ns =
			either(st->undecided, st->slept_ns, slept_total_ns);
		st->since = bpf_ktime_get_ns();
		st->theirs_ns = theirs_ns(st->since);
		st->stolen_ns = stolen_here();
		st->cpu = bpf_get_smp_processor_id();
		if (bpf_core_field_exists(prev->sched_info)) {
			st->run_delay = prev->sched_info.run_delay;
			st->pcount = prev->sched_info.pcount;
		}
	}
	st->is_known = 1;
	__u64 lost = lost_by(st->undecided, is_brief, state, st->was_asleep);
	count_slept(lost, st->stood_ns, st->slept_ns);
	st->undecided -= lost;
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

/* What a host took of the CPU on which the task stopped while we were there,
 * would not have been the task's without us, either. Where it comes back on
 * another one, or we work on another one, it would. */
static __always_inline __u64 stolen_ns(const struct stopped *st)
{
	if (st->cpu != bpf_get_smp_processor_id())
		return 0;
	return stolen_here() - st->stolen_ns;
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
	note_standing(0);
	if (st->nr_back < 2)
		st->nr_back++;
	/* It was on a CPU before, and then not traced any more. */
	if (bpf_core_field_exists(next->sched_info) &&
	    next->sched_info.pcount != st->pcount) {
		count_unseen();
		return;
	}
	__u64 not_ours = not_ours_ns(prev, next, st, ran_ns) + stolen_ns(st);
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

/* From now on, or soon, the task of which @k is kept, if it is. */
static __always_inline void begins_to_wait(struct kept *k, int woke)
{
	if (!k)
		return;
	k->waits.free_ns = free_ns();
	k->waits.woke = woke;
}

/* The supervisor lets the task of which @k is kept go. */
static __always_inline void note_lent(struct kept *k)
{
	struct stopclock_told *say = get_told();
	struct stopped *st = get_stopped(k);
	if (say && say->is_lent && st && st->since)
		st->is_lent = 1;
}

/* @prev leaves the CPU. Returns what is kept of it. */
static __always_inline struct kept *leaves(struct task_struct *prev, int traced,
					   unsigned int state)
{
	int ends = state & STATE_DEAD;
	struct kept *k = traced && !ends ? keep(prev, 1) : kept_of(prev);
	if (traced)
		traced_leaves(prev, k, state);
	account_stranger(prev, k, traced);
	if (!k || !ends)
		return k;
	forget(prev, k);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(stopclock_switch, _Bool preempt, struct task_struct *prev,
	     struct task_struct *next, unsigned int prev_state)
{
	int is_traced = is_ours(next), prev_is_traced = is_ours(prev);
	struct kept *k_prev = leaves(prev, prev_is_traced, prev_state);
	int taken = next->tgid == tracer_tgid && prev->tgid != tracer_tgid;
	int could_go_on = preempt || !prev_state;
	note_who_runs(next->pid, !taken ? -1 : could_go_on ? prev->pid : 0);
	/* Not "if traced": one that was detached in its stop counts too. */
	struct kept *k = kept_of(next);
	struct stopped *st = get_stopped(k);
	int was_stopped = st && st->since;
	__u64 ran_ns = account_cpu(prev, next, k, is_traced, was_stopped);
	note_theirs(is_traced);
	if (k && st)
		account_traced(next, k, was_stopped);
	else
		account_partner(next, k);
	if (was_stopped)
		returns(prev, next, st, ran_ns);
	/* After what @next has waited for: @prev has not. */
	begins_to_wait(k_prev, 0);
	return 0;
}

/* Of whom we trace, and who has to do with that. */
SEC("tp_btf/sched_waking")
int BPF_PROG(stopclock_waking, struct task_struct *woken)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	int traced = is_ours(woken), by_traced = is_ours(waker);
	int by_us = waker->tgid == tracer_tgid;
	struct kept *k = kept_of(woken);
	begins_to_wait(k, 1);
	if (traced && by_us)
		note_lent(k);
	if (!traced && by_traced && woken->tgid != tracer_tgid)
		note_known(keep(woken, 0));
	if (!traced || waker->pid == 0 || by_us)
		return 0;
	k = keep(waker, by_traced);
	note_known(k);
	if (!k)
		return 0;
	k->partner.is_one = 1;
	k->partner.exec_ns = waker->se.sum_exec_runtime;
	return 0;
}
