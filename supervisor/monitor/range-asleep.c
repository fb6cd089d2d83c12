/*
 * Copies that are made and end all the time, a server's for each request:
 * memory of its own for each takes longer than many of them live, and what is
 * dear would be found out anew in each. So a copy is asleep at first: its
 * sensors are those that its parent had in then, and see for that, whose duty
 * learns from it what the next copies are better born without. One that lives
 * on, or whose parent ends, wakes up and has its own.
 */
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* What it takes to wake one: calls, memory, and a stop. */
#define WAKE_COST_NS NSEC_PER_MSEC

void range_sleep(struct range_part *rp, struct range_part *parent)
{
	rp->is_asleep = true;
	rp->sees_for = parent->is_asleep ? parent->sees_for : parent;
	if (rp->sees_for)
		rp->sees_for->nr_asleep++;
	else
		rp->owner->wake_ns = 0;
}

static void leave(struct range_part *rp)
{
	if (rp->sees_for)
		rp->sees_for->nr_asleep--;
	rp->sees_for = NULL;
	rp->is_asleep = false;
}

void range_wake(struct range_monitor *m, struct range_part *rp)
{
	struct smco_err err = {0};
	const struct range_part *parent = rp->sees_for;
	if (!rp->is_asleep)
		return;
	leave(rp);
	if (rp->ranges && ranges_wake(rp->ranges, &err)) {
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
		ranges_remove(rp->ranges, NULL);
		ranges_destroy(rp->ranges);
		rp->ranges = NULL;
	}
	rp->born_ns = rp->charged_ns = rp->next_poll_ns = smco_now_ns();
	rp->run_ns = tproc_cpu_ns(rp->proc);
	if (rp->ranges)
		range_start_wake(m, rp, parent);
	range_watch_start(m, rp, true);
	m->next_tick_ns = 0;
}

void range_sleep_end(struct range_monitor *m, struct range_part *rp)
{
	leave(rp);
	for (struct range_part *x = m->parts; x && rp->nr_asleep; x = x->next) {
		if (x->sees_for != rp)
			continue;
		x->sees_for = NULL;
		x->owner->wake_ns = 0;
		rp->nr_asleep--;
	}
	m->next_tick_ns = 0;
}

/* That are asleep, and see for @p. */
static unsigned nr_copies(const struct range_proc *p)
{
	unsigned nr = 0;
	for (size_t i = 0; i < p->nr; i++)
		nr = (unsigned)max_u64(nr, p->part[i]->nr_asleep);
	return nr;
}

/* Who lives shortly is not worth it, and nobody knows who does: what it takes
 * at most is twice the lesser of both. */
void range_stray(struct range_monitor *m, struct range_part *rp, uint64_t ps)
{
	struct range_proc *p = rp->owner;
	unsigned nr = nr_copies(p);
	p->stray_ps = nr ? sat_add_u64(p->stray_ps, ps) : 0;
	if (!nr || p->stray_ps / 1000 < WAKE_COST_NS * nr)
		return;
	p->stray_ps = 0;
	for (struct range_part *x = m->parts; x; x = x->next)
		if (x->sees_for && x->sees_for->owner == p)
			x->owner->wake_ns = 0;
	m->next_tick_ns = 0;
}

uint64_t range_asleep_ns(const struct range_monitor *m, struct range_part *rp)
{
	unsigned nr = rp->nr_asleep;
	uint64_t sum_ns = 0;
	for (struct range_part *x = m->parts; x && nr; x = x->next) {
		if (x->sees_for != rp)
			continue;
		uint64_t run_ns = tproc_cpu_ns(x->proc);
		sum_ns = sat_add_u64(sum_ns, sat_sub_u64(run_ns, x->run_ns));
		x->run_ns = run_ns;
		nr--;
	}
	return sum_ns;
}

void range_proc_wake(struct range_monitor *m, struct range_proc *p,
		     uint64_t now_ns)
{
	if (now_ns < p->wake_ns || tproc_stop_briefly(p->proc, NULL))
		return;
	p->wake_ns = UINT64_MAX;
	for (size_t i = 0; i < p->nr; i++)
		range_wake(m, p->part[i]);
	tproc_cont(p->proc);
}
