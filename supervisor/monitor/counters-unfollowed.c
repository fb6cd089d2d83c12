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

static void add_group(struct counters *c, struct counters_rest *r, size_t group,
		      const struct counter_past *all)
{
	const struct counter_group *g = &c->plan.group[group];
	struct counter_sum *sum = &r->thread.pending[group].sum;
	const struct counter_past *before = &r->told;
	uint64_t ran_ns = all->run_ns - before->run_ns;
	sum->enabled_ns += ran_ns;
	sum->running_ns += ran_ns;
	for (size_t i = 0; i < g->nr; i++) {
		const struct pmu_event *ev = &c->plan.event[g->first + i];
		sum->value[i] +=
			counter_kept(ev, all) - counter_kept(ev, before);
	}
}

void counters_drop_rests(struct counters *c)
{
	for (size_t i = 0; i < COUNTERS_RESTS; i++) {
		free(c->rest[i].thread.pending);
		c->rest[i].thread.pending = NULL;
	}
}

void counters_unfollowed(struct counters *c, unsigned who, pid_t pid, pid_t tid,
			 const struct counter_past *all, uint64_t now_ns)
{
	struct counters_rest *r = &c->rest[who];
	struct thread *t = &r->thread;
	if (!t->pending) {
		t->pending = calloc(c->plan.nr_groups, sizeof(*t->pending));
		if (!t->pending)
			return; /* the next time, then */
		for (size_t g = 0; g < c->plan.nr_groups; g++)
			t->pending[g].read_ns = who ? now_ns : c->p.start_ns;
		t->pid = pid;
		t->tid = tid;
	}
	for (size_t g = 0; g < c->plan.nr_groups; g++) {
		add_group(c, r, g, all);
		counters_write_group(c, t, g, now_ns);
	}
	r->told = *all;
}
