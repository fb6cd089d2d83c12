/*
 * sink.h - where a writer's chunks go: a thread of its own compresses them,
 * puts checksums on and appends them to the file. Who hands them over never
 * waits, neither for the compressor nor for the disk: when all places are
 * taken there is none.
 */
#ifndef SMCO_SINK_H
#define SMCO_SINK_H

#include <sys/stat.h>

#include "reports/bytes.h"
#include "reports/disk.h"
#include "reports/trace.h"

#define SINK_PLACES 8

struct chunk { /* one place */
	enum chunk_type type;
	uint32_t nr_items;
	struct bbuf body; /* before compression */
	/* CHUNK_RECORDS, for the index */
	uint64_t earliest_ns, latest_ns, threads;
};

struct sink;

/* Opens the file, not under its name yet, and writes @header_len bytes at once:
 * an output that cannot be written to is found before anything starts. On
 * failure nothing has changed on disk. */
int sink_open(const char *path, const void *header, size_t header_len,
	      struct sink **ret, struct smco_err *err);
/* As outfile_publish(). Without it nothing is left on disk. */
int sink_publish(struct sink *s, struct smco_err *err);
/* By its thread, before sink_close() returns: to give a file the name of
 * another takes a file system up to half a second. A failure is one of
 * writing. */
void sink_publish_soon(struct sink *s);
/* A free place with an empty body, NULL if there is none now. Only one at a
 * time: submit it before asking for another. */
struct chunk *sink_take(struct sink *s);
/* Hand the place that was taken to the thread. */
void sink_submit(struct sink *s);
/* 0, or why nothing is written any more: a full disk, out of memory. */
int sink_failure(const struct sink *s, struct smco_err *err);
/* Wait until all that was handed over is in the file. The same result. */
int sink_drain(struct sink *s, struct smco_err *err);
void sink_stats(struct sink *s, struct trace_stats *add);
/* Which file it is, whatever its name is by now. False: not known. */
bool sink_which(const struct sink *s, struct stat *ret);

/* Drain, append the last part of the index and the end chunk, close, free.
 * @nr_records, @nr_dropped: of the whole trace. */
int sink_close(struct sink *s, uint64_t nr_records, uint64_t nr_dropped,
	       struct smco_err *err);
/* Free, leaving the file as it is; what was handed over may be missing. Also
 * in the child of a fork, where there is no such thread. */
void sink_destroy(struct sink *s);

#endif
