/*
 * mark-cost.h - what a passing of a mark's sensor costs that is counted and
 * not recorded, and what one takes that is: the sensor's own code in a function
 * that is made up, run in this process with its jump and without.
 */
#ifndef SMCO_MARK_COST_H
#define SMCO_MARK_COST_H

#include "reports/base.h"

/* In picoseconds. */
struct mark_cost {
	uint32_t owner; /* by a thread that counts for itself */
	uint32_t other; /* by one that does not, while nobody else does */
	/* From when a record of a thread is written to when its next begins to
	 * be, where nothing lies between them: that much is in what two records
	 * time. */
	uint32_t timing;
};

/* What they are where they cannot be measured, and at least (timing: nothing).
 */
extern const struct mark_cost mark_cost_usual;

/* Measured when it is asked for first, in two milliseconds, and bound: at least
 * the usual, at most eight times as much; timing at most twice what a record is
 * taken to cost, MARK_RECORD_NS. */
const struct mark_cost *mark_cost_here(void);

/* Measure now; not bound. SMCO_SYS: this process may not make code. */
int mark_cost_measure(struct mark_cost *ret, struct smco_err *err);
void mark_cost_bound(struct mark_cost *c);

#endif
