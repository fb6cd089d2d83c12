/*
 * trace.h - the trace file: append-only chunks with checksums, tables of
 * strings, frames and stacks inside, so that it can be read on another
 * machine and after a crash up to the last whole chunk (at most a second is
 * lost). FORMAT.md is normative.
 */
#ifndef SMCO_TRACE_H
#define SMCO_TRACE_H

#include "reports/record.h"

/* ---- writer: one thread at a time ---- */

struct trace_writer;

/* Creates or replaces @path (the old file is kept as PATH.old). @start_ns:
 * CLOCK_MONOTONIC of session time 0. */
int trace_writer_create(const char *path, uint64_t start_ns,
			struct trace_writer **ret, struct smco_err *err);
/* Free-form facts of the session: "command", "target_ppb", "mechanism",
 * "nap_ns", "min_size", "version", "hostname", "kernel", "detached", ... */
int trace_put_meta(struct trace_writer *w, const char *key, const char *value);
int trace_put(struct trace_writer *w, const struct record *r);

struct trace_frame {
	const char *function; /* "" if unknown */
	const char *file;
	uint32_t line;
	const char *module;   /* path */
	const char *build_id;
	uint64_t offset;      /* in the module */
	bool inlined;	      /* inlined into the next frame */
};
/* Define stack @id (innermost first). Later definitions win. */
int trace_put_stack(struct trace_writer *w, uint32_t id,
		    const struct trace_frame *frames, size_t nr);
/* Write out what is buffered; called at least once a second by the owner.
 * A full disk: SMCO_SYS once, later calls do nothing and return it again;
 * what was written stays readable. */
int trace_flush(struct trace_writer *w, struct smco_err *err);
int trace_writer_close(struct trace_writer *w, struct smco_err *err);

/* ---- reader: hostile input ---- */

struct trace_reader;

int trace_reader_open(const char *path, struct trace_reader **ret,
		      struct smco_err *err);
int trace_reader_open_mem(const void *buf, size_t len,
			  struct trace_reader **ret, struct smco_err *err);
void trace_reader_close(struct trace_reader *r);
/* Next record in file order: 1, 0 at the end, negative on damage (the reader
 * may go on: damaged chunks are skipped and counted). */
int trace_next(struct trace_reader *r, struct record *ret,
	       struct smco_err *err);
const char *trace_meta(struct trace_reader *r, const char *key); /* or NULL */
/* Frames of a stack; NULL if unknown. Complete only after trace_next hit 0. */
const struct trace_frame *trace_stack(struct trace_reader *r, uint32_t id,
				      size_t *nr_ret);
uint64_t trace_nr_damaged(const struct trace_reader *r); /* chunks skipped */
bool trace_is_truncated(const struct trace_reader *r);

#endif
