/* Counts that the kernel writes down by itself (jot.h): intervals are told from
 * what it wrote, long after their ends. */
#include "supervisor/monitor/counters-private.h"

#include "supervisor/control/fixed.h"
#include "supervisor/probe/jot.h"

_Static_assert(sizeof(struct jot_note) == COUNTER_NOTE_WORDS * sizeof(uint64_t),
	       "a note is as counter.h has it");
_Static_assert(JOT_MAX_GROUPS == COUNTER_DIRECT_MAX,
	       "what stands behind it is, too");

/* Longer ones are read: so seldom it costs no more. */
#define MOST_NS	   (50 * NSEC_PER_MSEC)
#define USUAL_NS   (120 * NSEC_PER_MSEC)
#define SOONEST_NS (80 * NSEC_PER_MSEC)
#define CROWDED_NS (10 * NSEC_PER_MSEC)

void counters_jot_open(struct counters *c)
{
	struct smco_err err;
	if (c->every.nr || c->p.reads_all || c->p.interval_ns > MOST_NS ||
	    c->plan.nr_groups > JOT_MAX_GROUPS || !counter_plan_jot(&c->plan))
		return;
	if (jot_open(c->p.start_ns, c->p.interval_ns, c->tally, &c->jot,
		     &err)) {
		smco_debug("pmu", "%s", err.msg);
		counter_plan_unjot(&c->plan);
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

/* Those of @t now. */
struct events {
	int ring[COUNTER_MAX_GROUPS], direct[JOT_MAX_DIRECT];
	int leader[COUNTER_DIRECT_MAX];
	struct jot_events of;
};

static void list_events(const struct thread *t, struct events *ret)
{
	ret->of = (struct jot_events){
		.ring = ret->ring,
		.nr_rings = counter_thread_leaders(t->counters, ret->ring),
		.direct = ret->direct,
		.direct_leader = ret->leader,
		.place = counter_thread_place(t->counters),
	};
	ret->of.nr_direct =
		counter_thread_direct(t->counters, ret->direct, JOT_MAX_DIRECT,
				      ret->leader, &ret->of.nr_direct_groups);
}

void counters_jot_begin(struct counters *c, struct thread *t)
{
	struct events ev;
	c->nr_fresh -= t->is_fresh;
	t->is_fresh = false;
	list_events(t, &ev);
	if (!counter_thread_make_room(t->counters, NULL))
		t->slot = jot_add(c->jot, t->tid, &ev.of, NULL);
	if (t->slot >= 0)
		return;
	c->nr_unjotted++;
	counter_thread_watch(t->counters);
}

void counters_jot_add(struct counters *c, struct thread *t, bool is_new)
{
	t->slot = -1;
	t->is_fresh = c->jot && is_new;
	if (!c->jot && c->plan.is_jotted) /* any more */
		counter_thread_watch(t->counters);
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

/* What comes now was counted in the time that @note tells. */
static void go_to(struct counters *c, struct thread *t,
		  const struct jot_note *note)
{
	if (t->at_ns && edge_of(c, note->at_ns) > edge_of(c, t->at_ns))
		finish(c, t, note->first_ns >= edge_after(c, t->at_ns));
	if (!t->at_ns)
		begin_at(c, t, edge_of(c, first_ns(t, note)));
	t->at_ns = note->at_ns;
}

/* It left its CPU some time ago, and that was not written down, for want of
 * room or because it came too often: it can be read and disturbs nobody. */
static bool has_more(const struct counters *c, const struct thread *t,
		     const struct jot_slot *s, uint64_t now_ns)
{
	return s->left_ns > s->written_ns && s->left_ns >= s->arrived_ns &&
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
					  sizeof(note))) {
		go_to(c, t, &note);
		counters_settle(c, t, group, &sum);
	}
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

void counters_jot_stands(struct counters *c, struct thread *t, uint64_t now_ns)
{
	if (t->slot < 0)
		return;
	counters_jot_drain(c, t, now_ns);
	const struct jot_slot s = jot_look(c->jot, t->slot);
	const struct jot_note note = {
		.at_ns = s.left_ns,
		.first_ns = s.first_ns ? s.first_ns : s.left_ns,
		.arrived_ns = s.arrived_ns,
	};
	/* All until it left is in a record, or has a time. */
	if (s.left_ns <= s.written_ns)
		return;
	go_to(c, t, &note);
	t->more_ns = s.left_ns;
}

void counters_jot_renewed(struct counters *c, struct thread *t)
{
	struct events ev;
	if (t->slot < 0)
		return;
	list_events(t, &ev);
	if (!jot_renew(c->jot, t->slot, &ev.of, NULL))
		return;
	counters_jot_remove(c, t);
	t->slot = -1;
	c->nr_unjotted++;
	counter_thread_watch(t->counters);
}

void counters_jot_leave(struct counters *c, uint64_t now_ns)
{
	if (!c->jot)
		return;
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next) {
			counters_jot_drain(c, t, now_ns);
			counters_take_all(c, t);
			counters_jot_remove(c, t);
			t->slot = -1;
			t->is_fresh = false;
			t->at_ns = 0;
			counter_thread_watch(t->counters);
		}
	jot_close(c->jot);
	c->jot = NULL;
	c->nr_unjotted = 0;
	c->due_ns = edge_after(c, now_ns);
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
	uint64_t usual_ns = now_ns + (c->is_crowded ? CROWDED_NS : USUAL_NS);
	if (!c->has_calls || c->p.target_overhead_ppb == INT64_MAX)
		return usual_ns;
	/* In that time calls may cost what there is for a second. */
	return min_u64(usual_ns, counters_next_check_ns(c, now_ns));
}
