/*
 * range-cheap.h - which windows cost so little, or so little for what is to be
 * expected of them, that they stay in whatever is owed. A part of range-duty.h,
 * and pure as that is.
 */
#ifndef SMCO_RANGE_CHEAP_H
#define SMCO_RANGE_CHEAP_H

#include "supervisor/monitor/range-duty.h"

/* What is owed is deep if it is more than may be spent in such a time. */
#define RANGE_DEEP_NS NSEC_PER_SEC

/* Window @w has cost @ps more. */
void range_cheap_note(struct range_duty *d, struct range_duty_window *w,
		      uint64_t ps);

/* Those of the last second or two are found anew, @dt_ns after the last time.
 */
void range_cheap_find(struct range_duty *d, uint64_t dt_ns,
		      const struct range_duty_state *s);

/* Would @w be one of them if it cost @more powers of two more? */
bool range_cheap_is_among(const struct range_duty *d,
			  const struct range_duty_window *w, unsigned more);

/* Is it one of them, and costs no more than the target while it is passed? */
bool range_is_cheap(const struct range_duty *d,
		    const struct range_duty_window *w);

#endif
