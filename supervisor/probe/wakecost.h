/*
 * wakecost.h - what it costs a program that we take its CPU for a moment,
 * beside that moment: the interrupt of the timer that wakes us, two switches,
 * what has to come back into the caches of the core. The kernel counts that as
 * the program's own CPU time, so no clock tells.
 */
#ifndef SMCO_WAKECOST_H
#define SMCO_WAKECOST_H

#include "reports/base.h"

/*
 * Measured now, in some 15 ms: a child computes on our CPU and looks at its own
 * clock while we wake up there so many times and go back to sleep. Nanoseconds,
 * of one time; where that cannot be told, a usual figure. This process may
 * have no other child that ends meanwhile.
 */
uint64_t wakecost_measure(void);
/* What comes of it: @nr times took @more_ns more of a clock than without. */
uint64_t wakecost_of(uint64_t more_ns, unsigned nr);

/*
 * What it costs a program, in nanoseconds, that it waited for its CPU for
 * @displaced_ns in @nr times, of which each costs @wake_ns by itself: the
 * longer it was away, the less is left of what it had in the caches.
 */
uint64_t wakecost_displaced(uint64_t displaced_ns, uint64_t nr,
			    uint64_t wake_ns);

#endif
