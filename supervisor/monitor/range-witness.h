/*
 * range-witness.h - what a program's own progress says of the price of a hit.
 * Pure.
 *
 * What the laboratory (probe/range-cost.h) says a hit costs is charged, but a
 * stub's work may be done while the program waits for memory anyway, or hold up
 * more than itself: by the program it is half of that, or a fifth more. So now
 * and then the windows that cost most go out for a moment, between two moments
 * of the same length in which they are in: a trial. The windows that stay in
 * all the time are the witnesses: how often they are passed in a second of the
 * program's CPU time is how fast it goes. What it is faster without the others,
 * of what was charged for them, is the price, of RANGE_WITNESS_WHOLE.
 *
 * One trial says little, for the program does something else in each moment:
 * trials begin at random, and the price is their median, weighted by what was
 * charged. It is believed as far as they agree, and never less than half of
 * what the laboratory says, or more than one and a half times that. Before
 * there are some trials it is the laboratory's.
 */
#ifndef SMCO_RANGE_WITNESS_H
#define SMCO_RANGE_WITNESS_H

#include "reports/base.h"

#define RANGE_WITNESS_WHOLE 1024
#define RANGE_WITNESS_LEAST (RANGE_WITNESS_WHOLE / 2)
#define RANGE_WITNESS_MOST  (RANGE_WITNESS_WHOLE * 3 / 2)
/* So many, the latest, count. */
#define RANGE_WITNESS_TRIALS 128

/* The moments of a trial, in order. */
enum range_witness_slice {
	RANGE_WITNESS_BEFORE,
	RANGE_WITNESS_WITHOUT,
	RANGE_WITNESS_BEHIND,
	RANGE_WITNESS_SLICES
};
struct range_witness_trial {
	/* The program's CPU time in each, and what the laboratory says that
	 * hits cost in it. */
	uint64_t run_ns[RANGE_WITNESS_SLICES];
	uint64_t cost_ps[RANGE_WITNESS_SLICES];
};
/* How often a witness was passed in each. */
struct range_witness_hits {
	uint64_t in[RANGE_WITNESS_SLICES];
};

/* All zero at first. */
struct range_witness {
	/* private: of the CPU time that a program takes with all in, what it
	 * does not take without them, and what was charged for that, ppm */
	struct range_witness_seen {
		int32_t lost_ppm, charged_ppm;
	} seen[RANGE_WITNESS_TRIALS];
	uint32_t nr_seen; /* so far, also those that count no more */
	uint32_t price;	  /* 0: not known */
};

/* One more, with @nr witnesses. False: nothing can be learned from it. */
bool range_witness_learn(struct range_witness *w,
			 const struct range_witness_trial *t,
			 const struct range_witness_hits *hits, size_t nr);
/* What a hit costs, of RANGE_WITNESS_WHOLE of what the laboratory says. */
uint32_t range_witness_price(const struct range_witness *w);
/* So many trials were learned from. */
uint32_t range_witness_nr(const struct range_witness *w);

#endif
