/* clock.h - a stop clock for a test, or its end where none is to be had; a
 * tracee whose stops it counts. */
#ifndef CLOCK_H
#define CLOCK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "supervisor/probe/stopclock.h"
#include "t/unit/tap.h"

static struct stopclock *c;

static inline struct stopclock_reading now(void)
{
	struct stopclock_reading r = {0};
	check_int(stopclock_read(c, &r), 0);
	return r;
}

/* A tracee that stops itself @nr times for its tracer, then exits. */
static inline pid_t start_tracee(int nr)
{
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		for (int i = 0; i < nr; i++)
			raise(SIGWINCH);
		_exit(0);
	}
	return pid;
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
