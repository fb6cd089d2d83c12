/*
 * least.h - a count that is at least another one: over a stretch of time, not
 * from step to step, for the one may come in leaps and the other evenly (the
 * kernel tells of a running thread's CPU time once a tick). The larger of each
 * step's two would be almost the sum. Pure.
 */
#ifndef SMCO_CONTROL_LEAST_H
#define SMCO_CONTROL_LEAST_H

#include "reports/base.h"

/* All zero at first. */
struct least {
	/* Granted beyond what was counted; < 0: the reverse. */
	int64_t ahead_ns;
	int64_t owed_ns; /* granted too much, to be taken back */
};

/*
 * Of this step there are @got_ns, but @least_ns ought to be there (negative:
 * there were too many before). Returns what counts: @got_ns first makes up for
 * what was granted before, at most @most_ahead_ns of it, and what it was beyond
 * the least, at most @most_behind_ns, makes up for what is missing now.
 */
uint64_t least_add(struct least *l, uint64_t got_ns, int64_t least_ns,
		   int64_t most_ahead_ns, int64_t most_behind_ns);

#endif
