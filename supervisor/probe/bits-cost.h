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
	uint64_t far_ns;       /* more than that in a large program */
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
 * What a first touch costs, ns, and how much more in a large program: on the
 * few pages that it is measured on, whose page tables stay in the caches and
 * the TLB, it takes @here_ns, after a reset on another CPU @other_ns (0 = not
 * known). Those of larger programs do not stay there, nor do always those of
 * the machine that it is a guest of. And a first touch has to be the oldest
 * instruction before it can mark the page, so that what it misses is not
 * fetched while others are. With 16384 to 65536 pages a first touch was
 * measured to take one to 1.6 times @miss_ns more, what memory takes that no
 * cache has, with 262 144 pages in no order 1.8 to 2.2 times: 60 against 190 to
 * 285 ns on one machine, 430 against 540 to 590 on another, 210 against 330 to
 * 410 on a third, 34 against 200 to 290 and 310 to 390 on a fourth, on which a
 * miss takes 155. To measure that at each start would take too long.
 */
void bits_cost_set_touch(struct bits_cost *c, uint64_t here_ns,
			 uint64_t other_ns, uint64_t miss_ns);

/* What a first touch costs a program that has @nr_pages in memory, ns. */
uint64_t bits_cost_touch_ns(const struct bits_cost *c, uint64_t nr_pages);

/* @c with what a program was seen to lose, where that is more. */
void bits_cost_add_loss(struct bits_cost *c, const struct bits_loss *loss);

#endif
