/*
 * spare.h - whether there is a CPU to spare, by how many tasks run. Pure.
 *
 * Who has just stopped is one of those until it is off its CPU, and so is whom
 * it has just created and who is about to stop, too. So a look that sees as
 * many as there are CPUs says little: all are in use where every look does, for
 * a while.
 */
#ifndef SMCO_SPARE_H
#define SMCO_SPARE_H

#include "reports/base.h"

/* So long every look has to see all in use. */
#define SPARE_NS (20 * NSEC_PER_MSEC)

struct spare {
	uint64_t looked_ns; /* 0 = never */
	uint64_t seen_ns;   /* when one was idle last, as far as is known */
};

/* At @now_ns, any clock that only grows, @nr_running tasks run on @nr_cpus
 * CPUs, the one that asks among them. */
void spare_look(struct spare *s, uint64_t now_ns, uint64_t nr_running,
		uint64_t nr_cpus);
/* Is there one? true as long as nothing is known. */
bool spare_is_there(const struct spare *s, uint64_t now_ns);

#endif
