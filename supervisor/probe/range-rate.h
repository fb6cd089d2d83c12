/*
 * range-rate.h - what hits of range sensors cost at present. Whoever else uses
 * the program's core makes each two or three times dearer, comes and goes. So
 * it is measured where the program runs, now and then: the more, the more hits
 * there are. Where this thread may not go there at once it is taken to be busy.
 */
#ifndef SMCO_RANGE_RATE_H
#define SMCO_RANGE_RATE_H

#include "supervisor/probe/range-cost.h"

struct range_rate {
	/* private: */
	struct range_cost now;
	uint64_t charged_ns;  /* since it was measured */
	uint64_t measured_ns; /* when that was */
	uint64_t took_ns;     /* how long */
};

void range_rate_init(struct range_rate *r, uint64_t now_ns);
/* What @hits cost at present that cost @cost_ps by range_cost_window and
 * range_cost_here, and an eighth more. */
uint64_t range_rate_of(const struct range_rate *r, uint64_t hits,
		       uint64_t cost_ps);
/* What one hit of a window costs at present that is alone, ps, and an eighth
 * more: struct range_cost. It is measured at first only, and taken to change as
 * others do. */
uint32_t range_rate_alone(const struct range_rate *r);
/* So much was charged. */
void range_rate_charged(struct range_rate *r, uint64_t ns);
/* It should be measured again. */
bool range_rate_is_due(const struct range_rate *r, uint64_t now_ns);
/* Do so on @cpu, where the program runs; -1: not known. This thread is there
 * meanwhile. */
void range_rate_measure(struct range_rate *r, int cpu);

#endif
