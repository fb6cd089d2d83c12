/*
 * hold.h - tracepoints kept in use. Whoever closes the last counter of one that
 * nobody else in the system counts waits until no CPU can be in its code any
 * more, which takes the kernel some 35 ms; events that are tried, measured and
 * put into groups are opened and closed twenty times before the program runs.
 * One stopped counter of each, on the calling thread, keeps the others' ends
 * cheap.
 */
#ifndef SMCO_PMU_HOLD_H
#define SMCO_PMU_HOLD_H

#include "pmu/event.h"

struct pmu_hold {
	struct {
		uint64_t config; /* of perf_event_attr */
		int fd;
	} of[PMU_MAX_EVENTS];
	size_t nr;
};

/* Keeps @ev in use until pmu_hold_end if it is a tracepoint, not yet held. One
 * that may not be counted, or has no room, is not held; *h begins as zero. */
void pmu_hold(struct pmu_hold *h, const struct pmu_event *ev);
/* Waits as said above where nobody counts them any more. */
void pmu_hold_end(struct pmu_hold *h);

#endif
