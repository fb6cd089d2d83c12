/*
 * The files of a process look at what their sensors cost, and windows go in and
 * out: in one stop, for on a busy machine it is not what is done in it that
 * takes the time but that each thread gets a CPU to stop on.
 */
#include <sched.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

/* To stop and to go on, alone. */
#define STOP_NS (10 * NSEC_PER_USEC)
/* So many changes may fail because a thread gets no CPU to stop on. */
#define MOST_REFUSED 2

/* Nobody but its only thread waits until that stops. */
static bool is_alone(const struct range_monitor *m, const struct range_proc *p)
{
	return m->procs == p && !p->next && tproc_nr_tasks(p->proc) == 1;
}

/* While more is owed than may be, it would stay so on a busy machine: the
 * thread has the next CPU with all of it in. */
static bool insists(const struct range_monitor *m, const struct range_proc *p,
		    bool owes)
{
	bool any = is_alone(m, p);
	for (size_t i = 0; i < p->nr; i++)
		any |= owes && p->part[i]->changes &&
		       p->part[i]->nr_refused >= MOST_REFUSED;
	return any;
}

/* It could not be done: no thread had a CPU to stop on. */
static void refused(struct range_part *rp)
{
	const struct range_duty *d = &rp->duty;
	uint64_t now_ns = smco_now_ns();
	rp->nr_refused++;
	for (size_t i = 0; i < d->nr_changed; i++)
		range_duty_put(&rp->duty, d->changed[i],
			       d->window[d->changed[i]].is_in, now_ns);
}

void range_part_change(struct range_part *rp, uint64_t waited_ns)
{
	struct smco_err err = {0};
	const struct range_duty *d = &rp->duty;
	uint64_t cost_ns = 0;
	if (ranges_choose(rp->ranges, d->changed, d->nr_changed, d->want,
			  &cost_ns, &err))
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
	rp->nr_refused = 0;
	if (cost_ns)
		rp->stop_ns =
			(rp->stop_ns * 7 + cost_ns + waited_ns + STOP_NS) / 8;
	uint64_t now_ns = smco_now_ns();
	for (size_t i = 0; i < d->nr_changed; i++) {
		uint32_t w = d->changed[i];
		range_duty_put(&rp->duty, w, ranges_window_is_in(rp->ranges, w),
			       now_ns);
	}
}

/* Who stands loses what the last one takes to have a CPU to stop on. */
static uint64_t lost_ns(const struct range_monitor *m,
			const struct range_proc *p, uint64_t ns)
{
	unsigned nr = tproc_nr_tasks(p->proc);
	unsigned nr_cpus = (unsigned)CPU_COUNT(&m->cpus);
	return nr > 1 && nr_cpus > 1 ? ns * (min_u64(nr, nr_cpus) - 1) : 0;
}

/* Those of @p that want to, @nr parts. */
static void change_all(const struct range_monitor *m, struct range_proc *p,
		       size_t nr, bool owes)
{
	uint64_t began_ns = smco_now_ns();
	bool stands =
		!(insists(m, p, owes) ? tproc_stop(p->proc, NULL)
				      : tproc_stop_briefly(p->proc, NULL));
	smco_debug("range", "pid %d: windows of %zu files change%s",
		   (int)tproc_pid(p->proc), nr, stands ? "" : " later");
	uint64_t waited_ns = lost_ns(m, p, smco_now_ns() - began_ns) / nr;
	for (size_t i = 0; i < p->nr; i++) {
		struct range_part *rp = p->part[i];
		if (!rp->changes)
			continue;
		rp->changes = false;
		if (stands)
			range_part_change(rp, waited_ns);
		else
			refused(rp);
		rp->took_ns = (rp->took_ns * 7 + smco_now_ns() - began_ns) / 8;
	}
	if (stands)
		tproc_cont(p->proc);
}

void range_proc_step(struct range_monitor *m, struct range_proc *p,
		     uint64_t now_ns)
{
	size_t nr_changes = 0;
	for (size_t i = 0; i < p->nr; i++) {
		if (!range_part_steps(p->part[i], now_ns, true))
			continue;
		if (p->part[i]->trial.is_on) {
			range_trial_step(m, p->part[i]);
			continue;
		}
		range_part_step(m, p->part[i], now_ns);
		nr_changes += p->part[i]->changes;
	}
	int64_t room_ns = ledger_room_ns(m->ledger);
	if (nr_changes)
		change_all(m, p, nr_changes, room_ns < 0);
	for (size_t i = 0; i < p->nr; i++)
		if (p->part[i]->has_stepped)
			range_part_stepped(p->part[i], now_ns, room_ns);
	for (size_t i = 0; i < p->nr && !nr_changes; i++)
		range_trial_start(m, p->part[i]);
}
