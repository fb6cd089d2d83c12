/*
 * range-due.h - when those who decide about windows (range-duty.h) look again:
 * often enough that what is in cannot cost too much until then, and not so
 * often that looking does. Private to range-duty.c and range-due.c.
 */
#ifndef SMCO_RANGE_DUE_H
#define SMCO_RANGE_DUE_H

#include "supervisor/monitor/range-duty.h"

#define QUICK_STEP_NS  NSEC_PER_MSEC
#define SLOW_STEP_NS   (20 * NSEC_PER_MSEC)
#define GLANCE_STEP_NS (500 * NSEC_PER_USEC)
/* Shares while something is owed. If that is deep, who waited for it may have
 * kept the CPU from us, and shares that have grown meanwhile are none. */
#define OWING 4

/* What a step and a look take, as of @s. */
void range_due_learn(struct range_duty *d, const struct range_duty_state *s);
/* Windows that were passed for the first time have cost @cost_ps of @dt_ns. */
void range_due_begin(struct range_duty *d, uint64_t cost_ps, uint64_t dt_ns);

#endif
