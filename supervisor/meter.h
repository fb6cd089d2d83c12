/*
 * meter.h - what the program lost, gathered from everyone who knows: the
 * stop clock, the sensors' own accounts, the mechanisms, and the CPU time that
 * the supervisor took while the program waited for a CPU.
 */
#ifndef SMCO_METER_H
#define SMCO_METER_H

#include "supervisor/control/control.h"
#include "supervisor/control/share.h"
#include "supervisor/probe/stopclock.h"
#include "supervisor/watched.h"

struct meter {
	struct ledger *ledger;
	struct tracer *tracer;
	struct stopclock_reading clock; /* the last one, if there is one */
	bool has_clock;
	uint64_t stop_ns, displaced_ns, nr_displaced; /* charged so far */
	int64_t waited_ns;			      /* told so far */
	uint64_t stood_ns;			      /* the same */
	uint64_t ended_ns; /* CPU time of those that ended, not told yet */
	struct share share;
	uint64_t strange_ns, share_ns; /* it knows of, and since when */
	/* Of our CPU time: the program waited for it so far, whatever it would
	 * have had of it. */
	uint64_t taken_ns;
	/* Without that clock: */
	uint64_t delay_ns;	/* the program's waits for a CPU, summed */
	uint64_t delay_read_ns; /* when */
	uint64_t delay_own_cpu_ns;
};

/* Before any program is under control: the kernel's own clock of stops, where
 * it may be used (stopclock.h). Without it the tracer's figures are taken,
 * which add a calibrated constant to what it saw itself. */
void meter_prepare(void);
void meter_unprepare(void);
/* The kernel takes its time to look at programs: a thread begins with that, if
 * it can, and meter_loaded() waits until it is done. Nothing is measured
 * between them. */
void meter_load(void);
void meter_loaded(void);
void meter_init(struct meter *m, struct ledger *l, struct tracer *tr);
/* Stops so far: to the ledger. Returns ns charged. */
uint64_t meter_stops(struct meter *m);
/* Which CPU to use so that nobody waits for it, this one or one of @may that is
 * idle, as of now; -1: there is none, or the kernel's clock is not to be had.
 */
int meter_idle_cpu(struct meter *m, const cpu_set_t *may);
/*
 * As of the last meter_idle_cpu(), by this thread: does thread @tid compute?
 * Not one that sleeps, or waits for a CPU that others have. -1: not known.
 */
int meter_computes(const struct meter *m, pid_t tid);
/* How many stops of a task there were up to then, and how long the longest was:
 * until it went on with what it had been at, and where the kernel tells, until
 * it was on a CPU again as far as others did not keep it from one. */
void meter_get_stops(const struct meter *m, uint64_t *nr, uint64_t *longest_ns);
/* What that one was for, or that we did not see it for most of its time (there
 * was no CPU for us, or somebody had stopped us); NULL = not known. */
const char *meter_longest_was(const struct meter *m);
/* One process's sensors and mechanism: to the ledger. Returns CPU time it
 * used since the last call, ns. */
uint64_t meter_process(struct meter *m, struct watched *w);
/* @w has ended, with @cpu_ns used in all its life; 0 = not known. */
void meter_ended(struct meter *m, struct watched *w, uint64_t cpu_ns);
/* A process has ended, @ws live: one of them may be its parent, of which the
 * status of its own end tells only what both used together, so that what it
 * used is read now. Of the first few. */
void meter_survivors(struct meter *m, struct watched *const *ws, size_t nr);
/* Of what those used that have ended: what nobody was told of, ns. */
uint64_t meter_last_words(struct meter *m);
/*
 * How long its tasks waited for CPUs that others had, neither we nor the
 * program's stops, since this was asked last, ns, summed over tasks; after
 * meter_stops. Below 0 where too much was told before. Always 0 without the
 * kernel's clock.
 */
int64_t meter_waits(struct meter *m);
/* How long all of the program was stopped by stop signals since this was asked
 * last, ns: no time of its own. */
uint64_t meter_stood(struct meter *m);
/*
 * The program ran for @run_ns since the last call, and meter_waits said
 * @wait_ns: what it has of the CPUs that it wants (control/share.h). Before
 * meter_cpu.
 */
void meter_share(struct meter *m, uint64_t now_ns, uint64_t run_ns,
		 int64_t wait_ns);
/*
 * The CPU the supervisor took from the program, after meter_stops: of the time
 * that it waited for us, what it would have had. Exact with the kernel's clock;
 * else at most what the processes @ws waited for a CPU, for which it reads
 * /proc ten times a second. Returns ns charged.
 */
uint64_t meter_cpu(struct meter *m, struct watched *const *ws, size_t nr,
		   uint64_t now_ns);

#endif
