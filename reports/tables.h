/*
 * tables.h - strings, frames, stacks and meta of a trace that is being read.
 * Chunk payloads go in, names come out. Ids are the writer's; gaps left by
 * lost chunks cost nothing and read as "unknown".
 */
#ifndef SMCO_TABLES_H
#define SMCO_TABLES_H

#include "reports/bytes.h"
#include "reports/hindex.h"
#include "reports/trace.h"

/* Ids [first, first + nr) are the entries from @at on. */
struct table_run {
	uint32_t first;
	uint32_t nr;
	uint32_t at;
};

struct table_runs {
	struct table_run *run; /* ascending, not overlapping */
	size_t nr, cap;
};

struct disk_frame {
	uint32_t function, file, module, build_id; /* string ids */
	uint32_t line;
	bool inlined;
	uint64_t offset;
	uint32_t names_at,
		nr_names; /* in refs: what it is read as; 0: itself */
};

struct disk_stack {
	uint32_t id;
	uint32_t at; /* first entry in refs */
	uint32_t nr;
	uint32_t nr_named;
	struct trace_frame *named; /* owned; NULL until asked for */
};

struct meta_pair { /* offsets in text */
	uint32_t key;
	uint32_t value;
};

/* Zero-initialise, tables_free at the end. */
struct tables {
	struct bbuf text;    /* every string and meta text with a NUL */
	uint32_t *string_at; /* offsets in text */
	size_t nr_strings, cap_strings;
	struct table_runs string_runs;
	struct disk_frame *frame;
	size_t nr_frames, cap_frames;
	struct table_runs frame_runs;
	uint32_t *ref; /* frame ids of stacks and names */
	size_t nr_refs, cap_refs;
	size_t nr_spread; /* frames more than they were defined with, of all
			     stacks that were asked for */
	struct disk_stack *stack;
	size_t nr_stacks, cap_stacks;
	struct hindex stack_index;
	struct meta_pair *meta;
	size_t nr_meta, cap_meta;
	struct hindex meta_index;
	uint64_t raw_bytes; /* taken in so far */
};

void tables_free(struct tables *t);

/*
 * Take in the payload of one chunk of @type with @nr_items entries.
 * SMCO_FORMAT: it is malformed; what stood before the fault stays. After the
 * last call names may be asked for, not earlier: texts still move.
 */
int tables_add(struct tables *t, unsigned type, uint32_t nr_items,
	       struct cursor *c);

/* How many bytes of payload they take yet. */
size_t tables_room(const struct tables *t);

const struct trace_frame *tables_stack(struct tables *t, uint32_t id,
				       size_t *nr_ret);
const char *tables_meta(const struct tables *t, const char *key);
bool tables_meta_at(const struct tables *t, size_t i, const char **key_ret,
		    const char **value_ret);

#endif
