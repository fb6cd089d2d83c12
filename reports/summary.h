/*
 * summary.h - what a run found, for a person and for programs. Reads a trace
 * only; the supervisor prints the same text at its end from the file it wrote.
 */
#ifndef SMCO_SUMMARY_H
#define SMCO_SUMMARY_H

#include <stdio.h>

#include "reports/trace.h"

struct summary; /* the model built from traces */
struct select;	/* select.h */

/* Reads all records of @r, which must not have been read yet, and keeps a
 * reference: the caller may close @r before the summary is freed. */
int summary_load(struct trace_reader *r, struct summary **ret,
		 struct smco_err *err);

struct summary_input {
	struct trace_reader *reader; /* as above */
	const char *name;	     /* for people; must stay; may be NULL */
};
/*
 * The same of several traces, which are taken together: sums are over all of
 * them, sites that look the same are one. At least one. Only what @select lets
 * pass counts (NULL: everything); what it points to must stay.
 */
int summary_load_files(const struct summary_input *input, size_t nr,
		       const struct select *select, struct summary **ret,
		       struct smco_err *err);
void summary_free(struct summary *s);

struct summary_style {
	bool color;
	unsigned width;	     /* columns; 0 = no limit */
	unsigned max_sites;  /* 0 = all */
	unsigned max_frames; /* per stack; 0 = all; stacks that look the same
			      * to this depth are one site */
	const char *sort;    /* sites by this column of --sites, "-" before it
			      * reverses; NULL: byte_seconds */
	bool ascii;	     /* no characters beyond ASCII of our own */
};
/* @trace_path: for the closing "look at it with" line; NULL = none. Names from
 * the trace are cleaned: no control character reaches @out. */
void summary_print(const struct summary *s, FILE *out, const char *trace_path,
		   const struct summary_style *style);
/* One JSON document; schema in reports/JSON.md. 0 or negative. */
int summary_print_json(const struct summary *s, FILE *out,
		       struct smco_err *err);
/* At most so many elements of arrays that grow with the run; 0 = all. */
struct summary_limits {
	size_t sites;	  /* most byte seconds first */
	size_t naps;	  /* those with most byte seconds */
	size_t processes; /* the first ones */
	size_t threads;	  /* of the counters: the first ones */
	size_t ranges;	  /* the first ones */
	size_t samples;	  /* stacks with most weight; functions */
	size_t pieces;	  /* of time in phases: the first threads', coarser */
	size_t ledger;	  /* evenly over time, the last of each file among
			   * them */
};
/* The same document with less in it, and "left_out": what is not. */
int summary_print_json_some(const struct summary *s,
			    const struct summary_limits *limits, FILE *out,
			    struct smco_err *err);

#endif
