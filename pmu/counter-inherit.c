/* What a thread does before its counters can be opened: the kernel copies its
 * creator's for it, which are replaced by new ones once it stands. */
#include <sys/ioctl.h>
#include <unistd.h>

#include "pmu/counter-private.h"

/* A kernel may not know groups that inherit, or only to all. */
static bool can_inherit(const struct counter_plan *p, size_t group)
{
	struct open_group o;
	if (counter_open_group(p, group, gettid(), -1, COUNTER_EXEC, &o, NULL))
		return false;
	counter_close_group(&o);
	return true;
}

/* One that samples cannot. */
static bool wants_to(const struct counter_plan *p,
		     const struct counter_group *g)
{
	if (g->is_machine_wide || g->has_every)
		return false;
	for (size_t i = 0; i < g->nr; i++)
		if (!counter_has_history(&p->event[g->first + i]))
			return true;
	return false;
}

bool counter_plan_inherit(struct counter_plan *p, bool of_processes)
{
	bool any = false;
	p->threads_only = !of_processes;
	for (size_t i = 0; i < p->nr_groups; i++) {
		struct counter_group *g = &p->group[i];
		g->inherits = wants_to(p, g);
		g->inherits = g->inherits && can_inherit(p, i);
		any |= g->inherits;
	}
	return any;
}

bool counter_plan_can_leave_births(const struct counter_plan *p)
{
	for (size_t g = 0; g < p->nr_groups; g++)
		for (size_t i = 0; p->group[g].inherits && i < p->group[g].nr;
		     i++)
			if (p->event[p->group[g].first + i].is_tallied)
				return false;
	return true;
}

void counter_plan_leave_births(struct counter_plan *p)
{
	p->of_creators = true;
}

bool counter_thread_keep(struct counter_thread *t)
{
	size_t nr = 0;
	counter_unmap_page(t);
	counter_end_tally(t);
	for (size_t i = 0; i < t->nr; i++) {
		if (t->plan->group[t->open[i].group].inherits)
			t->open[nr++] = t->open[i];
		else
			counter_close_group(&t->open[i]);
	}
	t->nr = nr;
	return nr > 0;
}

int counter_thread_renew(struct counter_thread *t, struct smco_err *err)
{
	int ret = 0;
	if (t->plan->of_creators)
		return 0;
	for (size_t i = 0; i < t->nr; i++) {
		struct open_group *o = &t->open[i], fresh;
		if (!t->plan->group[o->group].inherits || o->is_lost)
			continue;
		int rc = counter_open_group(t->plan, o->group, t->tid, -1,
					    COUNTER_NOW, &fresh, err);
		if (rc == SMCO_GONE)
			return rc;
		fresh.is_off = o->is_off;
		fresh.off_ns = o->off_ns;
		counter_close_group(o);
		if (rc) {
			o->is_lost = true;
			ret = rc;
			continue;
		}
		*o = fresh;
		counter_renew_tally(t, o);
		if (o->is_off)
			ioctl(o->fd[0], PERF_EVENT_IOC_DISABLE, 0);
	}
	return ret;
}
