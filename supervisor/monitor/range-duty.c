#include "supervisor/monitor/range-duty.h"

#include <stdlib.h>

#include "supervisor/control/fixed.h"

#define SHORTEST_SLICE_NS NSEC_PER_MSEC
#define LONGEST_SLICE_NS  (50 * NSEC_PER_MSEC)
#define QUICK_STEP_NS	  NSEC_PER_MSEC
#define SLOW_STEP_NS	  (20 * NSEC_PER_MSEC)
/* A slice has to be worth the two stops around it. */
#define WORTH 4
/* Of what the window has room for, a slice may take this part. */
#define CREDIT 16
/* What the cold ones may take of the target: this and that share. */
#define COLD_NUM 2
#define COLD_DEN 5

void range_duty_init(struct range_duty *d, enum controller_kind kind,
		     int64_t target_overhead_ppb, uint64_t now_ns)
{
	*d = (struct range_duty){
		.kind = kind,
		.m_t_ppb =
			target_is_unlimited(target_overhead_ppb)
				? INT64_MAX
				: control_m_from_overhead(target_overhead_ppb),
		.last_ns = now_ns,
	};
}

/* What each cost, smoothed: a rate that falls is believed more slowly than
 * one that rises, or a hot function would be taken for cold between bursts. */
static void learn(struct range_duty *d, struct range_duty_function *fn,
		  const uint64_t *cost_ns, size_t nr, uint64_t dt_ns)
{
	uint64_t sum = 0;
	bool any_hot = false;
	for (size_t i = 0; i < nr; i++) {
		if (!fn[i].is_in || !dt_ns)
			continue;
		fn[i].watched_ns += dt_ns;
		uint64_t rate = sat_u64((u128)cost_ns[i] * PPB / dt_ns);
		sum = sat_add_u64(sum, rate);
		any_hot |= fn[i].is_hot;
		if (rate >= fn[i].rate_ppb)
			fn[i].rate_ppb = rate;
		else
			fn[i].rate_ppb -= (fn[i].rate_ppb - rate) / 8;
	}
	if (sum > d->peak_ppb)
		d->peak_ppb = sum;
	else if (any_hot)
		d->peak_ppb -= (d->peak_ppb - sum) / 16;
}

/*
 * What some of them cost together: not the sum of what each costs when it
 * runs, for they do not all run at the same time.
 */
static uint64_t together(const struct range_duty *d, uint64_t sum_ppb)
{
	uint64_t most = sat_add_u64(d->peak_ppb, d->peak_ppb / 4);
	return min_u64(sum_ppb, most);
}

static int by_rate(const void *pa, const void *pb)
{
	const struct range_duty_function *const *a = pa, *const *b = pb;
	if ((*a)->rate_ppb != (*b)->rate_ppb)
		return (*a)->rate_ppb < (*b)->rate_ppb ? -1 : 1;
	return *a < *b ? -1 : *a > *b;
}

static int by_watched(const void *pa, const void *pb)
{
	const struct range_duty_function *const *a = pa, *const *b = pb;
	if ((*a)->watched_ns != (*b)->watched_ns)
		return (*a)->watched_ns < (*b)->watched_ns ? -1 : 1;
	return by_rate(pa, pb);
}

/* The cheapest, as many as go into the cold ones' share, are cold. */
static void split(const struct range_duty *d,
		  struct range_duty_function **order, size_t nr)
{
	uint64_t share = (uint64_t)d->m_t_ppb / COLD_DEN * COLD_NUM, sum = 0;
	qsort(order, nr, sizeof(struct range_duty_function *), by_rate);
	for (size_t i = 0; i < nr; i++) {
		sum = sat_add_u64(sum, order[i]->rate_ppb);
		order[i]->is_hot = sum > share;
	}
}

/* What the hot ones among those wanted will cost in a slice, and how long it
 * should be. */
static uint64_t slice_ns(uint64_t rate_ppb, uint64_t stop_ns)
{
	if (!rate_ppb)
		return LONGEST_SLICE_NS;
	uint64_t ns = sat_u64((u128)stop_ns * 2 * WORTH * PPB / rate_ppb);
	return min_u64(max_u64(ns, SHORTEST_SLICE_NS), LONGEST_SLICE_NS);
}

/* The cost of a slice with a hot load of @rate_ppb, stops included. */
static int64_t slice_cost_ns(uint64_t rate_ppb, uint64_t stop_ns)
{
	uint64_t ns = slice_ns(rate_ppb, stop_ns);
	return sat_i64((i128)ns * (i128)rate_ppb / PPB + 2 * (i128)stop_ns);
}

/*
 * A slice: as many hot ones as the room pays for. Those that were watched least
 * come first; the global controller has but one switch for all.
 */
static bool begin_slice(struct range_duty *d,
			struct range_duty_function **order, size_t nr,
			const struct range_duty_state *s)
{
	uint64_t rate = 0;
	int64_t budget = s->window_room_ns / CREDIT;
	bool any = false;
	if (s->room_ns > budget)
		budget = s->room_ns;
	qsort(order, nr, sizeof(struct range_duty_function *), by_watched);
	for (size_t i = 0; i < nr; i++) {
		if (!order[i]->is_hot)
			continue;
		uint64_t with = sat_add_u64(rate, order[i]->rate_ppb);
		if (s->room_ns > 0 &&
		    slice_cost_ns(together(d, with), s->stop_ns) <= budget) {
			rate = with;
			any = order[i]->want_in = true;
		} else if (d->kind == CONTROL_GLOBAL) {
			any = false;
			break;
		}
	}
	for (size_t i = 0; i < nr && !any; i++)
		order[i]->want_in = !order[i]->is_hot;
	d->slice_end_ns =
		any ? s->now_ns + slice_ns(together(d, rate), s->stop_ns) : 0;
	return any;
}

static void decide(struct range_duty *d, struct range_duty_function **order,
		   size_t nr, const struct range_duty_state *s)
{
	split(d, order, nr);
	uint64_t rate = 0;
	for (size_t i = 0; i < nr; i++) {
		order[i]->want_in = !order[i]->is_hot;
		if (order[i]->is_hot && order[i]->is_in)
			rate = sat_add_u64(rate, order[i]->rate_ppb);
	}
	/* A slice that is on lasts to its end, and longer while that is paid
	 * for: it costs no stop. */
	bool is_on = d->slice_end_ns != 0 && rate;
	int64_t next = slice_cost_ns(together(d, rate), s->stop_ns);
	if (is_on && s->window_room_ns > 0 &&
	    (s->now_ns < d->slice_end_ns || next <= s->room_ns)) {
		for (size_t i = 0; i < nr; i++)
			order[i]->want_in |= order[i]->is_in;
		return;
	}
	if (is_on) {
		d->slice_end_ns = 0;
		return;
	}
	begin_slice(d, order, nr, s);
}

bool range_duty_step(struct range_duty *d, struct range_duty_function *fn,
		     const uint64_t *cost_ns, size_t nr,
		     const struct range_duty_state *s)
{
	d->pause_ns = SLOW_STEP_NS;
	if (s->room_ns > -(int64_t)SLOW_STEP_NS && d->m_t_ppb > 0) {
		uint64_t owed = s->room_ns < 0 ? (uint64_t)-s->room_ns : 0;
		d->pause_ns = min_u64(
			sat_u64((u128)owed * PPB / (uint64_t)d->m_t_ppb),
			SLOW_STEP_NS);
		d->pause_ns = max_u64(d->pause_ns, QUICK_STEP_NS);
	}
	learn(d, fn, cost_ns, nr, sat_sub_u64(s->now_ns, d->last_ns));
	d->last_ns = s->now_ns;
	struct range_duty_function **order =
		nr ? calloc(nr, sizeof(struct range_duty_function *)) : NULL;
	for (size_t i = 0; i < nr; i++) {
		fn[i].want_in = d->m_t_ppb == INT64_MAX;
		if (order)
			order[i] = &fn[i];
	}
	/* Without memory, nothing is in: that costs nothing. */
	if (order && d->m_t_ppb != INT64_MAX && d->m_t_ppb > 0)
		decide(d, order, nr, s);
	free(order);
	bool changes = false;
	for (size_t i = 0; i < nr; i++)
		changes |= fn[i].want_in != fn[i].is_in;
	return changes;
}

uint64_t range_duty_due_ns(const struct range_duty *d,
			   const struct range_duty_function *fn, size_t nr)
{
	if (d->m_t_ppb == INT64_MAX || d->m_t_ppb <= 0)
		return d->last_ns + SLOW_STEP_NS;
	uint64_t due_ns = d->last_ns + SLOW_STEP_NS;
	for (size_t i = 0; i < nr; i++) {
		/* Only what is in can cost anything. */
		if (fn[i].is_in &&
		    (fn[i].is_hot || fn[i].rate_ppb > (uint64_t)d->m_t_ppb / 4))
			return d->last_ns + QUICK_STEP_NS;
		if (fn[i].is_hot && d->last_ns + d->pause_ns < due_ns)
			due_ns = d->last_ns + d->pause_ns;
	}
	return due_ns;
}
