/* Counts that the kernel writes down by itself (jot.h): intervals are told from
 * what it wrote, long after their ends. */
#include "supervisor/monitor/counters-private.h"

#include "supervisor/probe/jot.h"

/* Longer ones are read: so seldom it costs no more. */
#define MOST_NS	   (50 * NSEC_PER_MSEC)
#define USUAL_NS   (120 * NSEC_PER_MSEC)
#define SOONEST_NS (80 * NSEC_PER_MSEC)
#define CROWDED_NS (10 * NSEC_PER_MSEC)

void counters_jot_open(struct counters *c)
{
	struct smco_err err;
	if (c->every.nr || c->inherits || c->p.reads_all ||
	    c->p.interval_ns > MOST_NS || c->plan.nr_groups > JOT_MAX_GROUPS)
		return;
	if (jot_open(c->p.start_ns, c->p.interval_ns, &c->jot, &err)) {
		smco_debug("pmu", "%s", err.msg);
		return;
	}
	if (!counter_plan_jot(&c->plan)) {
		jot_close(c->jot);
		c->jot = NULL;
	}
}

/* When the interval of @ns began. */
static uint64_t edge_of(const struct counters *c, uint64_t ns)
{
	const struct jot_grid grid = {c->p.start_ns, c->p.interval_ns};
	return jot_edge(&grid, ns);
}

static uint64_t edge_after(const struct counters *c, uint64_t ns)
{
	return edge_of(c, ns) + c->p.interval_ns;
}

void counters_jot_begin(struct counters *c, struct thread *t)
{
	int fd[COUNTER_MAX_GROUPS];
	c->nr_fresh -= t->is_fresh;
	t->is_fresh = false;
	size_t nr = counter_thread_leaders(t->counters, fd);
	if (!counter_thread_make_room(t->counters, NULL))
		t->slot = jot_add(c->jot, t->tid, fd, nr, NULL);
	if (t->slot >= 0)
		return;
	c->nr_unjotted++;
	counter_thread_watch(t->counters);
}

void counters_jot_add(struct counters *c, struct thread *t, bool is_new)
{
	t->slot = -1;
	t->is_fresh = c->jot && is_new;
	if (t->is_fresh && !c->nr_fresh++)
		c->fresh_ns = edge_after(c, smco_now_ns());
	if (c->jot && !is_new)
		counters_jot_begin(c, t);
}

void counters_jot_remove(struct counters *c, struct thread *t)
{
	if (c->jot && t->slot >= 0)
		jot_remove(c->jot, t->slot, t->tid);
	else if (t->is_fresh)
		c->nr_fresh--;
	else if (c->jot)
		c->nr_unjotted--;
}

/* Nothing was counted until @ns since the last record. */
static void begin_at(struct counters *c, struct thread *t, uint64_t ns)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		if (t->pending[g].read_ns < ns)
			t->pending[g].read_ns = ns;
}

/* What was counted up to t->at_ns is the interval's, to whose end the thread
 * was on no CPU (@was_off), or what is known of it. */
static void finish(struct counters *c, struct thread *t, bool was_off)
{
	uint64_t unit = unit_for(c->p.interval_ns, COUNTS_TIME_UNIT_NS);
	uint64_t end_ns =
		was_off ? edge_after(c, t->at_ns)
			: c->p.start_ns +
				  in_units(t->at_ns - c->p.start_ns, unit);
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		if (end_ns > t->pending[g].read_ns)
			counters_write_group(c, t, g, end_ns);
	t->at_ns = 0;
}

/* Since when it has counted what is written down. The kernel does not know that
 * it was read when it had left. */
static uint64_t first_ns(const struct thread *t, const struct jot_note *note)
{
	return note->first_ns <= t->more_ns ? note->arrived_ns : note->first_ns;
}

static void take(struct counters *c, struct thread *t, size_t group,
		 struct counter_sum *sum, const struct jot_note *note)
{
	if (t->at_ns && edge_of(c, note->at_ns) > edge_of(c, t->at_ns))
		finish(c, t, note->first_ns >= edge_after(c, t->at_ns));
	if (!t->at_ns)
		begin_at(c, t, edge_of(c, first_ns(t, note)));
	t->at_ns = note->at_ns;
	counters_settle(c, t, group, sum);
}

/* It left its CPU some time ago, and that was not written down, for want of
 * room or because it came too often: it can be read and disturbs nobody. */
static bool has_more(const struct counters *c, const struct thread *t,
		     const struct jot_slot *s, uint64_t now_ns)
{
	return s->left_ns > s->written_ns && s->left_ns > s->arrived_ns &&
	       s->left_ns != t->more_ns &&
	       now_ns > edge_after(c, s->left_ns) + c->p.interval_ns;
}

bool counters_jot_drain(struct counters *c, struct thread *t, uint64_t now_ns)
{
	struct jot_note note;
	struct counter_sum sum;
	size_t group;
	if (t->slot < 0)
		return false;
	c->is_crowded |= counter_thread_is_crowded(t->counters);
	const struct jot_slot s = jot_look(c->jot, t->slot);
	while (counter_thread_next_jotted(t->counters, &group, &sum, &note,
					  sizeof(note)))
		take(c, t, group, &sum, &note);
	/* What came after the look is for the next one. */
	if (t->at_ns && t->at_ns <= s.written_ns &&
	    edge_after(c, t->at_ns) <= now_ns)
		finish(c, t,
		       !s.first_ns || s.first_ns >= edge_after(c, t->at_ns));
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR,
		      s.cost_ns - t->cost_ns);
	t->cost_ns = s.cost_ns;
	if (!has_more(c, t, &s, now_ns))
		return false;
	t->more_ns = s.left_ns;
	return true;
}

bool counters_jots_all(const struct counters *c)
{
	return c->jot && !c->nr_unjotted;
}

bool counters_may_tick(const struct counters *c, uint64_t now_ns)
{
	return counters_jots_all(c) && now_ns >= c->ticked_ns + SOONEST_NS;
}

uint64_t counters_jot_due_ns(const struct counters *c, uint64_t now_ns)
{
	return now_ns + (c->is_crowded ? CROWDED_NS : USUAL_NS);
}
