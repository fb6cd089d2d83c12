/*
 * range-alone.h - what hits cost of a window whose function has few others in.
 * Pure.
 *
 * What a stub does is dear where nothing else can be done meanwhile: its
 * counter is raised when it has been written the time before, and behind a
 * branch that was not predicted both its jumps are waited for. Several windows
 * of a loop do that at the same time. So those of a function together cost at
 * least what the one that is passed most often does alone.
 */
#ifndef SMCO_RANGE_ALONE_H
#define SMCO_RANGE_ALONE_H

#include "supervisor/monitor/range-duty.h"
#include "supervisor/probe/range.h"

/*
 * Raises the cost of the @nr windows accordingly, each by its hits. @news[i] is
 * of @cost[i].window; a function's stand one after the other. @alone_ps: see
 * struct range_cost.
 */
void range_alone_add(struct range_duty_cost *cost,
		     const struct range_news *news, size_t nr,
		     uint32_t alone_ps);

#endif
