/*
 * open.h - from an event's description to a counter of the kernel, and why not
 * where that fails.
 */
#ifndef SMCO_PMU_OPEN_H
#define SMCO_PMU_OPEN_H

#include <sys/types.h>

#include "pmu/event.h"

/* perf_event_open(2), close-on-exec: a descriptor, or -1 and errno. */
int pmu_open(const struct perf_event_attr *attr, pid_t pid, int cpu,
	     int group_fd);

/* Once it is open, before it counts anything that should not be: only what
 * @ev->filter lets through. 0, or -1 and errno. */
int pmu_set_filter(int fd, const struct pmu_event *ev);

/*
 * Can it be counted here? It is opened, stopped, for this thread (or one of its
 * CPUs) and closed again. Where only the user level is permitted, and the event
 * says something there, @ev is restricted to that (attr.exclude_kernel).
 * Otherwise as pmu_explain.
 */
int pmu_try(struct pmu_event *ev, struct smco_err *err);

/*
 * What @sys_errno of pmu_open means for @ev: cause, current value and fix.
 * Returns the code: SMCO_GONE (the thread), SMCO_PERM, SMCO_UNSUPPORTED (no
 * such hardware), SMCO_BUSY (counter in use), SMCO_SYS.
 */
int pmu_explain(const struct pmu_event *ev, int sys_errno,
		struct smco_err *err);

/* /proc/sys/kernel/perf_event_paranoid; INT_MIN without perf events. */
int pmu_paranoid(void);

#endif
