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
	unsigned nr_vain;  /* in a row, of late */
};

/* It is taken to be @least_ns, until it is known to be more. */
void price_init(struct price *p, uint64_t least_ns);
/* One has cost @ns. */
void price_learn(struct price *p, uint64_t ns);
/* @nr have cost @ns, all together. */
void price_learn_all(struct price *p, unsigned nr, uint64_t ns);
/*
 * What @ns are by the ledger, which was charged @charged_ns for what we took to
 * be @seen_ns in all: who stops waits until we look, longer where several stop
 * at once. Never less than @ns.
 */
uint64_t price_as_charged(uint64_t ns, uint64_t seen_ns, uint64_t charged_ns);
/* One has brought what was asked for, or nothing. */
void price_note(struct price *p, bool is_worth);
/* Of late none has: do not ask for more than one at a time. */
bool price_is_vain(const struct price *p);
/* How many @ns pay for; one at most while they bring nothing. */
uint64_t price_buys(const struct price *p, uint64_t ns);

#endif
