/*
 * phase-sums.h - what there was of everything else in each phase: counters,
 * samples, naps. Part of the model (model.h).
 *
 * A counter's reading of a thread is the phase's by the share of its interval
 * that the thread was in the phase; a sample is by the share of the time around
 * it, all or nothing where phases were recorded one by one; a nap is the
 * phase's in which any thread of its process was when it began. What is in
 * several phases, one within the other, is in the sums of each.
 */
#ifndef SMCO_PHASE_SUMS_H
#define SMCO_PHASE_SUMS_H

#include "reports/record.h"

struct summary;

struct phase_sums { /* of one phase in one file */
	struct ev_phase_total total;
	/* Threads that were in it, and for how long together. */
	uint64_t nr_threads;
	double in_ns;
	double samples, weight;
	/* The weight by the function that ran, as the summary's samples number
	 * them. Owned; NULL without samples, or if there are too many. */
	double *self;
	double naps, byte_seconds, unused_bytes;
	/* By event of the file, scaled; and how long the intervals were in the
	 * phase that counted it. Owned; NULL if the file has no counters. */
	double *counts, *counted_ns;
};

/*
 * Into @s->phases.sums, for each of its phases and files; reads the traces
 * again if there is anything to be found in their records. SMCO_NOMEM.
 */
int phase_sums_make(struct summary *s);
/* NULL if nobody asked for them. */
const struct phase_sums *phase_sums(const struct summary *s, size_t phase,
				    size_t file);
void phase_sums_free(struct phase_sums *sums, size_t nr);

#endif
