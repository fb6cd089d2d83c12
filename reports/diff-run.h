/*
 * diff-run.h - one trace as smco-diff compares it: things that have an
 * identity from run to run, each with the same few numbers: the run as a
 * whole, its allocation sites, its phases, counters and variables. Whatever
 * else a trace comes to hold joins as a kind of its own with a name, and with
 * its metrics in the table: matching, judging and printing go by the tables
 * alone.
 */
#ifndef SMCO_DIFF_RUN_H
#define SMCO_DIFF_RUN_H

#include "reports/diff-pool.h"
#include "reports/trace.h"

enum diff_kind {
	DIFF_RUN,      /* one a run, without a name */
	DIFF_SITE,     /* told apart by its stack */
	DIFF_PHASE,    /* by its name */
	DIFF_COUNTER,  /* by the event's name */
	DIFF_MISTAKE,  /* what may be one, by its variable's name and file */
	DIFF_VARIABLE, /* by its name and file; only with sensors */
	DIFF_NR_KINDS,
};
/* What several are called: "sites". */
const char *diff_kind_name(enum diff_kind kind);

enum diff_metric {
	DIFF_BYTE_SECONDS,
	DIFF_UNUSED,
	DIFF_LONGEST,
	DIFF_ALLOCS,
	DIFF_ALLOC_BYTES,
	DIFF_OVERHEAD,
	DIFF_DURATION,
	DIFF_PHASE_MEAN, /* of those that were timed */
	DIFF_PHASE_COUNT,
	DIFF_PHASE_LONGEST,
	DIFF_COUNT,
	DIFF_IS_MISTAKE, /* 1, or 0: of a variable that looks right */
	DIFF_RANGE,	 /* its largest value less its smallest */
	DIFF_SMALLEST,
	DIFF_LARGEST,
	DIFF_NR_METRICS,
};

enum diff_unit {
	UNIT_COUNT,
	UNIT_BYTES,
	UNIT_BYTE_SECONDS,
	UNIT_NS,
	UNIT_PPB,
	UNIT_NUMBER, /* of any sign: no share of it means anything */
};

struct diff_metric_info {
	const char *id;	   /* in rules and JSON */
	const char *label; /* for people */
	enum diff_unit unit;
	unsigned kinds;	     /* 1 << enum diff_kind: who has it */
	bool absent_is_zero; /* a thing that is not there has 0 of it */
	bool is_context;     /* shown, but its change is no finding */
	double least;	     /* smaller changes are never told */
};
extern const struct diff_metric_info diff_metric[DIFF_NR_METRICS];

/* One frame of a site's stack, reduced to what outlives recompilation. Texts
 * are the pool's: equal ones are equal pointers. */
struct diff_frame {
	const char *function, *stem; /* diff_pool_function, diff_pool_stem */
	const char *file;	     /* last component */
	const char *module;	     /* without version */
	const char *build;	     /* build-id, "" if unknown */
	uint64_t pos;		     /* the line, or the offset in the module */
	bool has_line;
};

struct diff_item {
	enum diff_kind kind;
	const char *name;	   /* in the pool; "" for a site */
	struct diff_frame *frames; /* owned; innermost first */
	struct trace_frame *shown; /* owned; the same as they were, texts in
				    * the pool */
	size_t nr_frames;
	const char *about; /* in the pool; of a mistake what it is, or NULL */
	double value[DIFF_NR_METRICS]; /* NAN = unknown here */
	double error[DIFF_NR_METRICS]; /* the truth is within +- this */
	/* What a second run of the same need not have: naps just long enough
	 * to be told of, what the machine did to the program. */
	double chance[DIFF_NR_METRICS];
	bool is_time; /* a counter of time, which passes in any case */
	bool is_ns;   /* a counter's values are ns */
	/* Of a site, how much of it was watched; of a variable, the time that
	 * it was there and watched, in ns: */
	uint64_t nr_allocs, nr_watched;
	bool is_seen_partly; /* a variable that was not watched all the time */
};

struct diff_run {
	const char *path;    /* of the trace, the caller's */
	const char *command; /* texts are the pool's; "" = unknown */
	char **words;	     /* owned, of it: command_words() */
	const char *shown;   /* for people: quoted */
	const char *program; /* the command's file, without directory */
	const char *mechanism;
	uint64_t start_real_ns, duration_ns;
	uint64_t nap_ns, min_size;
	double watched;		/* share of known blocks armed, over the time;
				 * NAN = unknown */
	uint64_t nr_damaged;	/* chunks skipped */
	uint64_t nr_lost;	/* records in them */
	bool is_truncated;	/* the trace has no end */
	bool lacks_turns;	/* there were blocks that never got one */
	bool has_naps;		/* blocks were watched: there are values of
				 * what only sites and the whole have */
	struct diff_item *item; /* owned; item[0] is the run as a whole */
	size_t nr_items, cap_items;
	uint64_t *declared; /* owned; hashes of the names of all variables that
			     * the program has, also without values; sorted */
	size_t nr_declared;
};

/* Does the program of @run have a variable of that name? */
bool diff_run_declares(const struct diff_run *run, const char *name);
/* Is @metric one of what is allocated and lies unused? */
bool diff_metric_is_of_blocks(enum diff_metric metric);

/* Are the frames of @item the innermost of @whole's, line by line? */
bool diff_item_begins(const struct diff_item *item,
		      const struct diff_item *whole);
/* Of what diff_item_begins compares, chained by @seed. */
uint64_t diff_frame_hash(uint64_t seed, const struct diff_frame *f);

/* Takes all of @reader, which must not have been read from. @ahead_bytes: as of
 * struct select. SMCO_EMPTY: there is nothing in it. */
int diff_run_read(struct trace_reader *reader, uint64_t ahead_bytes,
		  struct diff_pool *pool, struct diff_run *ret,
		  struct smco_err *err);
void diff_run_free(struct diff_run *run);

/* The file that a command line runs, without its directory: "python3" of
 * "/usr/bin/python3 -u x.py". */
const char *diff_run_program(struct diff_pool *pool, const char *command);

#endif
