/*
 * aside.h - whether to leave a CPU for which the program waits. Pure.
 *
 * Told once a turn (a tick) how long the program waited since the last one.
 * That it waits here does not mean that it would not on another CPU; and what
 * it waited in a turn in which we went belongs to both. So the figure after a
 * step is passed over, and the next step taken only where the program has
 * waited for longer of late than it did at the place before: twice as long,
 * half of that a second later, and so on, for programs move. Where it did not
 * wait for a while and then does, turn by turn, it has come here: what was at
 * the place before is not so any more.
 */
#ifndef SMCO_ASIDE_H
#define SMCO_ASIDE_H

#include "reports/base.h"

struct aside {
	uint64_t went_ns; /* when we came here, 0 = were here from the start */
	uint64_t left_ns; /* what it waited of late where we were before */
	uint64_t here_ns; /* and here, as of faded_ns */
	uint64_t faded_ns;
	uint64_t quiet_ns; /* since when it has not; 0: it has */
	bool is_mixed;	   /* the next figure has part of that in it */
};

/* At @now_ns, any clock that only grows: is it better to go elsewhere? */
bool aside_is_better(struct aside *a, uint64_t now_ns, uint64_t waited_ns);
/* We went, and arrived at @now_ns. */
void aside_went(struct aside *a, uint64_t now_ns);

#endif
