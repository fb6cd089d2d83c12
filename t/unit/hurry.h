/*
 * hurry.h - real time, where it is permitted at all.
 */
#ifndef HURRY_H
#define HURRY_H

#include <sched.h>
#include <stdbool.h>
#include <time.h>

#include "reports/base.h"

/* May we run in real time? Afterwards we do not. */
static inline bool may_hurry(void)
{
	struct sched_param sp = {.sched_priority = 1}, none = {0};
	return !sched_setscheduler(0, SCHED_FIFO, &sp) &&
	       !sched_setscheduler(0, SCHED_OTHER, &none);
}

/* Longer than anybody may in real time. */
static inline void keep_busy(void)
{
	uint64_t end_ns =
		smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 500 * NSEC_PER_MSEC;
	while ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_OTHER &&
	       smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
}

#endif
