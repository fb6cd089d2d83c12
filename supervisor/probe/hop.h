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

/*
 * Go to @cpu; *back gets where the caller may run now, for hop_back. False if
 * that is no CPU of ours: nothing has changed. Waits for the CPU like
 * everybody: not to be called for one that runs a real-time thread.
 */
bool hop_to(int cpu, cpu_set_t *back);
void hop_back(const cpu_set_t *back);

#endif
