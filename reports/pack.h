/*
 * pack.h - modelled chunks: records and stacks coded one after the other by
 * what came before, in this chunk and in those that it continues. Much slower
 * than the columns of codec.h and much smaller, so the writer's thread does it
 * for chunks of few items, which are most of those that a run of a monitor
 * leaves. FORMAT.md, "Modelled chunks", is normative.
 *
 * The same function encodes and decodes; both sides must have been given the
 * same items since the last reset.
 */
#ifndef SMCO_PACK_H
#define SMCO_PACK_H

#include "reports/bitcoder.h"
#include "reports/record.h"

struct schema_table;

/* How many items a modelled chunk of @bytes coded bytes may have: nobody shall
 * have to decode for long what was written in no time. */
static inline uint64_t pack_most_items(uint64_t bytes)
{
	return 256 + 64 * bytes;
}

/* ---- records ---- */

struct pack_records;

/* @schema: of the file; NULL: our own. It must stay. NULL if out of memory. */
struct pack_records *pack_records_create(const struct schema_table *schema);
void pack_records_destroy(struct pack_records *p); /* NULL is fine */
/* Forget all that came before. @is_old: what follows is as formats before 7
 * have it, which is only read. */
void pack_records_reset(struct pack_records *p, bool is_old);
/*
 * Encode *r, or decode into it; then its payload is valid until the next call
 * and aligned for every event structure. SMCO_OK, SMCO_FORMAT, SMCO_NOMEM,
 * SMCO_UNSUPPORTED: its payload is raw, columns have to do; after a failure
 * only a reset helps.
 */
int pack_record(struct pack_records *p, struct bitcoder *c, struct record *r);

/* ---- stacks ---- */

struct pack_stacks;

struct pack_stacks *pack_stacks_create(void);
void pack_stacks_destroy(struct pack_stacks *p);
void pack_stacks_reset(struct pack_stacks *p, bool is_old);
/* The @nr stacks that are the payload of an unmodelled chunk, @plain, are
 * encoded; or @nr are decoded to the end of @plain_ret, which may become no
 * longer than @most bytes. The same results. */
int pack_stacks_encode(struct pack_stacks *p, struct bitcoder *c, uint32_t nr,
		       struct cursor plain);
int pack_stacks_decode(struct pack_stacks *p, struct bitcoder *c, uint32_t nr,
		       size_t most, struct bbuf *plain_ret);

#endif
