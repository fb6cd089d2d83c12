/*
 * bits-cost.h - what the monitored program pays for accessed bits on this
 * machine, measured at most once per supervisor in a child that does nothing
 * else.
 */
#ifndef SMCO_BITS_COST_H
#define SMCO_BITS_COST_H

#include "reports/base.h"

struct bits_loss;

struct bits_cost {
	uint64_t touch_ns;     /* first touch of a page after its reset */
	uint64_t shootdown_ns; /* interrupt to another CPU per range reset */
	/* What each page table costs besides in which something was reset, on
	 * whichever CPU: 0, but where a host keeps a copy of the page tables
	 * (bits-loss.h). */
	uint64_t flush_ns;
};

/* Taken from what is kept (kept.h), or else measured, at the first call (30 to
 * 70 ms, some 350 where flush_ns is not 0), remembered afterwards. Where other
 * CPUs are too busy for that, shootdown_ns is on the high side; with one CPU it
 * is 0. */
int bits_cost_get(struct bits_cost *ret, struct smco_err *err);

/*
 * What is charged for a first touch: @first_ns was measured among other memory
 * (bits-first.h; 0: it was not), @here_ns without. An eighth more than
 * measured: programs lost 1.15 to 1.23 times that (python3), 1.0 to 1.65 (100
 * 000 blocks, median 1.27), where a program that does nothing else loses 0.95
 * to 1.1.
 */
uint64_t bits_cost_first(uint64_t first_ns, uint64_t here_ns);

/* @c with what a program was seen to lose, where that is more. */
void bits_cost_add_loss(struct bits_cost *c, const struct bits_loss *loss);

#endif
