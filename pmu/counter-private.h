/*
 * counter-private.h - what the files behind counter.h share.
 */
#ifndef SMCO_PMU_COUNTER_PRIVATE_H
#define SMCO_PMU_COUNTER_PRIVATE_H

#include "pmu/counter.h"
#include "pmu/ring.h"

#define COUNTER_READ_FORMAT                                                    \
	(PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |                  \
	 PERF_FORMAT_TOTAL_TIME_RUNNING)

/* One group of one thread, or on one CPU. */
struct open_group {
	size_t group;
	int fd[COUNTER_GROUP_MAX]; /* the leader's first */
	size_t nr;
	bool is_lost;
	struct counter_sum last;
	uint64_t unseen_ns; /* paused, on a CPU, not yet taken */
	bool has_every;	    /* the leader is the plan's last of the group */
	uint64_t id;	    /* then: the leader's */
};

struct counter_thread {
	const struct counter_plan *plan;
	pid_t tid;
	bool is_paused;
	uint64_t paused_at_ns; /* the thread's CPU time then */
	struct open_group *open;
	size_t nr;
	/* Of a software event: its lock changes with each beginning on a CPU.
	 */
	const struct perf_event_mmap_page *page; /* NULL = none */
	size_t page_group, page_place;		 /* whose */
	uint32_t seen_lock;
	bool has_moved; /* by the last reading it had run since that before */
	/* It counts context switches: a reading tells whether the thread was
	 * off its CPU; it was by that of the page's group. */
	bool tells_off, is_off;
	/* Where the kernel writes intervals down, of all groups. */
	struct ring ring; /* .data NULL = none */
	size_t ring_bytes;
};

/* ---- counter.c ---- */

/* Is it known what a thread has counted since its birth, before it was stopped
 * for the first time? */
bool counter_has_history(const struct pmu_event *ev);
/* Open @group of @plan; errors as counter_thread_open, and nothing is open. */
int counter_open_group(const struct counter_plan *plan, size_t group, pid_t tid,
		       int cpu, enum counter_since since, struct open_group *o,
		       struct smco_err *err);
void counter_close_group(struct open_group *o);

/* The group's sums are these now, @value in the order of its events: adds what
 * is new to @add. False if nothing is. */
bool counter_note(struct open_group *o, uint64_t enabled_ns,
		  uint64_t running_ns, const uint64_t *value,
		  struct counter_sum *add);
/*
 * Which event of its group the @nr-th is that the kernel opens and tells of.
 * What ends intervals leads: its overflow is then the last that comes of an
 * event, and all others of the group have counted that event.
 */
static inline size_t counter_place(const struct open_group *o, size_t nr,
				   size_t nr_of_group)
{
	if (!o->has_every)
		return nr;
	return nr ? nr - 1 : nr_of_group - 1;
}

/* ---- counter-every.c ---- */

/* @every's event as a group's last is opened. */
struct pmu_event counter_every_event(const struct counter_every *every);
/* All of a group keep the same time. */
void counter_every_clock(struct perf_event_attr *attr);
/* Room for the intervals of @t, whose groups are open, if it has some that
 * events end. Errors as counter_thread_open. */
int counter_every_open(struct counter_thread *t, struct smco_err *err);
void counter_every_close(struct counter_thread *t);

#endif
