/*
 * What call stacks cost is learnt from those that were taken, and as many are
 * asked for as can be paid for.
 */
#include "supervisor/control/price.h"
#include "t/unit/tap.h"

#define US NSEC_PER_USEC

/* What was seen of three is scaled by what the ledger was charged in all. */
static void as_charged(void)
{
	check_int(price_as_charged(300 * US, 400 * US, 1200 * US), 900 * US);
	check_int(price_as_charged(300 * US, 400 * US, 100 * US), 300 * US);
	check_int(price_as_charged(300 * US, 0, 100 * US), 300 * US);
	check_int(price_as_charged(0, 400 * US, 1200 * US), 0);
	struct price p;
	price_init(&p, 20 * US);
	price_learn_all(&p, 3, 900 * US + 2);
	check_int(p.spent_ns, 900 * US + 2);
	check(p.each_ns > 60 * US && p.each_ns < 100 * US);
	price_learn_all(&p, 0, 900 * US);
	check_int(p.spent_ns, 900 * US + 2);
}

/* A thousand that bring nothing, ten are to be had each time. */
static void in_vain(void)
{
	struct price p;
	price_init(&p, 20 * US);
	unsigned asked = 0;
	for (int i = 0; i < 100; i++) {
		uint64_t nr = price_buys(&p, 201 * US);
		for (; nr && (!price_is_vain(&p) || nr == 1); nr--, asked++)
			price_note(&p, false);
	}
	check_int(asked, 4 + 99);
	/* One in between is no sign, one that brings something is. */
	price_note(&p, true);
	check_int(price_buys(&p, 201 * US), 10);
	for (int i = 0; i < 100; i++)
		price_note(&p, i % 4 == 3);
	check_int(price_buys(&p, 201 * US), 10);
	for (int i = 0; i < 4; i++)
		price_note(&p, false);
	check_int(price_buys(&p, 201 * US), 1);
	check_int(price_buys(&p, 10 * US), 0);
}

int main(void)
{
	as_charged();
	in_vain();
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
