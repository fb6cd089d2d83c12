/*
 * hop.h - run on another CPU for a moment. What is done to an address space on
 * the CPU that runs it needs no interrupt of that CPU: the program waits for
 * us instead, which is ten times cheaper than an interrupt for every range.
 */
#ifndef SMCO_HOP_H
#define SMCO_HOP_H

#include <sched.h>

#include "reports/base.h"

/* Remember the CPUs that the caller may use. Once, before it is moved for any
 * reason. Until then nobody hops. */
void hop_prepare(void);

/* From where a hop went. */
struct hop {
	cpu_set_t may; /* run there */
	int from;
};

/*
 * Go to @cpu; *back is for hop_back. False if that is no CPU of ours: nothing
 * has changed. Waits for the CPU like everybody: not to be called for one that
 * runs a real-time thread.
 */
bool hop_to(int cpu, struct hop *back);
/*
 * Be gone from this CPU at the return, if there is another one: whoever still
 * computes where the program waits not only delays it, the kernel then takes it
 * to an idle CPU, away from its caches.
 */
void hop_back(const struct hop *back);

#endif
