#include "supervisor/monitor/range-due.h"

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-cheap.h"
#include "supervisor/pace.h"

/* A step comes sooner when what is in has cost so many stops by then: many
 * short turns see more than a few long ones. */
#define SHORTEST_STEP_NS (100 * NSEC_PER_USEC)
#define STOPS_A_STEP	 3
/* While what is in costs less than the target, looking at it takes at most a
 * part of that. It costs so much of a processor at least, perhaps of the
 * program's; of that, waking up (probe/wakecost.h). Of a large program it costs
 * more. */
#define LOOK_NS	    (60 * NSEC_PER_USEC)
#define WAKE_NS	    (30 * NSEC_PER_USEC)
#define LOOKS_SHARE 4
/* Where it takes most of what is owed, no look is later than usual by more than
 * the files are more than so many, and so many times. */
#define FEW_FILES   8
#define MOST_SLOWER 5
/* Where it is none of the program's, some percent of a processor; while more is
 * owed than may be and the program begins with something new all the time, a
 * quarter of one. */
#define FREE_PPB  40000000
#define FREE_PART 8
#define YOUNG_PPB 250000000
#define YOUNG_NS  NSEC_PER_SEC
/* What begins is taken to cost that part of the time at least. What began
 * before counts less by one in so many. */
#define BEGIN_PART   4
#define BEGIN_MEMORY 8
/* A step may come so much of that time sooner, with others. */
#define EARLY_PART 4

void range_due_learn(struct range_duty *d, const struct range_duty_state *s)
{
	uint64_t all_ns = s->look_ns + max_u64(s->wake_ns, WAKE_NS);
	d->stop_ns = s->stop_ns;
	d->look_ns = max_u64(s->look_ns + WAKE_NS, LOOK_NS);
	d->taken_ns = max_u64(all_ns, LOOK_NS) * s->taken_ppk / TAKEN_ALL;
	d->is_free = s->taken_ppk <= TAKEN_ALL / FREE_PART;
	d->owes = s->room_ns < 0;
}

void range_due_begin(struct range_duty *d, uint64_t cost_ps, uint64_t dt_ns)
{
	/* It began somewhere in between: half of it, where that may be. */
	uint64_t ppb =
		dt_ns ? sat_u64((u128)cost_ps * (2 * PPB / 1000) / dt_ns) : 0;
	uint64_t before = d->begin_ppb - d->begin_ppb / BEGIN_MEMORY;
	d->begin_ppb =
		min_u64(max_u64(max_u64(ppb, before), PPB / BEGIN_PART), PPB);
}

/*
 * What is in and was never passed may begin at any moment, and takes perhaps
 * all of the time until it is looked at, or the part that others took so far.
 * Looks and that together take least if they are apart by the root of twice
 * what a look takes and the time from one beginning to the next, by that part:
 * J. W. Young, A First Order Approximation to the
 * Optimum Checkpoint Interval, 1974.
 */
static uint64_t until_new_ns(const struct range_duty *d)
{
	uint64_t age_ns = sat_sub_u64(d->last_ns, d->born_ns);
	uint64_t apart_ns = age_ns / ((uint64_t)d->nr_new + 1);
	/* Where looks cost next to nothing nobody waits for the worst. */
	uint64_t part_ppb = d->is_free ? PPB : d->begin_ppb;
	uint64_t ns = root_u64(
		sat_u64((u128)2 * d->taken_ns * apart_ns * PPB / part_ppb));
	return max_u64(ns, div_ppb(d->look_ns, d->owes ? YOUNG_PPB : FREE_PPB));
}

static uint64_t slowest_ns(const struct range_duty *d, bool is_dear)
{
	unsigned nr = is_dear ? range_cheap_nr(d->cheap) : 1;
	uint64_t ns = (uint64_t)SLOW_STEP_NS * nr / FEW_FILES;
	return max_u64(min_u64(ns, MOST_SLOWER * SLOW_STEP_NS), SLOW_STEP_NS);
}

/* While what is in costs less than the target. */
static uint64_t quiet_ns(const struct range_duty *d, bool is_dear)
{
	unsigned share = LOOKS_SHARE * (is_dear ? OWING : 1);
	uint64_t ns = div_ppb(d->taken_ns * share, d->m_t_ppb);
	ns = max_u64(ns, div_ppb(d->look_ns, FREE_PPB));
	ns = max_u64(ns, QUICK_STEP_NS);
	if (d->is_free && d->last_ns < d->glance_ns)
		ns = GLANCE_STEP_NS;
	return ns;
}

/* While it costs more. */
static uint64_t loaded_ns(const struct range_duty *d, unsigned nr_stops)
{
	uint64_t ns = sat_u64((u128)d->stop_ns * nr_stops * PPB / d->load_ppb);
	/* Nor does looking ever take as long as what is looked at, or cost the
	 * program as much. */
	ns = max_u64(min_u64(ns, QUICK_STEP_NS), SHORTEST_STEP_NS);
	ns = max_u64(ns, div_ppb(d->taken_ns, sat_i64(d->load_ppb)));
	ns = max_u64(ns, 2 * d->look_ns);
	return min_u64(ns, SLOW_STEP_NS);
}

uint64_t range_duty_due_ns(const struct range_duty *d)
{
	/* What looking takes is most of what is owed, where it takes much; not
	 * while it is what begins that costs so much until it is seen. */
	bool is_dear = d->owes && !d->is_free && !d->is_young;
	bool is_new = d->is_young && d->last_ns < d->born_ns + YOUNG_NS;
	if (d->m_t_ppb == INT64_MAX || d->m_t_ppb <= 0)
		return d->last_ns + SLOW_STEP_NS;
	if (d->load_ppb >= (uint64_t)d->m_t_ppb)
		return d->last_ns +
		       loaded_ns(d, is_new && d->owes ? 1 : STOPS_A_STEP);
	uint64_t ns = quiet_ns(d, is_dear);
	if (is_new)
		ns = min_u64(ns, until_new_ns(d));
	/* What is due may have to wait for room. */
	return d->last_ns +
	       min_u64(max_u64(ns, d->idle_ns), slowest_ns(d, is_dear));
}

uint64_t range_duty_early_ns(const struct range_duty *d)
{
	uint64_t due_ns = range_duty_due_ns(d);
	return due_ns - sat_sub_u64(due_ns, d->last_ns) / EARLY_PART;
}
