#include "supervisor/control/price.h"

#include "supervisor/control/fixed.h"

/* One counts for so much of what is known of those before. */
#define MEMORY 16
/* And no more than so many times that: one may have been held up. */
#define MOST_TIMES 16

void price_init(struct price *p, uint64_t least_ns)
{
	*p = (struct price){.each_ns = least_ns, .least_ns = least_ns};
}

void price_learn(struct price *p, uint64_t ns)
{
	p->spent_ns = sat_add_u64(p->spent_ns, ns);
	ns = min_u64(ns, MOST_TIMES * p->each_ns);
	p->each_ns = (p->each_ns * (MEMORY - 1) + ns) / MEMORY;
	if (p->each_ns < p->least_ns)
		p->each_ns = p->least_ns;
}

uint64_t price_buys(const struct price *p, uint64_t ns)
{
	return ns / (p->each_ns + 1);
}
