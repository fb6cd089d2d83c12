/* Processes that are not followed have no counters: what the kernel keeps of
 * them by itself is told as one more thread, of number 0. */
#include "supervisor/monitor/counters-private.h"

#include <stdlib.h>

bool counters_may_leave_births(const struct counters *c)
{
	if (c->every.nr)
		return false;
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < counters_nr_shown(c, g); i++)
			if (!counter_is_kept(
				    &c->plan.event[c->plan.group[g].first + i]))
				return false;
	return true;
}

static void add_group(struct counters *c, size_t group,
		      const struct counter_past *all)
{
	const struct counter_group *g = &c->plan.group[group];
	struct counter_sum *sum = &c->rest.pending[group].sum;
	const struct counter_past *before = &c->rest_told;
	uint64_t ran_ns = all->run_ns - before->run_ns;
	sum->enabled_ns += ran_ns;
	sum->running_ns += ran_ns;
	for (size_t i = 0; i < g->nr; i++) {
		const struct pmu_event *ev = &c->plan.event[g->first + i];
		sum->value[i] +=
			counter_kept(ev, all) - counter_kept(ev, before);
	}
}

void counters_unfollowed(struct counters *c, pid_t pid,
			 const struct counter_past *all, uint64_t now_ns)
{
	struct thread *t = &c->rest;
	if (!t->pending) {
		t->pending = calloc(c->plan.nr_groups, sizeof(*t->pending));
		if (!t->pending)
			return; /* the next time, then */
		for (size_t g = 0; g < c->plan.nr_groups; g++)
			t->pending[g].read_ns = c->p.start_ns;
		t->pid = pid;
	}
	for (size_t g = 0; g < c->plan.nr_groups; g++) {
		add_group(c, g, all);
		counters_write_group(c, t, g, now_ns);
	}
	c->rest_told = *all;
}
