/*
 * diff.h - two sides, each of one or several runs of one program, compared:
 * what is new, gone, grown, shrunk, and how sure that is. Knows nothing of
 * files or output.
 */
#ifndef SMCO_DIFF_H
#define SMCO_DIFF_H

#include "reports/diff-match.h"
#include "reports/welch.h"

enum { DIFF_BASE, DIFF_NEW, DIFF_SIDES };

/* One thing in the runs of one side. */
struct diff_entry {
	const struct diff_item **in_run; /* owned; [nr_runs], NULL = absent */
	/* Owned; [nr_runs]: what stacks of that run have that were cut and may
	 * belong here. */
	double (*cut)[DIFF_NR_METRICS];
	bool is_cut; /* the beginning of others: its stack was cut */
};

struct diff_side {
	struct diff_run *run; /* owned */
	size_t nr_runs;
	struct diff_entry *entry; /* owned; entry[0] is the run as a whole */
	size_t nr, cap;
};

enum diff_verdict {
	VERDICT_SAME,
	VERDICT_NEW,
	VERDICT_GROWN,
	VERDICT_SHRUNK,
	VERDICT_GONE,
	VERDICT_UNSURE, /* less, or more, of it was watched */
	VERDICT_NR,
};
const char *diff_verdict_name(enum diff_verdict v);

struct diff_measure {
	bool is_known; /* on both sides */
	bool has_changed;
	struct sample side[DIFF_SIDES];
	double by_length;  /* share that the runs' lengths explain */
	struct welch test; /* low, high and p NAN if there is nothing to judge
			    * by; p also by_order's, if that is less */
	/* Of what is in all runs of one side and in none of the other: how
	 * likely that is by chance. 1: some have it otherwise; NAN: all have
	 * it, or none, or there is nothing to judge by. */
	double by_order;
};

/* One thing on both sides, or on one. */
struct diff_change {
	const struct diff_entry *entry[DIFF_SIDES]; /* NULL = not there */
	const struct diff_item *item[DIFF_SIDES];   /* one of each */
	enum diff_kind kind;
	size_t order; /* as matched */
	enum diff_how how;
	bool ambiguous;
	/* Only one side has it, and in each run of the other stacks that were
	 * cut begin like it: it may be there, too. */
	bool is_hidden;
	bool is_told; /* shown unless everything is */
	enum diff_verdict verdict;
	enum diff_metric by;	    /* the first metric that changed */
	double watched[DIFF_SIDES]; /* share of its blocks; NAN = unknown */
	struct diff_measure measure[DIFF_NR_METRICS];
};

/* How well a side was watched, over its runs. */
struct diff_quality {
	double watched; /* share of the time of known blocks; NAN = unknown in
			 * all of them */
	double error;	/* of the byte seconds, as a share of them */
	bool is_whole;	/* no trace is cut or damaged */
};

struct diff_config {
	/* Smaller changes count as none; share of the base. */
	double least_change;
};

struct diff {
	struct diff_pool pool;
	uint64_t ahead_bytes; /* the caller's; as of struct select */
	struct diff_side side[DIFF_SIDES];
	struct diff_change *change; /* owned; [0] is the run as a whole, then
				     * those that changed, most important
				     * first, then the others */
	size_t nr_changes;
	size_t nr_by_verdict[DIFF_NR_KINDS][VERDICT_NR];
	/* Not among these: known on one side only. */
	size_t nr_one_sided[DIFF_NR_KINDS];
	size_t nr_ambiguous;
	struct diff_quality quality[DIFF_SIDES];
	bool is_judged;	     /* there are repeated runs */
	double least_change; /* in force */
};

/* Zero-initialise @d, diff_deinit at the end. Reads one more run of @side, the
 * trace at @path, which must stay; "-" is standard input. Errors name it. */
int diff_add_run(struct diff *d, int side, const char *path,
		 struct smco_err *err);
/* The same of an open reader, which must not have been read from. */
int diff_add_reader(struct diff *d, int side, struct trace_reader *reader,
		    const char *path, struct smco_err *err);
void diff_deinit(struct diff *d);

/* SMCO_FORMAT: the runs are of different programs, or of one whose trace has
 * no end; the message says which. */
int diff_check(const struct diff *d, struct smco_err *err);

/*
 * Compare; each side has at least one run. With repeated runs a change counts
 * if it is at least least_change of the base, and
 *   - Welch's test finds it significant: for the run as a whole at 5 %, for
 *     sites at 5 % in all, however many are compared (Holm), or
 *   - it is from or to nothing in every run, which by chance only 5 % of what
 *     is told for that reason would be (Benjamini and Hochberg, by the exact
 *     chance of that order): never with three runs a side.
 * With single runs it counts if it is at least least_change and beyond what
 * the naps' own errors explain. SMCO_NOMEM.
 */
int diff_compare(struct diff *d, const struct diff_config *config,
		 struct smco_err *err);

/* One item of @e, which is one of @s. */
const struct diff_item *diff_entry_item(const struct diff_side *s,
					const struct diff_entry *e);
/* Cut stacks that may belong to a thing matter if they have more than a tenth
 * of what it has. */
#define DIFF_CUT_MATTERS 0.1
/* Fills in cut and is_cut of all entries. SMCO_NOMEM. For diff_compare.
 */
int diff_mark_cut(struct diff_side *s);
/* Fills in is_hidden of all changes, which are paired. SMCO_NOMEM. */
int diff_mark_hidden(struct diff *d);

/* What @entry (NULL = not there) has of @metric in the runs of @side: the
 * number of values put into @v, which has room for side->nr_runs. */
size_t diff_values(const struct diff_side *side, const struct diff_entry *entry,
		   enum diff_metric metric, double *v);
/* Did runs of both sides watch blocks? */
bool diff_compares_naps(const struct diff *d);
/* Was @side watched so much less than the other that naps may be missing? */
bool diff_is_watched_less(const struct diff *d, int side);
/* What may be a mistake about @c's variable on @side, or NULL. */
const char *diff_mistake(const struct diff *d, const struct diff_change *c,
			 int side);
/* Change as a share of the base: 0.1 = a tenth more; INFINITY from nothing. */
double diff_relative(const struct diff_measure *m);

#endif
