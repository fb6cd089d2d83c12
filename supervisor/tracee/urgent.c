/*
 * While all threads of a program stand, nobody else may go before us: where we
 * wait for a CPU, they do. With a time slice of some milliseconds, and a dozen
 * moments in which we sleep for a thread to do its part, a busy machine makes a
 * stop of one millisecond one of fifty. And the first of many threads that run
 * again would keep us from letting the others go. The same is true of a single
 * thread that has stopped by itself, before we run at all: so who waits for
 * stops, and has nothing else to do, may be urgent all the time.
 */
#include "supervisor/tracee/internal.h"

static void begin(struct tracer *tr)
{
	struct sched_param sp = {.sched_priority = 1};
	struct urgent *u = &tr->urgent;

	if (u->nr++ || u->refused)
		return;
	u->own_policy = sched_getscheduler(0);
	/* Who chose real time for us has chosen better. */
	if (u->own_policy != SCHED_OTHER && u->own_policy != SCHED_BATCH)
		u->refused = true;
	else if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &sp))
		u->refused = true; /* needs CAP_SYS_NICE or RLIMIT_RTPRIO */
	else
		u->is_on = true;
}

static void end(struct tracer *tr)
{
	struct sched_param sp = {0};
	struct urgent *u = &tr->urgent;

	if (--u->nr || !u->is_on)
		return;
	/* It keeps its nice value. Who may not take the flag back (no
	 * CAP_SYS_NICE) keeps that, too, which concerns our children only. */
	if (sched_setscheduler(0, u->own_policy, &sp))
		sched_setscheduler(0, u->own_policy | SCHED_RESET_ON_FORK, &sp);
	u->is_on = false;
}

static void set(struct tracer *tr, bool *is_urgent, bool now)
{
	if (*is_urgent == now)
		return;
	*is_urgent = now;
	if (now)
		begin(tr);
	else
		end(tr);
}

void tproc_urgent(struct tproc *p, bool is_urgent)
{
	set(p->tr, &p->is_urgent, is_urgent);
}

void tracer_urgent(struct tracer *tr, bool is_urgent)
{
	set(tr, &tr->urgent.asked, is_urgent);
}
