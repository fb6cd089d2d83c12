/* clock.h - a stop clock for a test, or its end where none is to be had. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdlib.h>

#include "supervisor/probe/stopclock.h"
#include "t/unit/tap.h"

static struct stopclock *c;

static inline struct stopclock_reading now(void)
{
	struct stopclock_reading r = {0};
	check_int(stopclock_read(c, &r), 0);
	return r;
}

/* 0: as many as usual. */
static inline void clock_open_sized(uint32_t nr_tasks)
{
	struct smco_err err = {0};
	int r = nr_tasks ? stopclock_open_sized(&c, nr_tasks, &err)
			 : stopclock_open(&c, &err);
	if (!r)
		return;
	printf("# %s\n", err.msg);
	if (r == SMCO_PERM || r == SMCO_UNSUPPORTED)
		tap_skip("the stop clock is not available here");
	else
		check_int(r, 0);
	exit(tap_done());
}

static inline void clock_open(void)
{
	clock_open_sized(0);
}

#endif
