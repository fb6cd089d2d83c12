/*
 * counts.h - what the counters of a trace say: sums for each thread and event,
 * the same over time, and what follows from them. Built record by record while
 * a summary is loaded; memory grows with threads, not with records.
 */
#ifndef SMCO_COUNTS_H
#define SMCO_COUNTS_H

#include "reports/hindex.h"
#include "reports/trace.h"

#define COUNTS_MAX_EVENTS 128
#define COUNTS_BUCKETS	  512 /* over time, unless asked for more */

/* What an event is, FORMAT.md's counter.G.I.role. */
enum counts_role {
	ROLE_OTHER,
	ROLE_TASK_CLOCK,
	ROLE_TSC,
	ROLE_CYCLES,
	ROLE_INSTRUCTIONS,
	ROLE_BRANCHES,
	ROLE_MISSES,
	ROLE_FAULTS,
	ROLE_MINOR_FAULTS,
	ROLE_MAJOR_FAULTS,
	ROLE_SWITCHES,
	ROLE_MIGRATIONS,
	ROLE_NR,
};
const char *counts_role_name(enum counts_role role);

struct counts_event {
	const char *name;  /* of the reader, never NULL */
	const char *unit;  /* "" = a number */
	const char *level; /* "user", "kernel", "" = both */
	double scale;	   /* count * scale is in unit */
	enum counts_role role;
	uint32_t group, index;
};

struct counts_part {
	uint64_t raw, enabled_ns, missed_ns;
};

struct counts_sum {    /* of one event */
	uint64_t raw;  /* as counted */
	double scaled; /* as if it had been counted all the time */
	uint64_t enabled_ns, missed_ns;
	/* private: what is told of the parts before, and the last two. */
	double before;
	struct counts_part last, open;
};

struct counts_thread {
	uint32_t pid, tid; /* tid 0: the machine */
	uint64_t start_ns, end_ns;
	struct counts_sum *sum; /* by event */
};

struct counts {
	struct counts_event event[COUNTS_MAX_EVENTS];
	size_t nr_events;
	struct counts_sum total[COUNTS_MAX_EVENTS];
	struct counts_thread *thread; /* in order of appearance */
	size_t nr_threads, cap_threads;
	uint64_t nr_records, nr_unknown; /* those of no known group */
	uint64_t interval_ns;		 /* 0 = not in the trace */
	uint64_t start_ns; /* of what was counted first; 0 without records */
	/* Counts over time, event by event, bucket by bucket: each record
	 * scaled by itself (nothing where nothing was counted) and shared out
	 * among the buckets that its interval meets. */
	double *bucket; /* nr_events * max_buckets */
	size_t max_buckets;
	uint64_t bucket_ns;
	size_t nr_buckets;
	/* private: */
	uint64_t nr_taken; /* of nr_records */
	struct hindex index;
	uint16_t first_of_group[32], nr_of_group[32];
};

/* Events are taken from @r's keys; at most @max_buckets (even, 0 =
 * COUNTS_BUCKETS) over time. *ret is NULL if it has none. SMCO_NOMEM. */
int counts_create(const struct trace_reader *r, size_t max_buckets,
		  struct counts **ret);
void counts_destroy(struct counts *c); /* NULL is fine */
/* An EV_COUNTS record whose payload is a struct ev_counts. SMCO_NOMEM. */
int counts_take(struct counts *c, const struct record *r);

/* All records are taken: threads of which nothing was counted, because counting
 * paused while they lived, did in their time what others did in theirs; in all,
 * not each by itself. NULL is fine. */
void counts_finish(struct counts *c);

/* @more, of the same event, to @sum. */
void counts_add(struct counts_sum *sum, const struct counts_sum *more);

/* What one event means beside the others, as a number per something. */
enum counts_rate {
	RATE_NONE,
	RATE_CPUS,	 /* CPU time per time: of how many CPUs */
	RATE_PER_SECOND, /* per second of CPU time, or of time without */
	RATE_HZ,	 /* the same, of cycles */
	RATE_PER_CYCLE,	 /* instructions per cycle */
	RATE_PER_1000,	 /* misses per 1000 instructions */
};
/*
 * The rate for @event among @sum, which have @time_ns together. RATE_NONE, and
 * *ret untouched, where there is nothing to divide by.
 */
enum counts_rate counts_derive(const struct counts *c,
			       const struct counts_sum *sum, size_t event,
			       uint64_t time_ns, double *ret);
/* "0.998 CPUs used", "2160 a second", "" for RATE_NONE. Returns @buf, of at
 * least UNITS_MAX bytes. */
char *counts_rate_text(enum counts_rate rate, double v, char *buf);
/* @v of an event in its unit, "8.54 s", "22 201 962 000". Returns @buf, as
 * above. */
char *counts_value_text(const struct counts_event *e, double v, char *buf);
/* Cycles per instruction, or a negative number if either is not known. */
double counts_cpi(const struct counts *c, const struct counts_sum *sum);

#endif
