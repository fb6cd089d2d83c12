/*
 * range-cost.h - what a hit of a range sensor costs on this machine: the
 * stubs' own code (range-stub.h), planted in a function that is made up, run in
 * this process with its jumps and without. No program is involved.
 *
 * That function leaves the processor nothing to wait for, so what a sensor adds
 * is not hidden behind anything, and has more jumps than the fastest predictor
 * keeps, as programs have. What it says depends on who else uses the core at
 * that moment, by a factor of two and more: so it is measured again while the
 * program runs (range-rate.h).
 */
#ifndef SMCO_RANGE_COST_H
#define SMCO_RANGE_COST_H

#include "supervisor/probe/range-stub.h"

/* All in picoseconds. */
struct range_cost {
	uint32_t jumps;	 /* each window: there and back, and to count */
	uint32_t reg;	 /* each value in a register, or constant */
	uint32_t memory; /* each value in memory */
	uint32_t expr;	 /* each value that is computed */
	uint32_t flags;	 /* each time that flags are kept */
	uint32_t saved;	 /* each register that is put on the stack */
	uint32_t call;	 /* a call at the window's end */
	/* A window with a value in a register, all that a loop of a few
	 * instructions has: its counter is raised when it has been written the
	 * time before. */
	uint32_t alone;
};

/* What they are where they cannot be measured, or beside a busy thread of the
 * same core; and the least that is charged. */
extern const struct range_cost range_cost_usual, range_cost_least;

/*
 * Measured when it is asked for first, in some milliseconds, and bound; the
 * same for all from then on, in any thread.
 */
const struct range_cost *range_cost_here(void);

/*
 * What they cost on this CPU at this moment, in some 60 us, bound: jumps and
 * values in registers are measured, all else is as at first. By one thread,
 * after range_cost_here. False: it cannot be measured.
 */
bool range_cost_again(struct range_cost *ret);

/* Measure now; not bound. SMCO_SYS: this process may not make code;
 * SMCO_NOMEM. */
int range_cost_measure(struct range_cost *ret, struct smco_err *err);
/* No part below the least figure or above eight times the usual one. */
void range_cost_bound(struct range_cost *c);

/*
 * What @hits of a window in @ns cost beside that, in picoseconds, where they
 * come so far apart that the stub, its counter and its cells are in the core's
 * first caches no more: nothing where they come one after the other.
 */
uint64_t range_cost_cold(uint64_t hits, uint64_t ns);

/* What a pass of a stub of shape @shape costs a program, in picoseconds. */
uint32_t range_cost_window(const struct range_cost *c,
			   const struct range_shape *shape);

#endif
