/*
 * meter.h - what the program lost, gathered from everyone who knows: the
 * stop clock, the sensors' own accounts, the mechanisms, and the CPU time that
 * the supervisor took while the program waited for a CPU.
 */
#ifndef SMCO_METER_H
#define SMCO_METER_H

#include "supervisor/control/control.h"
#include "supervisor/watched.h"

struct meter {
	struct ledger *ledger;
	struct tracer *tracer;
	uint64_t stop_ns;	/* at the last reading */
	uint64_t delay_ns;	/* the program's waits for a CPU, summed */
	uint64_t delay_read_ns; /* when */
	uint64_t delay_own_cpu_ns;
};

/* Before any program is under control: the kernel's own clock of stops, where
 * it may be used (stopclock.h). Without it the tracer's figures are taken,
 * which add a calibrated constant to what it saw itself. */
void meter_prepare(void);
void meter_unprepare(void);
void meter_init(struct meter *m, struct ledger *l, struct tracer *tr);
/* Stops so far: to the ledger. Returns ns charged. */
uint64_t meter_stops(struct meter *m);
/* One process's sensors and mechanism: to the ledger. Returns CPU time it
 * used since the last call, ns. */
uint64_t meter_process(struct meter *m, struct watched *w);
/* The CPU the supervisor took from the program; reads /proc at most ten times
 * a second. @ws: the processes. */
void meter_cpu(struct meter *m, struct watched *const *ws, size_t nr,
	       uint64_t now_ns);

#endif
