/*
 * overflow.h - what it costs a thread that a counter of it comes to its period
 * and the kernel writes that down: measured on the calling thread, by its CPU
 * time.
 */
#ifndef SMCO_PMU_OVERFLOW_H
#define SMCO_PMU_OVERFLOW_H

#include <linux/perf_event.h>

#include "reports/base.h"

/* The period of a clock for overflow_cost_ns. More often, and the kernel's part
 * would stay in the caches and be cheap. */
#define OVERFLOW_PERIOD_NS 500000

/*
 * The calling thread's clock, open and counting, writes into the ring that
 * @page begins: how much longer the thread takes for what it does when an
 * overflow comes, ns, the median of some. Everything in the ring is taken.
 * 0: none came in 300 ms, or there is no memory. Mostly 12 ms, at most 30 if
 * one came.
 */
uint64_t overflow_cost_ns(struct perf_event_mmap_page *page);

#endif
