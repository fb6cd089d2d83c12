/*
 * share.h - what a program has of the CPUs that it wants, while programs that
 * have nothing to do with it want them, too. Pure.
 *
 * Who is third in a queue waits for two others anyway. If we compute for a
 * millisecond meanwhile, that queue as a whole is a millisecond late, in which
 * the program would have had its third: that is what it lost of its own time,
 * and it is that time which the ledger counts in. The same holds where the
 * program is on its CPU as we come.
 */
#ifndef SMCO_CONTROL_SHARE_H
#define SMCO_CONTROL_SHARE_H

#include "reports/base.h"

/* All zero at first: then all that it wants is its own. */
struct share {
	uint64_t wall_ns; /* since this was halved: what is below is of late */
	uint64_t run_ns;
	int64_t wait_ns; /* told in leaps, and back */
	uint64_t strange_ns;
};

/*
 * In the @wall_ns since the last call it ran for @run_ns and its tasks, all
 * together, waited @wait_ns for CPUs that others had; some of these others may
 * have been its own tasks, whose time is not lost to it. The CPUs were with
 * strangers for @strange_ns: it did not wait for more than that. Steps may be
 * short; what is known is of the last second or so.
 */
void share_learn(struct share *s, uint64_t wall_ns, uint64_t run_ns,
		 int64_t wait_ns, uint64_t strange_ns);
/* What the program lost of its own time when it waited @ns for us. */
uint64_t share_of(const struct share *s, uint64_t ns);

#endif
