/*
 * range-cheap.h - which windows cost so little, or so little for what is to be
 * expected of them, that they stay in whatever is owed: of all processes and
 * files together, for they share one ledger. A part of range-duty.h, and pure
 * as that is.
 */
#ifndef SMCO_RANGE_CHEAP_H
#define SMCO_RANGE_CHEAP_H

#include "supervisor/monitor/range-duty.h"

/* What is owed is deep if it is more than may be spent in such a time. */
#define RANGE_DEEP_NS NSEC_PER_SEC

#define RANGE_CHEAP_POWERS 64 /* of two */

/* All zero at first. */
struct range_cheap {
	struct range_duty *first; /* those who share it, ->next */
	/* Of the last second or two what counts for the ledger, with what was
	 * before counting less and less; what windows cost in it, by how much
	 * that was (powers of two). */
	uint64_t lately_ns, halved_ns;
	uint64_t base_ns; /* of the ledger, as it was told last */
	bool is_told;
	uint64_t sum_ps[RANGE_CHEAP_POWERS];
	uint64_t rank_ps[RANGE_CHEAP_POWERS]; /* and by window[].rank */
	unsigned nr_active; /* of those who share it, in that time */
	uint64_t nr_plants; /* of theirs */
};

/* How many cost something lately, and divide what there is: 1 at least. */
unsigned range_cheap_nr(const struct range_cheap *c);

/* The windows in turns, @d's and those of all others of these. */
uint64_t range_cheap_nr_plants(const struct range_duty *d);

/* What @d's windows cost counts no more, until it has cost again. */
void range_cheap_leave(struct range_duty *d);

/* Window @w has cost @ps more. */
void range_cheap_note(struct range_duty *d, struct range_duty_window *w,
		      uint64_t ps);

/* Those of the last second or two are found anew. */
void range_cheap_find(struct range_duty *d, const struct range_duty_state *s);

/* Would @w be one of them if it cost @more powers of two more? */
bool range_cheap_is_among(const struct range_duty *d,
			  const struct range_duty_window *w, unsigned more);

/* Is it one of them, and costs no more than the target while it is passed? */
bool range_is_cheap(const struct range_duty *d,
		    const struct range_duty_window *w);

#endif
