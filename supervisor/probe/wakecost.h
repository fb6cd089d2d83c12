/*
 * wakecost.h - what it costs a program that we take its CPU for a moment,
 * beside that moment: the interrupt of the timer that wakes us, two switches,
 * what has to come back into the caches of the core. The kernel counts that as
 * the program's own CPU time, so no clock tells.
 */
#ifndef SMCO_WAKECOST_H
#define SMCO_WAKECOST_H

#include "reports/base.h"

/* After a stay of that length nothing more is lost by a longer one. */
#define WAKECOST_STAY_NS (300 * NSEC_PER_USEC)

/* Nanoseconds of one time. */
struct wakecost {
	uint64_t wake_ns; /* however short it was */
	/* And so much more after WAKECOST_STAY_NS, in between in proportion:
	 * the longer the program was away, the less is left of what it had in
	 * the caches. How much that is depends on the machine, and on what else
	 * uses those caches at the time. */
	uint64_t cold_ns;
};

/*
 * Measured now, in some 30 ms: a child computes on our CPU, in as much memory
 * as the core's own caches hold, and looks at its own clock while we wake up
 * there so many times, for a moment and then for longer, and go back to sleep.
 * False where that cannot be told: usual figures. This process may have no
 * other child that ends meanwhile.
 */
bool wakecost_measure(struct wakecost *ret);
/* What comes of it: @nr times took @more_ns more of a clock than without; at
 * most @most_ns of one time, for others work on the machine, too. */
uint64_t wakecost_of(uint64_t more_ns, unsigned nr, uint64_t most_ns);

/*
 * What it costs a program, in nanoseconds, that it waited for its CPU for
 * @displaced_ns in @nr times, of which each costs @one by itself.
 */
uint64_t wakecost_displaced(uint64_t displaced_ns, uint64_t nr,
			    const struct wakecost *one);

#endif
