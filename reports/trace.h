/*
 * trace.h - the trace file: append-only chunks with checksums, tables of
 * strings, frames and stacks inside, so that it can be read on another
 * machine and after a crash up to the last whole chunk (at most a second is
 * lost). FORMAT.md is normative.
 */
#ifndef SMCO_TRACE_H
#define SMCO_TRACE_H

#include <sys/stat.h>

#include "reports/record.h"

/* ---- writer: one thread at a time; it has another of its own ---- */

struct trace_writer;

/* Creates or replaces @path (the old file is kept as PATH.old). @start_ns:
 * CLOCK_MONOTONIC of session time 0. */
int trace_writer_create(const char *path, uint64_t start_ns,
			struct trace_writer **ret, struct smco_err *err);
/* The same in two steps: all that takes long, for a file that bears another
 * name still, and its name. On failure, and if it is destroyed before it is
 * published, nothing has changed on disk. */
int trace_writer_prepare(const char *path, uint64_t start_ns,
			 struct trace_writer **ret, struct smco_err *err);
int trace_writer_publish(struct trace_writer *w, struct smco_err *err);
/* Soon, by the writer's thread: renaming takes some file systems half a second,
 * in which no program may stand. A failure is one of writing. */
void trace_writer_publish_soon(struct trace_writer *w);
/*
 * Facts of the session, as text; of two with one key the later counts. The
 * keys that the summary understands (FORMAT.md, "Keys", has them all):
 *   command, argv  what was run: command.h puts and reads them
 *   target_ppb     overhead target, decimal
 *   nap_ns         shortest nap that is reported
 *   min_size       cutoff in bytes: smaller allocations are not watched
 *   mechanism      how accesses are seen: "bits", "uffd", "mprotect", ...
 *   mechanism_why  one sentence: why that one
 *   missing        one sentence: what is not seen because of the mechanism
 *   version, hostname, kernel
 *   attached       pids attached to, blank separated; absent if launched
 *   sensors        what allocation functions are seen through
 *   detached       why the run ended before the program did, e.g.
 *                  "after 60 s (-d)", "on SIGINT"; "1" without a reason
 *   elapsed_ns     length of the session, put at its end
 *   pid.N.command  command line of process N, as seen last
 */
int trace_put_meta(struct trace_writer *w, const char *key, const char *value);
/*
 * Some nanoseconds, and never waits for the disk: where what is to be written
 * piles up the record is dropped and counted, SMCO_BUSY. How many were dropped
 * before which record is in the trace.
 */
int trace_put(struct trace_writer *w, const struct record *r);
/* Would a record be dropped now? Then it might be put later. */
bool trace_has_room(struct trace_writer *w);
/* The same as trace_put, but waits until there is room, however slow the disk
 * is: for when nobody is kept waiting any more. */
int trace_put_patiently(struct trace_writer *w, const struct record *r);

/* Whether a frame is as it will stay, or trace_name_frame() will say what it
 * turned out to be: what is at its offset, or what is before it, a call. Not in
 * the file, but frames that differ in it are different ones. */
enum trace_naming { TRACE_FINAL, TRACE_AT, TRACE_CALL };

struct trace_frame {
	const char *function; /* "" if unknown */
	const char *file;
	uint32_t line;
	const char *module; /* path */
	const char *build_id;
	uint64_t offset; /* in the module */
	bool inlined;	 /* inlined into the next frame */
	uint8_t naming;	 /* enum trace_naming */
};
/* Define stack @id (innermost first). Later definitions win. */
int trace_put_stack(struct trace_writer *w, uint32_t id,
		    const struct trace_frame *frames, size_t nr);
/*
 * In every stack, also of those that come yet, frame @f, which is not final,
 * is to be read as the final @names[0..nr), innermost first; 1 to
 * NAMES_MAX_FRAMES of them. SMCO_BUSY: it is read as others already, and stays
 * so; the stacks that are meant have to be defined again.
 */
int trace_name_frame(struct trace_writer *w, const struct trace_frame *f,
		     const struct trace_frame *names, size_t nr);
/* Have what is buffered written out; called at least once a second by the
 * owner. Does not wait for it. A full disk: SMCO_SYS from here or a later call,
 * which do nothing from then on; what was written stays readable. */
int trace_flush(struct trace_writer *w, struct smco_err *err);
/* The same, and wait until it is in the file. */
int trace_sync(struct trace_writer *w, struct smco_err *err);
/* Flush, mark the trace as complete, free. NULL is fine. */
int trace_writer_close(struct trace_writer *w, struct smco_err *err);
/* Free without writing anything more; the trace counts as cut short. For the
 * child of a fork and for error paths. NULL is fine. */
void trace_writer_destroy(struct trace_writer *w);

struct trace_stats { /* of the writer, so far */
	uint64_t nr_records;
	uint64_t nr_dropped; /* not in it */
	/* The rest as far as it is written, see trace_sync. */
	uint64_t nr_chunks;
	uint64_t raw_bytes;	      /* all chunks before compression */
	uint64_t record_raw_bytes;    /* record chunks before compression */
	uint64_t record_stored_bytes; /* and in the file, headers included */
	uint64_t file_bytes;	      /* in the file now */
};
/* Which file it is: another trace may be given its name, and it PATH.old.
 * False: not known. */
bool trace_writer_which(const struct trace_writer *w, struct stat *ret);
void trace_writer_stats(const struct trace_writer *w, struct trace_stats *ret);

/* ---- reader: hostile input ---- */

struct trace_reader;

/* Tables and meta are read here, records by trace_next. A path that is no
 * regular file (a pipe) is read to its end into memory. SMCO_FORMAT: not a
 * trace; SMCO_NEWER, SMCO_FOREIGN: not one for this reader; SMCO_EMPTY: no
 * byte in it; SMCO_NOTFOUND, SMCO_PERM, SMCO_SYS (EISDIR, ...): cannot be
 * read. */
int trace_reader_open(const char *path, struct trace_reader **ret,
		      struct smco_err *err);
/* @buf must stay until the reader is closed. */
int trace_reader_open_mem(const void *buf, size_t len,
			  struct trace_reader **ret, struct smco_err *err);
/* Drops a reference, frees with the last one. NULL is fine. */
void trace_reader_close(struct trace_reader *r);
/* Another reference, e.g. for a model that uses the stacks. Returns @r. */
struct trace_reader *trace_reader_ref(struct trace_reader *r);

/* Next record in file order: 1, 0 at the end, negative on damage (the reader
 * may go on: the rest of the chunk is skipped and counted). The payload stays
 * valid until the next call; it is aligned, and payload_len says whether it is
 * the event's structure. */
int trace_next(struct trace_reader *r, struct record *ret,
	       struct smco_err *err);
/*
 * From now on step over record chunks in which, as the index has it, nothing
 * lies in [@from_ns, @to_ns) (0: no end) or nothing is of thread *@tid (NULL:
 * any). Records outside of it may still be returned.
 */
void trace_narrow(struct trace_reader *r, uint64_t from_ns, uint64_t to_ns,
		  const uint32_t *tid);
const char *trace_meta(struct trace_reader *r, const char *key); /* or NULL */
/* All keys, for (i = 0; trace_meta_at(r, i, &k, &v); i++). */
bool trace_meta_at(const struct trace_reader *r, size_t i, const char **key_ret,
		   const char **value_ret);
/* Frames of a stack, innermost first; NULL if unknown. No member is NULL;
 * valid until the reader is freed. */
const struct trace_frame *trace_stack(struct trace_reader *r, uint32_t id,
				      size_t *nr_ret);

/* Ids of all stacks, for (i = 0; trace_stack_at(r, i, &id); i++). */
bool trace_stack_at(const struct trace_reader *r, size_t i, uint32_t *id_ret);
/* Back to the first record, with what trace_narrow said; what was counted of
 * damage is counted anew. */
void trace_rewind(struct trace_reader *r);

/* The next three are complete once trace_next has returned 0. */
uint64_t trace_nr_damaged(const struct trace_reader *r); /* chunks skipped */
uint64_t trace_nr_lost(const struct trace_reader *r);	 /* records in them */
uint64_t trace_nr_dropped(const struct trace_reader *r); /* by the writer */
/* The writer did not end it: killed, the disk was full, or it still runs. */
bool trace_is_truncated(const struct trace_reader *r);
bool trace_is_empty(const struct trace_reader *r);	    /* only a header */
uint64_t trace_start_real_ns(const struct trace_reader *r); /* CLOCK_REALTIME */
uint64_t trace_file_bytes(const struct trace_reader *r);
/* Version of the format, 0 if the header is damaged. */
unsigned trace_format(const struct trace_reader *r);

#endif
