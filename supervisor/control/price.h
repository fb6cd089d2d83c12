/*
 * price.h - what one of a kind costs of late, and what all did. Pure.
 *
 * A call stack takes a stop, which is 10 us on one machine and 300 on another,
 * or on a busy one. As many are asked for as can be paid for.
 */
#ifndef SMCO_PRICE_H
#define SMCO_PRICE_H

#include "reports/base.h"

struct price {
	uint64_t each_ns;  /* of late, what was before counting less and less */
	uint64_t least_ns; /* it is never taken to be less */
	uint64_t spent_ns; /* all so far */
};

/* It is taken to be @least_ns, until it is known to be more. */
void price_init(struct price *p, uint64_t least_ns);
/* One has cost @ns. */
void price_learn(struct price *p, uint64_t ns);
/* How many @ns pay for. */
uint64_t price_buys(const struct price *p, uint64_t ns);

#endif
