/*
 * counters.h - the monitor that counts: the same events in every thread of the
 * program, read at every interval of time or each so many events of a thread,
 * one record for each thread and group that did anything. Nothing is sampled.
 * Where the budget does not allow for what counting costs at each context
 * switch, it pauses, and the records say how much of the thread's time was
 * counted.
 *
 * Counts are those of the program since it was taken under watch, without the
 * stops that watching makes (a context switch each). What reading costs goes to
 * the ledger.
 *
 * Calls no ptrace: threads are told by number, while they are stopped.
 */
#ifndef SMCO_COUNTERS_H
#define SMCO_COUNTERS_H

#include "pmu/counter.h"
#include "reports/record.h"
#include "supervisor/control/control.h"

#define COUNTERS_MONITOR 1 /* its number in the ledger */

struct counters;

struct counters_params {
	/* As pmu_event_parse_list takes; NULL = default. */
	const char *events;
	bool if_available; /* leave out what the machine does not have */
	bool follows;	   /* new processes, too, are told of */
	uint64_t interval_ns;
	/* Read threads, also where the kernel could write down what they count.
	 */
	bool reads_all;
	/* Count system calls by perf's events, also where BPF could. */
	bool by_events;
	/* Threads have intervals of so many of that event; 0 = of time. The
	 * machine's are always of time. */
	uint64_t every_nr;
	const char *every_event;
	int64_t target_overhead_ppb; /* INT64_MAX = no limit */
	uint64_t start_ns;	     /* CLOCK_MONOTONIC of session time 0 */
	/* Stops of a thread so far, by what counters_add was given. */
	uint64_t (*nr_stops)(const void *task);
	void (*emit)(void *ctx, const struct record *r);
	void (*put_meta)(void *ctx, const char *key, const char *value);
	void *ctx;
};

/* Errors for the user: an event that is unknown, or not here. */
int counters_create(const struct counters_params *p, struct ledger *ledger,
		    struct counters **ret, struct smco_err *err);
void counters_destroy(struct counters *c);

/* Which events there are, what is missing; once the trace is open. */
void counters_put_meta(struct counters *c);

/*
 * Count thread @tid of process @pid, which must be stopped (COUNTER_EXEC: wait
 * for its exec). @task: see nr_stops; NULL if it is not known yet, but will be
 * by counters_exec. What cannot be opened is not an error: it is counted, and
 * said in the end.
 */
void counters_add(struct counters *c, pid_t pid, pid_t tid, const void *task,
		  enum counter_since since);
/*
 * Thread @tid, stopped, was created by thread @creator (0: not known), also as
 * the first one of a process. What it did before is its own where the kernel
 * tells it, else the creator's: to the last if that is stopped, too.
 */
void counters_born(struct counters *c, pid_t pid, pid_t tid, const void *task,
		   pid_t creator);
/* Is there anything of that kind? Not any more once births are left. */
bool counters_want_creators(const struct counters *c);
/*
 * @tid, stopped, has become process @pid's only thread by an exec, perhaps from
 * another number. Its siblings have been told as gone, or never will be.
 */
void counters_exec(struct counters *c, pid_t pid, pid_t tid, const void *task,
		   uint64_t now_ns);
/* The thread ended or is left alone: its last record. */
void counters_gone(struct counters *c, pid_t tid, uint64_t now_ns);

/* Is all that is counted kept by the kernel of each process, or inherited, so
 * that who is not told of here can be counted as well? */
bool counters_may_leave_births(const struct counters *c);
/* From now on there may be such: what is inherited is counted with creators, of
 * those that are told of, too. */
void counters_leave_births(struct counters *c, uint64_t now_ns);
/*
 * What the processes have done, so far, that nobody was told of here: @all,
 * which only grows. They are @pid's, or what came of it. Its record. @who 0: of
 * all that never were, @tid 0; others, below COUNTERS_RESTS: of one in the
 * time, from the first such call on, for which it is let go, told as its thread
 * @tid's.
 */
#define COUNTERS_RESTS 64
void counters_unfollowed(struct counters *c, unsigned who, pid_t pid, pid_t tid,
			 const struct counter_past *all, uint64_t now_ns);

/* When counters_tick wants to be called; UINT64_MAX: never. */
uint64_t counters_due_ns(const struct counters *c);
/* Somebody is awake: may counters_tick be called now, before it is due, so that
 * nobody need wake up for it? */
bool counters_may_tick(const struct counters *c, uint64_t now_ns);
/* Read all threads, if it is time; pause or go on as the ledger has room. */
void counters_tick(struct counters *c, uint64_t now_ns);
/* The last records of everything, and what was not counted. Nothing is counted
 * any more. */
void counters_finish(struct counters *c, uint64_t now_ns);

#endif
