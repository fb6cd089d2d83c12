/* What counting takes of a thread's time: charged to the ledger, and no part of
 * the times by which counts are scaled. */
#include "reports/median.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of so many calls their time is known well. */
#define ENOUGH_CALLS 1000

/* An event of perf's that pauses costs a call some ns, too. */
static bool has_call_events(const struct counters *c)
{
	for (size_t i = 0; i < c->plan.nr_events; i++)
		if (c->plan.event[i].is_call_entry &&
		    !c->plan.event[i].is_tallied)
			return true;
	return false;
}

static bool is_tallied(const struct counters *c)
{
	size_t first = c->plan.group[c->call_group].first;
	return c->plan.event[first + c->call_index].is_tallied;
}

void counters_measure_prices(struct counters *c, uint64_t before_ns)
{
	uint64_t bare_ns;
	c->hit_ns = counters_hit_cost_ns(c);
	if (!c->has_calls)
		return;
	if (is_tallied(c)) {
		c->bare_ns = before_ns;
		c->call_ns = c->cheap_ns = counters_tally_price_ns(c);
		c->idle_ns = !has_call_events(c)
				     ? 0
				     : sat_sub_u64(counter_bare_call_ns(),
						   before_ns);
		return;
	}
	c->call_ns = counter_call_cost_ns(&c->plan, COUNTER_ALL, &c->bare_ns);
	c->cheap_ns = c->call_ns;
	if (counters_has_cheap(c))
		c->cheap_ns =
			counter_call_cost_ns(&c->plan, COUNTER_CHEAP, &bare_ns);
	/* Where somebody else has them traced, it is that one's. */
	c->idle_ns = sat_sub_u64(counter_bare_call_ns(), before_ns);
}

/* The last that were measured, of one level. */
static void keep_price(struct counters_price *p, uint64_t ns)
{
	p->ns[p->nr++ % COUNTERS_PRICES] = ns;
}

static uint64_t usual_price(const struct counters_price *p)
{
	int64_t ns[COUNTERS_PRICES];
	size_t nr = min_u64(p->nr, COUNTERS_PRICES);
	memcpy(ns, p->ns, nr * sizeof(*ns));
	return (uint64_t)median_i64(ns, nr);
}

void counters_sample_begin(struct counters *c)
{
	c->all_price = c->cheap_price = (struct counters_price){0};
	keep_price(&c->all_price, c->call_ns);
	keep_price(&c->cheap_price, c->cheap_ns);
	if (!c->has_calls || counter_thread_open(&c->plan, gettid(),
						 COUNTER_NOW, &c->self, NULL))
		c->self = NULL;
	else
		counter_thread_set_level(c->self, COUNTER_CLOCKS);
}

void counters_sample_end(struct counters *c)
{
	counter_thread_close(c->self);
	c->self = NULL;
}

void counters_sample_price(struct counters *c, enum counter_level level)
{
	if (!c->self)
		return;
	uint64_t ns = is_tallied(c) ? counters_tally_more_ns(c)
				    : counter_call_more_ns(c->self, level);
	if (level == COUNTER_ALL) {
		keep_price(&c->all_price, ns);
		c->call_ns = usual_price(&c->all_price);
	} else {
		keep_price(&c->cheap_price, ns);
		c->cheap_ns = usual_price(&c->cheap_price);
	}
	if (!counters_has_cheap(c))
		c->cheap_ns = c->call_ns;
}

bool counters_has_cheap(const struct counters *c)
{
	bool any = false;
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		any |= c->plan.group[g].has_filters;
	return any && c->has_calls && !c->every.nr &&
	       !c->plan.group[c->call_group].has_filters;
}

/* No more than there is beside the calls themselves: the price was right at
 * another moment. */
static uint64_t believed(const struct counters *c,
			 const struct counter_sum *sum, uint64_t nr,
			 uint64_t cost_ns)
{
	if (!c->bare_ns)
		return cost_ns;
	return min_u64(cost_ns, sat_sub_u64(sum->running_ns, nr * c->bare_ns));
}

/* While counting paused calls were as frequent as they were when they cost
 * least, as far as is known. */
static void charge_unseen(struct counters *c, const struct thread *t,
			  const struct counter_sum *sum)
{
	uint64_t unseen_ns = sat_sub_u64(sum->enabled_ns, sum->running_ns);
	if (!t->calm_ns || !unseen_ns)
		return;
	uint64_t cost_ns = (uint64_t)((double)unseen_ns / (double)t->calm_ns *
				      (double)(t->nr_calm * c->idle_ns));
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR, cost_ns);
	c->unseen_cost_ns += cost_ns;
}

/* Is one less than so many prices long, its time is known better than they are.
 */
#define SHORT_TIMES 2

/*
 * What @nr calls cost that were counted with all else, @price_ns each, as it is
 * known. Where that is many times as long as a call, a price that is wrong by a
 * tenth is wrong by as much as they take; but how long one is without is known
 * from when they were counted by themselves. Not half of the price, or three
 * times: then the thread did something else.
 */
static uint64_t cost_by_calm(const struct thread *t, uint64_t running_ns,
			     uint64_t nr, uint64_t price_ns)
{
	uint64_t usual_ns = nr * price_ns;
	if (t->nr_calm < ENOUGH_CALLS ||
	    t->calm_ns / t->nr_calm >= SHORT_TIMES * price_ns)
		return usual_ns;
	double own_ns = (double)t->calm_ns / (double)t->nr_calm * (double)nr;
	uint64_t cost_ns = sat_sub_u64(running_ns, (uint64_t)own_ns);
	return min_u64(max_u64(cost_ns, usual_ns / 2), 3 * usual_ns);
}

static uint64_t cost_of_calls(struct counters *c, struct thread *t,
			      const struct counter_sum *sum)
{
	uint64_t nr = sum->value[c->call_index];
	bool is_calm = !counters_has_cheap(c) || c->level == COUNTER_CHEAP;
	uint64_t price_ns = is_calm ? c->cheap_ns : c->call_ns;
	uint64_t cost_ns = nr * price_ns;
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR,
		      cost_ns + nr * c->idle_ns);
	c->work_ns += cost_ns;
	c->unseen_cost_ns += nr * c->idle_ns;
	if (!is_calm)
		cost_ns = cost_by_calm(t, sum->running_ns, nr, price_ns);
	cost_ns = believed(c, sum, nr, cost_ns);
	if (is_calm) {
		t->calm_ns += sum->running_ns - cost_ns;
		t->nr_calm += nr;
	}
	if (!is_calm)
		t->all_run_ns += sum->running_ns;
	charge_unseen(c, t, sum);
	return cost_ns;
}

/* Each costs what a call does, at any time: no window helps. */
static uint64_t charge_tallied_hits(struct counters *c, size_t group,
				    const struct counter_sum *sum)
{
	const struct counter_group *g = &c->plan.group[group];
	uint64_t nr = 0;
	for (size_t i = 0; i < g->nr; i++)
		if (c->plan.event[g->first + i].is_hit)
			nr += sum->value[i];
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR,
		      nr * c->cheap_ns);
	return nr * c->cheap_ns;
}

void counters_take_price(struct counters *c, struct thread *t, size_t group,
			 const struct counter_sum *sum)
{
	uint64_t cost_ns = 0;
	if (c->hit_ns)
		cost_ns = counters_nr_hits(c, group, sum) * c->hit_ns;
	if (cost_ns)
		ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR,
			      cost_ns);
	c->work_ns += cost_ns;
	cost_ns += charge_tallied_hits(c, group, sum);
	if (c->has_calls && group == c->call_group)
		cost_ns += cost_of_calls(c, t, sum);
	t->counting_ns += cost_ns;
	if (c->level == COUNTER_CHEAP)
		t->cheap_ns += cost_ns;
}

void counters_age_calm(struct counters *c)
{
	for (size_t i = 0; i < COUNTERS_HASH; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next) {
			t->calm_ns -= t->calm_ns / 4;
			t->nr_calm -= t->nr_calm / 4;
		}
}
