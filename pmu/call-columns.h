/*
 * call-columns.h - which system calls need not be told apart: those that each
 * event of some counts, or does not count, are counted together, as a column.
 * An event's count is the sum of its columns.
 */
#ifndef SMCO_PMU_CALL_COLUMNS_H
#define SMCO_PMU_CALL_COLUMNS_H

#include "pmu/event.h"

#define CALL_COLUMNS 16
#define HIT_COLUMNS  8 /* behind them, of what is no call */
#define ALL_COLUMNS  (CALL_COLUMNS + HIT_COLUMNS)
#define CALL_NUMBERS 512 /* those from there on are one call */

struct call_columns {
	uint8_t of[PMU_CALL_ABIS][CALL_NUMBERS + 1];
	size_t nr;
};

/* All calls are one column. */
void call_columns_init(struct call_columns *c);
/* What @ev counts is told apart from what it does not count. False: there would
 * be too many columns, and *c is as it was. */
bool call_columns_add(struct call_columns *c, const struct pmu_event *ev);
/* Those of @ev, which was added: a bit for each. */
uint32_t call_columns_of(const struct call_columns *c,
			 const struct pmu_event *ev);

#endif
