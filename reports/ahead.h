/*
 * ahead.h - the records of a trace, decoded by a thread of its own while its
 * owner is still busy with those before: reading a long trace takes as long as
 * the slower of both, and a few MiB. A short trace, and one for which there is
 * no thread to be had, is read as trace_next() does, in its owner's.
 */
#ifndef SMCO_AHEAD_H
#define SMCO_AHEAD_H

#include "reports/trace.h"

struct ahead;

/* Traces shorter than this are not worth a thread, unless one is asked for. */
#define AHEAD_WORTH_BYTES (4u << 20)

/*
 * From where @r stands. Until ahead_end() @r may only be asked for names and
 * meta. @at_least_bytes: of the file, so that there is a thread at all; 0 =
 * AHEAD_WORTH_BYTES. NULL if out of memory.
 */
struct ahead *ahead_begin(struct trace_reader *r, uint64_t at_least_bytes);
/* As trace_next(), in the same order: 1, 0 at the end, and then ever more;
 * negative on damage, after which it goes on. The payload stays valid until the
 * next call. */
int ahead_next(struct ahead *a, struct record *ret);
/* Also before the end; where @r then stands is not known: trace_rewind(). NULL
 * is fine. */
void ahead_end(struct ahead *a);

#endif
