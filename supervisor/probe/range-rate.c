#include "supervisor/probe/range-rate.h"

#include <sched.h>

#include "supervisor/control/fixed.h"
#include "supervisor/probe/hop.h"

/* Not more often, and not before hits have cost so many times as much. */
#define LEAST_NS (100 * NSEC_PER_MSEC)
#define TIMES	 64
/* To go there, and to be back. */
#define USUAL_TOOK_NS (80 * NSEC_PER_USEC)
/* One function's hits cost a fifth more than the laboratory's, the next one's
 * a fifth less: rather too much is charged, by a part. */
#define MARGIN_PART 8

void range_rate_init(struct range_rate *r, uint64_t now_ns)
{
	*r = (struct range_rate){.now = *range_cost_here(),
				 .measured_ns = now_ns,
				 .took_ns = USUAL_TOOK_NS};
}

uint64_t range_rate_of(const struct range_rate *r, uint64_t hits,
		       uint64_t cost_ps)
{
	const struct range_cost *at_first = range_cost_here();
	u128 jumps_ps = (u128)hits * at_first->jumps;
	u128 rest_ps = cost_ps > jumps_ps ? cost_ps - jumps_ps : 0;
	u128 ps = (u128)hits * r->now.jumps +
		  rest_ps * r->now.reg / max_u64(at_first->reg, 1);
	return sat_u64(ps + ps / MARGIN_PART);
}

uint32_t range_rate_alone(const struct range_rate *r)
{
	const struct range_cost *at_first = range_cost_here();
	uint64_t first_ps = (uint64_t)at_first->jumps + at_first->reg;
	uint64_t now_ps = (uint64_t)r->now.jumps + r->now.reg;
	u128 ps = (u128)at_first->alone * now_ps / max_u64(first_ps, 1);
	ps += ps / MARGIN_PART;
	return ps > UINT32_MAX ? UINT32_MAX : (uint32_t)ps;
}

void range_rate_charged(struct range_rate *r, uint64_t ns)
{
	r->charged_ns = sat_add_u64(r->charged_ns, ns);
}

bool range_rate_is_due(const struct range_rate *r, uint64_t now_ns)
{
	return now_ns >= r->measured_ns + LEAST_NS &&
	       r->charged_ns / TIMES >= r->took_ns;
}

/* As beside somebody who uses the same core. */
static void take_as_busy(struct range_cost *c)
{
	const struct range_cost *u = &range_cost_usual;
	*c = *range_cost_here();
	c->jumps = (uint32_t)max_u64(c->jumps, u->jumps);
	c->reg = (uint32_t)max_u64(c->reg, u->reg);
}

void range_rate_measure(struct range_rate *r, int cpu)
{
	uint64_t start_ns = smco_now_ns();
	struct hop back;
	bool is_here = cpu >= 0 && sched_getcpu() == cpu;
	/* Who takes turns with the program waits for it. */
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	bool can_go = policy == SCHED_FIFO || policy == SCHED_RR;
	bool hops = !is_here && can_go && hop_to(cpu, &back);
	if ((!is_here && !hops) || !range_cost_again(&r->now))
		take_as_busy(&r->now);
	if (hops)
		hop_back(&back);
	r->measured_ns = smco_now_ns();
	r->took_ns = r->measured_ns - start_ns;
	r->charged_ns = 0;
	smco_debug("range",
		   "a hit costs %u ps and %u a value on CPU %d, in %llu ns",
		   r->now.jumps, r->now.reg, is_here || hops ? cpu : -1,
		   (unsigned long long)r->took_ns);
}
