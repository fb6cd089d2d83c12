/*
 * phase-levels.h - time that a thread was at levels: how many passings of a
 * function were open by the counts of its beginnings and ends, from wherever
 * they started. Pure.
 *
 * What is left by an exception or longjmp is never counted as an end, what was
 * open before counting began never as a beginning. So a level alone does not
 * say whether any is open. But an end comes only from one that is: once a lower
 * level is seen, all the time that was spent at higher ones is known to have
 * been inside. What never is, is not.
 */
#ifndef SMCO_PHASE_LEVELS_H
#define SMCO_PHASE_LEVELS_H

#include "reports/base.h"

#define PHASE_LEVELS 16

/* Time, ns: of one kind as it is, of two kinds to be scaled. */
struct phase_inside {
	double ns, part[2];
};

/* Zero-initialise. */
struct phase_levels {
	unsigned nr;
	/* By level, lowest first; of those above the last one, too; where there
	 * are more the lowest ones are one. */
	struct phase_level {
		int64_t level;
		struct phase_inside at_it;
	} at[PHASE_LEVELS];
};

void phase_inside_add(struct phase_inside *to, const struct phase_inside *more);
/* What the parts are scaled by is known: they become part of the other. */
void phase_inside_scale(struct phase_inside *in, const double times[2]);

/* So much more at @level, and none higher since. */
void phase_levels_add(struct phase_levels *l, int64_t level,
		      const struct phase_inside *more);
/* @level is seen: what was at higher ones was inside, and goes. */
struct phase_inside phase_levels_leave(struct phase_levels *l, int64_t level);
/* phase_inside_scale of all. */
void phase_levels_scale(struct phase_levels *l, const double times[2]);

#endif
