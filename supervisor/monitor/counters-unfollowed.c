/* Processes that are not followed have no counters of their own: what the
 * kernel keeps of them by itself is told as one more thread, of number 0, and
 * what else they do is counted with who gave birth to them, by what the kernel
 * copies. */
#include "supervisor/monitor/counters-private.h"

#include "supervisor/control/fixed.h"

#include <stdlib.h>
#include <string.h>

/* Stops, also of those that are followed, would be put down to creators, and
 * not be known as ours. */
static bool may_be_creators(const struct pmu_event *ev)
{
	return !counters_has_stops(ev) && ev->role != PMU_MIGRATIONS;
}

static bool may_leave(const struct counters *c, size_t group)
{
	const struct counter_group *g = &c->plan.group[group];
	if (g->inherits && c->plan.threads_only)
		return false;
	for (size_t i = 0; i < counters_nr_shown(c, group); i++) {
		const struct pmu_event *ev = &c->plan.event[g->first + i];
		if (g->inherits ? !may_be_creators(ev) : !counter_is_kept(ev))
			return false;
	}
	return true;
}

bool counters_may_leave_births(const struct counters *c)
{
	if (c->every.nr || !counter_plan_can_leave_births(&c->plan))
		return false;
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		if (!c->plan.group[g].is_machine_wide && !may_leave(c, g))
			return false;
	return true;
}

/* A creator that waits has children that run: all are read from now on. */
void counters_leave_births(struct counters *c, uint64_t now_ns)
{
	if (!c->inherits || c->plan.of_creators)
		return;
	counter_plan_leave_births(&c->plan);
	counters_jot_leave(c, now_ns);
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next)
			counter_thread_unwatch(t->counters);
}

void counters_note_pauses(struct counters *c, uint64_t now_ns)
{
	uint64_t since_ns = max_u64(c->pauses_ns, c->rest_told_ns);
	for (size_t g = 0; g < c->plan.nr_groups && now_ns > since_ns; g++)
		if (!counter_counts_at(&c->plan.group[g], c->level))
			c->rest_off_ns[g] += now_ns - since_ns;
	c->pauses_ns = now_ns;
}

/* What creators have of them is without what they did in pauses. They live for
 * a moment, so those that have ended since they were told last ran in as many
 * pauses as there were. */
static void add_missed(struct counters *c, size_t group, uint64_t ran_ns,
		       uint64_t now_ns)
{
	uint64_t length_ns = now_ns - c->rest_told_ns;
	c->rest[0].thread.pending[group].sum.enabled_ns +=
		length_ns ? (uint64_t)((double)ran_ns *
				       ((double)c->rest_off_ns[group] /
					(double)length_ns))
			  : 0;
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
		if (!who)
			c->rest_told_ns = c->p.start_ns;
		t->pid = pid;
		t->tid = tid;
	}
	if (!who)
		counters_note_pauses(c, now_ns);
	for (size_t g = 0; g < c->plan.nr_groups; g++) {
		const struct counter_group *cg = &c->plan.group[g];
		if (!cg->inherits && !cg->is_machine_wide)
			add_group(c, r, g, all);
		else if (cg->inherits && !who)
			add_missed(c, g, all->run_ns - r->told.run_ns, now_ns);
		counters_write_group(c, t, g, now_ns);
	}
	r->told = *all;
	if (who)
		return;
	memset(c->rest_off_ns, 0, sizeof(c->rest_off_ns));
	c->rest_told_ns = now_ns;
}
