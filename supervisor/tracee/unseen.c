/*
 * Births that are not followed. The kernel tells of them, or does not, by each
 * thread's ptrace options, which can be changed only while it stands: so a
 * thread learns what is wanted at its next stop, whatever that is for. Threads
 * are always followed.
 *
 * Whoever is born unseen by vfork runs in memory that we may be about to
 * change, and does not stop with the others. While one does, nothing is
 * changed; it leaves that memory by itself, by exec or its end.
 */
#include <sys/ptrace.h>
#include <time.h>

#include "supervisor/tracee/internal.h"

/* By then most have called exec. Nobody stands for this. */
#define BEFORE_NS (5 * NSEC_PER_MSEC)
/* For this they do. */
#define AFTER_NS (2 * NSEC_PER_MSEC)

void tracer_follow_births(struct tracer *tr, bool follow)
{
	tr->leaves_births = !follow && tr->opts.is_shared;
}

static unsigned long wanted(const struct task *t)
{
	const struct tproc *p = t->proc;
	unsigned long o = trace_options(t->tr, p->launched);
	if (!t->tr->leaves_births || p->leaving || p->is_new || t->is_new)
		return o;
	o &= ~(unsigned long)(PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK);
	/* The end of a vfork that was followed is told. */
	if (!t->in_vfork)
		o &= ~(unsigned long)PTRACE_O_TRACEVFORKDONE;
	return o;
}

void unseen_sync(struct task *t)
{
	if (!t->proc)
		return;
	unsigned long o = wanted(t);
	/* It may be another program than the one that it was set in. */
	t->proc->has_unseen |= !(o & PTRACE_O_TRACEFORK);
	if (o == t->options || (!t->options && !t->tr->leaves_births) ||
	    ptrace(PTRACE_SETOPTIONS, t->tid, NULL, o) < 0)
		return;
	t->options = o;
	if (o & PTRACE_O_TRACEFORK)
		return;
	struct task *leader = task_find(t->tr, t->tgid);
	if (leader)
		leader->is_childless = false;
}

static bool is_out_of_step(const struct tproc *p)
{
	for (const struct task *t = p->tasks; t; t = t->next)
		if (t->options && t->state == TASK_RUNNING &&
		    t->options != wanted(t))
			return true;
	return false;
}

void tracer_tell_births(struct tracer *tr)
{
	for (struct tproc *p = tracer_first_proc(tr); p; p = tproc_next(p))
		if (is_out_of_step(p) && !tproc_stop_briefly(p, NULL))
			tproc_cont(p);
}

static bool is_shared(const struct tproc *p)
{
	const struct tracer_options *o = &p->tr->opts;
	if (!p->has_unseen || !o->is_shared)
		return false;
	pid_t last = 0;
	for (const struct task *t = p->tasks; t; t = t->next) {
		if (t->tgid != last && o->is_shared(o->is_shared_ctx, t->tgid))
			return true;
		last = t->tgid;
	}
	return false;
}

static bool await(const struct tproc *p, uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = 50 * NSEC_PER_USEC};
	while (is_shared(p)) {
		if (smco_now_ns() >= until_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

bool unseen_is_out(const struct tproc *p, bool stands)
{
	return await(p, smco_now_ns() + (stands ? AFTER_NS : BEFORE_NS));
}

bool unseen_await(const struct tproc *p, uint64_t until_ns)
{
	return await(p, until_ns);
}
