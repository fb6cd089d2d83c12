/*
 * trace-private.h - a trace that is being read: what opening it
 * (trace-reader.c) has found, and where reading its records (trace-records.c)
 * stands. Between these two only.
 */
#ifndef SMCO_TRACE_PRIVATE_H
#define SMCO_TRACE_PRIVATE_H

#include <zstd.h>

#include "reports/chunk-head.h"
#include "reports/codec.h"
#include "reports/packer.h"
#include "reports/schema-file.h"
#include "reports/source.h"
#include "reports/tables.h"
#include "reports/trace.h"

struct record_chunk {
	uint64_t pos; /* of its header */
	uint32_t nr_items;
	bool continues;	 /* cannot be read without the one before */
	bool is_indexed; /* the rest is known */
	uint64_t earliest_ns, latest_ns, threads;
};

struct trace_reader {
	unsigned refs;
	struct source source;
	struct tables tables;
	struct record_chunk *chunk; /* in file order */
	size_t nr_chunks, cap_chunks;
	size_t next_chunk; /* the one after that being read */
	struct schema_table schema;
	bool has_schema;
	uint32_t schema_crc; /* as the header says */
	bool has_header;
	unsigned format; /* 0: not known */

	uint64_t from_ns, to_ns; /* see trace_narrow */
	uint64_t threads;

	ZSTD_DCtx *zstd;
	struct bbuf stored, raw; /* of the chunk being read */
	uint32_t records_left;	 /* of the chunk being read */
	struct codec_reader codec;
	bool is_modelled; /* the chunk being read */
	struct bitcoder bits;
	struct pack_records *packed; /* NULL until one is */
	struct pack_stacks *stacks;  /* the same */
	struct unpack_order of_records, of_stacks;

	uint64_t start_real_ns;
	uint64_t nr_damaged, nr_lost, nr_returned;
	uint64_t nr_damaged_opened, nr_lost_opened; /* before any record */
	uint64_t nr_skipped;			    /* trace_narrow */
	uint64_t nr_dropped; /* as the chunks read so far say */
	uint64_t nr_written; /* as the last chunk says, if there is one */
	uint64_t nr_dropped_in_all; /* the same */
	bool any;		    /* there is a chunk */
	bool ended;		    /* the writer's last chunk was seen */
};

/* The header at @pos is whole, and so is the chunk as far as its sizes go. */
bool trace_chunk_header(const struct trace_reader *r, uint64_t pos,
			struct chunk_head *ret);
/* The payload of the chunk at @pos, checked and decompressed, as *ret: valid
 * until the next one. SMCO_FORMAT: it cannot be read. SMCO_NOMEM. */
int trace_chunk_payload(struct trace_reader *r, uint64_t pos,
			const struct chunk_head *h, struct cursor *ret);

#endif
