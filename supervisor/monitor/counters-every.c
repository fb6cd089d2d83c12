/* Intervals that an event ends. */
#include "supervisor/monitor/counters-private.h"

/* The kernel knows when they ended to a few hundred ns. */
#define UNIT_NS 1000

static uint64_t end_of(const struct counters *c, const struct pending *p,
		       uint64_t at_ns)
{
	uint64_t told =
		c->p.start_ns + in_units(at_ns - c->p.start_ns, UNIT_NS);
	return told > p->read_ns ? told : at_ns;
}

bool counters_drain(struct counters *c, struct thread *t)
{
	struct counter_sum sum;
	uint64_t at_ns, nr = 0, joined = 0;
	size_t group;
	if (!c->every.nr)
		return false;
	bool is_crowded = counter_thread_is_crowded(t->counters);
	for (; counter_thread_next(t->counters, &group, &sum, &at_ns); nr++) {
		struct pending *p = &t->pending[group];
		uint64_t ends = sum.value[c->plan.group[group].nr - 1];
		if (ends >= 2 * c->every.nr)
			joined += ends / c->every.nr - 1;
		counters_settle(c, t, group, &sum);
		if (at_ns > p->read_ns)
			counters_write_group(c, t, group, end_of(c, p, at_ns));
	}
	c->nr_joined += joined;
	ledger_charge(c->ledger, LEDGER_OTHER, COUNTERS_MONITOR,
		      (nr + joined) * c->every_ns);
	return is_crowded;
}
