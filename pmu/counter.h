/*
 * counter.h - events counted for threads that are not ours, and read from time
 * to time. Which events stand in which group is planned once; a group counts
 * as a whole or not at all, so that ratios inside it are true.
 *
 * Counters of one thread only: whoever follows a program opens them for each
 * thread before it runs. The kernel's inheritance, which cannot tell threads
 * apart, serves for what a new thread does before it can be stopped for the
 * first time, and no longer. No pid or thread is ever waited for or stopped
 * here.
 */
#ifndef SMCO_PMU_COUNTER_H
#define SMCO_PMU_COUNTER_H

#include <sys/types.h>

#include "pmu/call-columns.h"
#include "pmu/event.h"
#include "pmu/hold.h"

#define COUNTER_MAX_GROUPS 32
#define COUNTER_GROUP_MAX  16 /* events of one group */

struct counter_group {
	size_t first, nr; /* in counter_plan.event */
	bool is_machine_wide;
	bool has_every; /* its last event ends the intervals */
	bool inherits;	/* counter_plan_inherit */
	bool is_direct; /* counter_plan_jot: read where it counts */
	/* All of it that anybody has asked for happens the more often the more
	 * the thread gets done, whatever time that takes: counter_without. */
	bool goes_by_work;
	bool is_traced;	  /* it has tracepoints, or what is tallied */
	bool has_filters; /* and those of one class of calls, each with one */
};

/* What the kernel itself has counted of a thread since its birth. */
struct counter_past {
	uint64_t minor_faults, major_faults, switches, run_ns;
	/* 0 of a newborn: the first CPU is none. */
	uint64_t migrations;
};

/* Does the kernel count what @ev counts by itself, of each thread at any
 * time? */
bool counter_is_kept(const struct pmu_event *ev);
/* What @ev would have counted in @p; 0 of one that is not kept. */
uint64_t counter_kept(const struct pmu_event *ev, const struct counter_past *p);

/*
 * Somebody else's counts of the system calls that threads make, of whom a call
 * costs less than perf's tracepoints, and nothing where all pauses. Sums, which
 * only grow; they may be asked for at any time.
 */
struct counter_tally {
	void *ctx;
	/* Thread @tid's calls are counted from now on, from 0: its place; -1:
	 * there is none left. */
	int (*add)(void *ctx, pid_t tid);
	void (*remove)(void *ctx, pid_t tid, int place);
	void (*read)(void *ctx, int place, uint64_t nr[ALL_COLUMNS]);
	/* The past of @tid; false, and *ret has nothing: /proc is asked. */
	bool (*past)(void *ctx, pid_t tid, struct counter_past *ret);
};

struct counter_plan {
	struct pmu_event *event; /* by group; owned */
	size_t nr_events;
	struct counter_group group[COUNTER_MAX_GROUPS];
	size_t nr_groups;
	/* What was left out and why: "a, b: why; c: why"; "" = nothing. */
	char missing[900];
	struct pmu_hold hold; /* its tracepoints, as long as it lives */
	bool threads_only;    /* what inherits does so for no new process */
	bool of_creators;     /* counter_plan_leave_births */
	bool is_jotted;	      /* counter_plan_jot */
	/* Of its events that are tallied; not owned. NULL: they stay at 0. */
	const struct counter_tally *tally;
};

/* @ev ends an interval each @nr times that a thread counts it. */
struct counter_every {
	struct pmu_event ev;
	uint64_t nr;
};

/*
 * Try each of @events here and put them into groups as large as the machine
 * counts at once. With @if_available those that it does not have are left out
 * and named in plan->missing; it is an error if none is left. Otherwise the
 * first that is not there is the error, of pmu_explain, and the message says
 * which ones are. Software events have groups of their own, which are always
 * counting; those marked pinned, too. What remains takes turns where it does
 * not fit into the machine (see counter_sum).
 *
 * @every, or NULL: one more event in each group of threads, as the last, which
 * must be here; see counter_thread_next.
 */
int counter_plan_make(const struct pmu_event *events, size_t nr,
		      bool if_available, const struct counter_every *every,
		      struct counter_plan *ret, struct smco_err *err);
/* What is counted if nobody says what: the CPU's counters if there are any,
 * else what the kernel counts itself. */
int counter_plan_default(const struct counter_every *every,
			 struct counter_plan *ret, struct smco_err *err);
/*
 * Those of @events that a counter_tally can count become its, before a plan is
 * made of them: the kernel gets an event in each one's place that keeps its
 * time and counts nothing. Their calls are told apart in @columns; too many
 * remain the kernel's. How many there are.
 */
size_t counter_tally_events(struct pmu_event *events, size_t nr,
			    struct call_columns *columns);
/* Whether that would be so of any. */
bool counter_can_tally(const struct pmu_event *events, size_t nr);
/* The tracepoint's name, without its subsystem, where a counter_tally may count
 * how often @ev is hit, at any time; NULL: not of this event. */
const char *counter_can_tally_hits(const struct pmu_event *ev);
/* It does, in @column, of those behind CALL_COLUMNS: before a plan is made. */
void counter_tally_hits(struct pmu_event *ev, int column);
/* From now on @p's events of that kind are counted by @tally, which both stay
 * the caller's and live longer. */
void counter_plan_tally(struct counter_plan *p,
			const struct counter_tally *tally,
			const struct call_columns *columns);
/*
 * What a thread does before it can be stopped for the first time, and counters
 * be opened for it: of events that the kernel counts itself (COUNTER_BIRTH),
 * and only of them, it tells that. From now on groups of others count what a
 * new thread, and a new process if @of_processes, does with its creator, until
 * counter_thread_renew. True if there are any; false: none is in need of it, or
 * the kernel cannot do it.
 */
bool counter_plan_inherit(struct counter_plan *p, bool of_processes);
/*
 * From now on groups that inherit are opened for nobody who is born or was
 * counted before (COUNTER_BIRTH, COUNTER_AGAIN), nor renewed: what all of them
 * do is counted with their creators, who keep these groups when they end or
 * call exec (counter_thread_keep). It can be so (true) unless an event of such
 * a group is tallied.
 */
bool counter_plan_can_leave_births(const struct counter_plan *p);
void counter_plan_leave_births(struct counter_plan *p);
/*
 * Have the kernel write down what groups of threads have counted whenever a BPF
 * program says so, and so that counter_thread_next_jotted tells it. Groups that
 * do not inherit get one more event, their last (has_every), which counts
 * nothing and leads them. The kernel lets nobody have those that inherit
 * written down; where the events of such a group count at once whatever they
 * count, the program can read them where the kernel keeps them (is_direct,
 * counter_thread_direct), if there is a group of the first kind beside it.
 * False, and nothing changes: a group is full, or inherits and is not of that
 * kind, or is the machine's; or events end intervals; or the kernel cannot do
 * it. After counter_plan_inherit.
 */
bool counter_plan_jot(struct counter_plan *p);
/* As it was before; nobody's threads are open. */
void counter_plan_unjot(struct counter_plan *p);
/* Some 35 ms for each of its tracepoints that nobody counts any more
 * (hold.h). */
void counter_plan_deinit(struct counter_plan *p);

enum counter_since {
	/* From now on. */
	COUNTER_NOW,
	/* From the thread's next exec on, as perf stat does. */
	COUNTER_EXEC,
	/* From its birth, which must have been a moment ago: what the kernel
	 * has counted for it by itself until now is added. Exact for software
	 * events while the thread is stopped; others begin now, and what was
	 * before is its creator's (counter_plan_inherit) or nobody's. */
	COUNTER_BIRTH,
	/* From now on, one that was counted before as another thread. */
	COUNTER_AGAIN,
};

/* Sums of one group since it was opened. */
struct counter_sum {
	uint64_t enabled_ns; /* the thread ran and wanted to be counted */
	uint64_t running_ns; /* of that, the group was on the hardware */
	uint64_t value[COUNTER_GROUP_MAX]; /* counted in running_ns */
};

struct counter_thread;

/* One that was opened with COUNTER_EXEC stands in that exec's stop: only what
 * is tallied from now on is its. */
void counter_thread_execs(struct counter_thread *t);

/*
 * All groups of @plan for thread @tid; 0: the machine-wide ones. All or
 * nothing; errors as pmu_explain, SMCO_NOMEM. @plan must outlive it.
 */
int counter_thread_open(const struct counter_plan *plan, pid_t tid,
			enum counter_since since, struct counter_thread **ret,
			struct smco_err *err);
/*
 * Could the thread have counted anything since this was asked last, if all its
 * groups were taken when it said so, counter_thread_first first? False only if
 * the kernel tells that it was on no CPU meanwhile: nothing need be read then.
 * What it did while it was being read and left its CPU, less than a
 * microsecond, may have to wait until it runs again: so a last reading is worth
 * it in any case. Costs no system call: the kernel says in a page that it
 * shares when it puts the thread's counters on a CPU. Always true for
 * machine-wide ones, and where there is no page to be had.
 */
bool counter_thread_has_run(struct counter_thread *t);
/* The group to be taken first of all: it tells, where one does, whether the
 * thread had left its CPU, so that the others have nothing more to tell, too.
 */
size_t counter_thread_first(const struct counter_thread *t);
/*
 * Read group @group. True if anything was counted since the last call, and
 * then *ret has what: differences, not sums. The thread may have ended. *busy
 * (optional) is set if a pinned group lost its counters for good.
 */
bool counter_thread_take(struct counter_thread *t, size_t group,
			 struct counter_sum *ret, bool *busy);
/*
 * What software event @index of @group has counted since it was opened, as it
 * was when the thread came to its CPU last: the kernel tells that of one of the
 * events by itself, so it costs no system call. False: not of this event.
 */
bool counter_thread_told(const struct counter_thread *t, size_t group,
			 size_t index, uint64_t *ret);
/*
 * A thread that @t has created is about to be opened: what it did so far is
 * @t's, what it does from now on is not. Everything of @t must have been taken
 * just now; exact if both stand and are on no CPU. Without inheriting groups it
 * does nothing. An error as of counter_thread_open: a group counts no more,
 * but is readable; SMCO_GONE: as it was, for @t has ended.
 */
int counter_thread_renew(struct counter_thread *t, struct smco_err *err);
/*
 * The next interval of the thread that an event has ended (counter_every): its
 * group, what that has counted in it, and when it was over. The kernel wrote
 * all this down at that moment, so nothing is late: the group's sums are those
 * of the very event, also where it is read long after. False: none is left now.
 * What the kernel did not write, for want of room or because they came too fast
 * for it, is part of the next interval, of twice as many events and more: of
 * the group's last.
 */
bool counter_thread_next(struct counter_thread *t, size_t *group_ret,
			 struct counter_sum *ret, uint64_t *at_ns_ret);
/* What such a program gives along: so many u64, see below. Behind them it
 * tells of each direct group by how many ns its time is ahead of that of the
 * first that is none, how much of each class is tallied, and then what all
 * events of these groups have counted. */
#define COUNTER_NOTE_WORDS  4
#define COUNTER_NOTE_LEAVES 2 /* which of them */
#define COUNTER_DIRECT_MAX  4 /* groups: so many times, used or not */
/*
 * The same where a BPF program has had them written down (counter_plan_jot);
 * with @note, @size bytes at most, what it gave along, and 0 behind that. Where
 * the u64 number COUNTER_NOTE_LEAVES of that is not 0, the thread was
 * about to leave its CPU, which is a context switch that is counted in here.
 * Direct groups follow the one that they came along with.
 */
bool counter_thread_next_jotted(struct counter_thread *t, size_t *group_ret,
				struct counter_sum *ret, void *note,
				size_t size);
/*
 * Of a plan of counter_plan_jot: from now on there is room for what is written
 * down of the thread; nothing is before. Where it stays without, its groups are
 * read as others are (counter_thread_watch). Errors as counter_thread_open.
 */
int counter_thread_make_room(struct counter_thread *t, struct smco_err *err);
/* It is read, so have the kernel tell when it runs (counter_thread_has_run). */
void counter_thread_watch(struct counter_thread *t);
/* No more: what is told of a thread is not of its children. */
void counter_thread_unwatch(struct counter_thread *t);
/* The events that lead its groups but direct ones, which stay the thread's: so
 * many. */
size_t counter_thread_leaders(const struct counter_thread *t,
			      int fd[COUNTER_MAX_GROUPS]);
/* The events of direct groups, group by group, and the first of each
 * group: so many, at most @max; more than @max: that many there are. They are
 * others after counter_thread_renew. */
size_t counter_thread_direct(const struct counter_thread *t, int *fd,
			     size_t max, int leader[COUNTER_DIRECT_MAX],
			     size_t *nr_groups_ret);
/* Where it is tallied; -1: it is not. */
int counter_thread_place(const struct counter_thread *t);
/* Is a quarter of the room for them used? */
bool counter_thread_is_crowded(const struct counter_thread *t);
/* What event @index of @group has counted and nobody has taken. */
uint64_t counter_thread_peek(const struct counter_thread *t, size_t group,
			     size_t index);

enum counter_level {
	COUNTER_NONE,	/* no group */
	COUNTER_CLOCKS, /* those without tracepoints */
	COUNTER_CHEAP,	/* those without filters */
	COUNTER_ALL,
};
/*
 * From now on groups of @level count and others pause, to save what they cost.
 * The thread's time on a CPU in a group's pause is part of enabled_ns, and not
 * of running_ns, in what is taken of it next: exact as long as a group without
 * tracepoints counts, to a tick of the scheduler otherwise. One that is opened
 * has all. Not of machine-wide ones.
 */
void counter_thread_set_level(struct counter_thread *t,
			      enum counter_level level);
bool counter_counts_at(const struct counter_group *g, enum counter_level level);

/* Groups of the other kind than the thread's (machine-wide or not) have none.
 */
bool counter_thread_has(const struct counter_thread *t, size_t group);
/* NULL is fine. */
void counter_thread_close(struct counter_thread *t);
/* @t has ended, or gone on by another number: of its groups those that inherit
 * remain open for who was born to it. False: there is none. */
bool counter_thread_keep(struct counter_thread *t);

/*
 * What one context switch of a counted thread costs it more, ns: its counters
 * are stopped and started. Measured on the calling thread, half a millisecond.
 * 0 if that is not permitted.
 */
uint64_t counter_switch_cost_ns(const struct counter_plan *plan);

/*
 * What one system call of a thread costs it more that is counted at @level than
 * where all pauses, ns: each event of @plan that is one for all system calls
 * looks at it. Measured on the calling thread, some milliseconds; 0 if that is
 * not permitted, and at least 1 otherwise, also where calls are so dear that it
 * cannot be told. @bare_ns_ret (optional): what one that does nothing takes
 * where counting pauses.
 */
uint64_t counter_call_cost_ns(const struct counter_plan *plan,
			      enum counter_level level, uint64_t *bare_ns_ret);
/* The same once, of the calling thread, which @self counts at COUNTER_CLOCKS:
 * a tenth of a millisecond. */
uint64_t counter_call_more_ns(struct counter_thread *self,
			      enum counter_level level);
/* So many system calls that do nothing, by the calling thread now: what they
 * take, ns of its time. */
#define COUNTER_TIMED_CALLS 200
int64_t counter_calls_ns(void);
/* What a system call that does nothing takes the calling thread now, ns: the
 * best of many. */
uint64_t counter_bare_call_ns(void);

/*
 * What the end of an interval of one group costs the thread that counted the
 * event which ended it, ns (counter_every). Measured on the calling thread with
 * @plan's first group that has such ends, some milliseconds, once: page faults
 * that each end one beside as many that do not, for events that the kernel
 * counts itself; for others a clock, whose interrupt stands for the counter's.
 * 0 if that is not permitted, or no group has them.
 */
uint64_t counter_every_cost_ns(const struct counter_plan *plan);

/*
 * Counting took @cost_ns of the time that *running_ns and *enabled_ns have,
 * which the thread got nothing done in: both are less by so much, in whole
 * @unit_ns, but a 64th of *running_ns stays. Returns by how much.
 */
uint64_t counter_without(uint64_t *enabled_ns, uint64_t *running_ns,
			 uint64_t cost_ns, uint64_t unit_ns);

/* @value as it would have been had the group counted all the time. */
uint64_t counter_scale(uint64_t value, uint64_t enabled_ns,
		       uint64_t running_ns);

#endif
