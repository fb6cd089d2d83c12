/*
 * What call stacks cost is learnt from those that were taken, and as many are
 * asked for as can be paid for.
 */
#include "supervisor/control/price.h"
#include "t/unit/tap.h"

#define US NSEC_PER_USEC

int main(void)
{
	struct price p;
	price_init(&p, 20 * US);
	check_int(price_buys(&p, 200 * US), 9);
	/* They take 300 us here: soon it is known, and all is counted. */
	for (int i = 0; i < 100; i++)
		price_learn(&p, 300 * US);
	check_int(p.spent_ns, 30000 * US);
	check(p.each_ns > 290 * US && p.each_ns <= 300 * US);
	check_int(price_buys(&p, 1500 * US), 5);
	check_int(price_buys(&p, 200 * US), 0);
	/* One that was held up for a second says little of the next. */
	uint64_t before = p.each_ns;
	price_learn(&p, NSEC_PER_SEC);
	check(p.each_ns < 2 * before);
	check_int(p.spent_ns, 30000 * US + NSEC_PER_SEC);
	/* And it becomes cheap again, but never for nothing. */
	for (int i = 0; i < 200; i++)
		price_learn(&p, 0);
	check_int(p.each_ns, 20 * US);
	return tap_done();
}
