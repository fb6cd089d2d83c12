/* What of a thread's counts is our stops', or our taking its CPU, by numbers:
 * switches and moves. */
#include "supervisor/monitor/counters-private.h"

/* How much of what @event counts of @t is ours so far; false: it is not told
 * by numbers. Moves are asked for where there was a stop since: each thread's
 * last one is its end, or our leaving. */
static bool nr_ours(const struct counters *c, const struct thread *t,
		    const struct pmu_event *event, struct stops *s,
		    uint64_t *ret)
{
	uint64_t nr_stops = c->p.nr_stops(t->task);
	if (event->role == PMU_MIGRATIONS) {
		*ret = nr_stops == s->seen ? s->nr : counters_nr_moves(c, t);
		s->seen = nr_stops;
	} else if (counters_has_stops(event)) {
		*ret = nr_stops;
	} else {
		return false;
	}
	return true;
}

/* Its switches to us while it ran, since this was asked last. */
static uint64_t newly_taken(const struct counters *c, const struct thread *t,
			    struct stops *s)
{
	uint64_t before = s->taken, now = counters_nr_taken(c, t);
	if (now <= before)
		return 0;
	s->taken = now;
	return now - before;
}

void counters_take_off_stops(struct counters *c, struct thread *t, size_t group,
			     struct counter_sum *sum)
{
	const struct counter_group *g = &c->plan.group[group];
	if (!t->task)
		return;
	for (size_t i = 0; i < g->nr; i++) {
		struct stops *s = &t->stops[g->first + i];
		const struct pmu_event *ev = &c->plan.event[g->first + i];
		uint64_t nr;
		if (!nr_ours(c, t, ev, s, &nr))
			continue;
		uint64_t owed = s->owed + nr - s->nr;
		if (counters_has_stops(ev) && owed < sum->value[i])
			owed += newly_taken(c, t, s);
		uint64_t off = owed < sum->value[i] ? owed : sum->value[i];
		sum->value[i] -= off;
		s->owed = owed - off;
		s->nr = nr;
	}
}

void counters_begin_stops(const struct counters *c, struct thread *t,
			  const struct counter_group *g,
			  enum counter_since since, uint64_t nr_stops)
{
	bool from_birth = since == COUNTER_BIRTH && !g->inherits;
	uint64_t nr_taken = counters_nr_taken(c, t);
	for (size_t i = g->first; i < g->first + g->nr; i++) {
		t->stops[i].taken = nr_taken;
		if (c->plan.event[i].role == PMU_MIGRATIONS)
			t->stops[i].nr = counters_nr_moves(c, t);
		else if (!from_birth || c->plan.event[i].role != PMU_SWITCHES)
			t->stops[i].nr = nr_stops;
	}
}

void counters_owe_stops(struct counters *c, struct thread *t, uint64_t nr)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++) {
		const struct counter_group *cg = &c->plan.group[g];
		for (size_t i = cg->first; i < cg->first + cg->nr; i++)
			if (cg->inherits &&
			    counters_has_stops(&c->plan.event[i]))
				t->stops[i].owed += nr;
	}
}
