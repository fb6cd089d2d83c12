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
	/* Those that the kernel has, the leader first: their places in the
	 * group, of @nr_all. Of what is tallied it has none but a leader, which
	 * keeps the time. */
	int fd[COUNTER_GROUP_MAX];
	size_t place[COUNTER_GROUP_MAX], nr, nr_all;
	bool is_lost;
	struct counter_sum last;
	/* It pauses; the thread's time up to which that is known, and what of
	 * it is not yet taken. */
	bool is_off;
	uint64_t off_ns, unseen_ns;
	bool has_every; /* the leader is the plan's last of the group */
	uint64_t id;	/* then: the leader's */
	/* Its event that counts context switches, -1 = none; and by how much
	 * the count of the page's event is ahead of it, at least. */
	int switches;
	bool has_lead;
	int64_t lead;
	/* Of what is tallied: how much had been when it was paused last, and
	 * what of it was while it did not count. */
	uint64_t paused[ALL_COLUMNS], uncounted[ALL_COLUMNS];
};

/* What the kernel says of a group, in the order of its events; what is tallied
 * is 0. */
struct counter_reading {
	uint64_t enabled_ns, running_ns, value[COUNTER_GROUP_MAX];
};

struct counter_thread {
	const struct counter_plan *plan;
	pid_t tid;
	enum counter_level level;
	struct open_group *open;
	size_t nr;
	/* Of a software event: its lock changes with each beginning on a CPU.
	 */
	const struct perf_event_mmap_page *page; /* NULL = none */
	size_t page_group, page_place;		 /* whose */
	uint32_t seen_lock;
	bool has_moved; /* by the last reading it had run since that before */
	/* The page's event counts context switches: a reading of these tells
	 * whether the thread was off its CPU. It was by the first since it was
	 * asked whether the thread has run, so also when all others were. */
	bool tells_off, is_off;
	bool is_first; /* the next reading is that first one */
	int place;     /* where it is tallied; -1: it is not */
	bool waits_for_exec;
	/* What of it came along with counts that were written down last. */
	uint64_t told[ALL_COLUMNS];
	/* Where the kernel writes intervals down, of all groups. */
	struct ring ring; /* .data NULL = none */
	size_t ring_bytes;
	/* Of the last that a BPF program had written down: its note, and what
	 * stood behind that. */
	uint64_t note[COUNTER_NOTE_WORDS];
	uint64_t ahead_ns[COUNTER_DIRECT_MAX], count[PMU_MAX_EVENTS];
	size_t nr_counts;		 /* 0 = nothing, or all is told */
	size_t at_count, at_group, from; /* next in count, ahead_ns, open */
	uint64_t beside_ns;		 /* enabled_ns of the record's group */
};

/* ---- counter-birth.c ---- */

/* Is it known what a thread has counted since its birth, before it was stopped
 * for the first time? The first question of the time stamp counter takes 2 ms.
 */
bool counter_has_history(const struct pmu_event *ev);
/* @t, whose groups have just been opened, has counted that, too. */
void counter_add_history(struct counter_thread *t);
/* Time of a thread on a CPU, ns; 0 once it has ended. */
uint64_t counter_cpu_ns(pid_t tid);

/* ---- counter.c ---- */

/* Open @group of @plan; errors as counter_thread_open, and nothing is open. */
int counter_open_group(const struct counter_plan *plan, size_t group, pid_t tid,
		       int cpu, enum counter_since since, struct open_group *o,
		       struct smco_err *err);
void counter_close_group(struct open_group *o);

/* The group's sums are these now, @value of all of its events: adds what
 * is new to @add. False if nothing is. */
bool counter_note(struct open_group *o, uint64_t enabled_ns,
		  uint64_t running_ns, const uint64_t *value,
		  struct counter_sum *add);
/*
 * Which event of its group the @nr-th is that is opened, if all are.
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

/* The group's sums now: 1; 0 if it has lost its counters, or a failure. */
int counter_read_group(const struct open_group *o, struct counter_reading *ret);

/* ---- counter-tally.c ---- */

/* @t, whose groups are open, is tallied if the plan has that. Errors as
 * counter_thread_open. */
int counter_begin_tally(struct counter_thread *t, enum counter_since since,
			struct smco_err *err);
void counter_end_tally(struct counter_thread *t);
/* @o counts from now on, or pauses, and what is tallied with it. */
void counter_turn(struct counter_thread *t, struct open_group *o, bool on);
/* @o has other events now, and all that was tallied is taken. */
void counter_renew_tally(const struct counter_thread *t, struct open_group *o);
/* What was tallied until now while @o counted is added to @value; or what had
 * been when there were @nr of each column. */
void counter_add_tally(const struct counter_thread *t,
		       const struct open_group *o, uint64_t *value);
void counter_add_told(const struct counter_thread *t,
		      const struct open_group *o, const uint64_t *nr,
		      uint64_t *value);

/* ---- counter-page.c ---- */

/* Which event of @g counts all context switches; -1: none, or the group may
 * have to wait for its turn. */
int counter_find_switches(const struct counter_plan *plan,
			  const struct counter_group *g);
/* Does it count each switch of a thread, also for the kernel's sake? */
bool counter_counts_switches(const struct pmu_event *ev);
/* The page of @t, whose groups are open, if there is one to be had. */
void counter_map_page(struct counter_thread *t);
void counter_unmap_page(struct counter_thread *t);
/* How many context switches the page's event has counted, where that has to be
 * known before @o is read: it is compared with what @o has, and a lead that is
 * too small says less, one that is too large what is not true. */
bool counter_read_ahead(const struct counter_thread *t,
			const struct open_group *o, uint64_t *ret);
/* @o was read just now, @ahead (or NULL) before it: had the thread left its CPU
 * already? */
void counter_note_off(struct counter_thread *t, struct open_group *o,
		      const struct counter_reading *now, const uint64_t *ahead);

/* ---- counter-every.c ---- */

/* @every's event as a group's last is opened. */
struct pmu_event counter_every_event(const struct counter_every *every);
/* All of a group keep the same time. */
void counter_every_clock(struct perf_event_attr *attr);
/* Room for the intervals of @t, whose groups are open, if it has some that
 * events end. Errors as counter_thread_open. */
int counter_every_open(struct counter_thread *t, struct smco_err *err);
void counter_every_close(struct counter_thread *t);
/* The next of one group that is written down: true, and what it has counted
 * more; *r is valid until the next call. */
bool counter_every_next(struct counter_thread *t, size_t *group_ret,
			struct counter_sum *ret, struct ring_record *r);
/* The switch that @t is about to make is counted once it has left: it is added
 * to @value of @o. */
void counter_add_switch(const struct counter_thread *t,
			const struct open_group *o, uint64_t *value);

#endif
