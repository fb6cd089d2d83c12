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
 * overflow comes, ns, the median of some. It computes in as much memory as the
 * core's caches hold, so what it has to get back into them is part of that.
 * Everything in the ring is taken. 0: none came in 300 ms, or there is no
 * memory. Mostly 24 ms, at most 30 if one came.
 */
uint64_t overflow_cost_ns(struct perf_event_mmap_page *page);

/* An overflow is seen in the middle of so many rounds of work. */
#define OVERFLOW_ROUNDS 3
/* So large a part more is lost behind these rounds: whole programs with 2000 to
 * 4800 samples a second lost 1.2 to 1.5 times what was seen in them. */
#define OVERFLOW_LATER 3
/*
 * What comes of that: of @nr times OVERFLOW_ROUNDS rounds took @gap_ns with an
 * overflow, one round @round_ns without, @nr_rounds times. The medians', and
 * what is lost later; at least 1; 0 if there is none of either. Both are
 * sorted.
 */
uint64_t overflow_cost_of(uint64_t *gap_ns, size_t nr, uint64_t *round_ns,
			  size_t nr_rounds);

#endif
