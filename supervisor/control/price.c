#include "supervisor/control/price.h"

#include "supervisor/control/fixed.h"

/* One counts for so much of what is known of those before. */
#define MEMORY 16
/* And no more than so many times that: one may have been held up. */
#define MOST_TIMES 16
/* So many in a row that bring nothing are no accident. */
#define VAIN 4

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

void price_learn_all(struct price *p, unsigned nr, uint64_t ns)
{
	for (; nr; nr--) {
		uint64_t each = ns / nr;
		price_learn(p, each);
		ns -= each;
	}
}

uint64_t price_as_charged(uint64_t ns, uint64_t seen_ns, uint64_t charged_ns)
{
	if (!seen_ns || charged_ns <= seen_ns)
		return ns;
	return sat_u64((u128)ns * charged_ns / seen_ns);
}

void price_note(struct price *p, bool is_worth)
{
	p->nr_vain = is_worth ? 0 : p->nr_vain + 1;
}

bool price_is_vain(const struct price *p)
{
	return p->nr_vain >= VAIN;
}

uint64_t price_buys(const struct price *p, uint64_t ns)
{
	uint64_t nr = ns / (p->each_ns + 1);
	return price_is_vain(p) ? min_u64(nr, 1) : nr;
}
