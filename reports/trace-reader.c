#include "reports/trace.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "reports/array.h"
#include "reports/dictionary.h"
#include "reports/disk.h"
#include "reports/schema-file.h"
#include "reports/trace-private.h"

static bool crc_matches(uint32_t want, const void *data, size_t len)
{
	return (uint32_t)crc32_z(0, data, len) == want;
}

static int read_header(struct trace_reader *r, uint64_t *first_ret,
		       struct smco_err *err)
{
	struct disk_header h;
	if (!r->source.size)
		return smco_fail(err, SMCO_EMPTY, 0, "not a trace but empty");
	if (!source_read(&r->source, 0, &h, sizeof(h)) ||
	    memcmp(h.magic, TRACE_MAGIC, sizeof(h.magic)))
		return smco_fail(err, SMCO_FORMAT, 0, "not a trace");
	*first_ret = sizeof(h);
	if (!crc_matches(h.crc, &h, offsetof(struct disk_header, crc))) {
		/* Believe nothing of it; the chunks have their own sums. */
		r->nr_damaged++;
		return SMCO_OK;
	}
	if (h.version < TRACE_OLDEST_KNOWN)
		return smco_fail(err, SMCO_NEWER, 0,
				 "trace of format %u needs an smco-report that "
				 "reads it (this one, " SMCO_VERSION
				 ", reads from %u on)",
				 h.version, TRACE_OLDEST_KNOWN);
	if (h.oldest_readable > TRACE_VERSION)
		return smco_fail(
			err, SMCO_NEWER, 0,
			"trace of format %u needs an smco-report that "
			"reads format %u or newer (this one, " SMCO_VERSION
			", reads up to %u)",
			h.version, h.oldest_readable, TRACE_VERSION);
	if (h.features & ~(uint64_t)TRACE_FEATURES_KNOWN)
		return smco_fail(err, SMCO_NEWER, 0,
				 "trace uses features (mask 0x%llx) that need "
				 "a newer smco-report",
				 (unsigned long long)h.features);
	if (h.arch != EM_X86_64)
		return smco_fail(err, SMCO_FOREIGN, 0,
				 "trace of a program of another architecture "
				 "(ELF machine %u, this smco-report knows %u, "
				 "x86-64)",
				 h.arch, EM_X86_64);
	if (h.header_size > sizeof(h))
		*first_ret = h.header_size;
	r->start_real_ns = h.start_real_ns;
	r->schema_crc = h.schema_crc;
	r->has_header = true;
	r->format = h.version;
	return SMCO_OK;
}

bool trace_chunk_header(const struct trace_reader *r, uint64_t pos,
			struct chunk_head *h)
{
	uint8_t bytes[CHUNK_HEAD_MAX];
	uint64_t left = pos < r->source.size ? r->source.size - pos : 0;
	size_t n = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);
	return source_read(&r->source, pos, bytes, n) &&
	       chunk_head_read(bytes, n, h) && h->stored_size <= CHUNK_MAX &&
	       h->raw_size <= CHUNK_MAX && h->stored_size <= left - h->size;
}

/* Flags that are known, and go together. */
static bool can_read(const struct chunk_head *h)
{
	bool is_zstd = h->flags & CHUNK_ZSTD;
	if (h->flags & ~CHUNK_FLAGS_KNOWN ||
	    (h->flags & CHUNK_DICTIONARY && !is_zstd))
		return false;
	if (!(h->flags & CHUNK_MODELLED))
		return !(h->flags & CHUNK_MODELLED_7);
	return !is_zstd &&
	       (h->type == CHUNK_RECORDS || h->type == CHUNK_STACKS);
}

int trace_chunk_payload(struct trace_reader *r, uint64_t pos,
			const struct chunk_head *h, struct cursor *ret)
{
	bbuf_reset(&r->stored);
	uint8_t *stored = bbuf_reserve(&r->stored, h->stored_size);
	if (!stored)
		return SMCO_NOMEM;
	if (!source_read(&r->source, pos + h->size, stored, h->stored_size) ||
	    !crc_matches(h->payload_crc, stored, h->stored_size) ||
	    !can_read(h))
		return SMCO_FORMAT;
	if (!(h->flags & CHUNK_ZSTD)) {
		*ret = (struct cursor){stored, h->stored_size, 0};
		return h->raw_size == h->stored_size ? SMCO_OK : SMCO_FORMAT;
	}
	bbuf_reset(&r->raw);
	uint8_t *raw = bbuf_reserve(&r->raw, h->raw_size);
	if (!raw)
		return SMCO_NOMEM;
	bool preset = h->flags & CHUNK_DICTIONARY;
	size_t n = ZSTD_decompress_usingDict(r->zstd, raw, h->raw_size, stored,
					     h->stored_size,
					     preset ? dictionary_start : NULL,
					     preset ? dictionary_size() : 0);
	if (ZSTD_isError(n) || n != h->raw_size)
		return SMCO_FORMAT;
	*ret = (struct cursor){raw, n, 0};
	return SMCO_OK;
}

static int remember_record_chunk(struct trace_reader *r, uint64_t pos,
				 const struct chunk_head *h)
{
	if (!ARRAY_ROOM(r->chunk, r->nr_chunks, r->cap_chunks))
		return SMCO_NOMEM;
	r->chunk[r->nr_chunks++] = (struct record_chunk){
		.pos = pos,
		.nr_items = h->nr_items,
		.continues = h->flags & CHUNK_MODELLED && h->back,
	};
	return SMCO_OK;
}

static struct record_chunk *chunk_at(struct trace_reader *r, uint64_t pos)
{
	size_t lo = 0, hi = r->nr_chunks;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (r->chunk[mid].pos == pos)
			return &r->chunk[mid];
		if (r->chunk[mid].pos < pos)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* What it says of chunks that are not there is of no use, and no harm. */
static int take_index(struct trace_reader *r, uint32_t nr, struct cursor *c)
{
	uint64_t pos = 0;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t step, items, earliest, length;
		const uint8_t *threads;
		if (!cursor_varint(c, &step) || !cursor_varint(c, &items) ||
		    !cursor_varint(c, &earliest) ||
		    !cursor_varint(c, &length) || !cursor_bytes(c, 8, &threads))
			return SMCO_FORMAT;
		pos += step;
		struct record_chunk *chunk = chunk_at(r, pos);
		if (!chunk)
			continue;
		chunk->is_indexed = true;
		chunk->earliest_ns = earliest;
		chunk->latest_ns = earliest + length;
		memcpy(&chunk->threads, threads, sizeof(chunk->threads));
	}
	return SMCO_OK;
}

static int take_end(struct trace_reader *r, struct cursor *c)
{
	r->ended = true;
	if (!cursor_varint(c, &r->nr_written) ||
	    !cursor_varint(c, &r->nr_dropped_in_all))
		return SMCO_FORMAT;
	return SMCO_OK;
}

static int take_schema(struct trace_reader *r, enum chunk_type type,
		       uint32_t nr, struct cursor *c)
{
	int rc = schema_read(&r->schema, type == CHUNK_SCHEMA, nr, c);
	if (!rc)
		r->has_schema = true;
	return rc;
}

/* The file's schema is lost. If it was ours all can be read none the less. */
static int own_schema(struct trace_reader *r)
{
	struct bbuf b = {0};
	uint32_t nr = schema_write(&b);
	struct cursor c = {b.data, b.len, 0};
	int rc = b.failed ? SMCO_NOMEM : SMCO_OK;
	if (!rc &&
	    (!r->has_header || crc_matches(r->schema_crc, b.data, b.len)))
		rc = take_schema(r, CHUNK_SCHEMA, nr, &c);
	bbuf_free(&b);
	return rc;
}

/* Modelled stacks at *c, as a chunk that is not would have them. */
static int take_stacks(struct trace_reader *r, const struct chunk_head *h,
		       struct cursor *c)
{
	struct bitcoder bits;
	bool reset;
	if (!unpack_begin(&r->of_stacks, h, c->len - c->pos, &reset))
		return SMCO_FORMAT;
	if (!r->stacks)
		r->stacks = pack_stacks_create();
	if (!r->stacks)
		return SMCO_NOMEM;
	if (reset)
		pack_stacks_reset(r->stacks, !(h->flags & CHUNK_MODELLED_7));
	size_t room = tables_room(&r->tables);
	bbuf_reset(&r->raw);
	bitcoder_begin_in(&bits, *c);
	int rc = pack_stacks_decode(r->stacks, &bits, h->nr_items,
				    room < CHUNK_MAX ? room : CHUNK_MAX,
				    &r->raw);
	if (!rc)
		unpack_end(&r->of_stacks);
	*c = (struct cursor){r->raw.data, r->raw.len, 0};
	return rc;
}

static int take_chunk(struct trace_reader *r, uint64_t pos,
		      const struct chunk_head *h)
{
	struct cursor c;
	if (h->type == CHUNK_RECORDS)
		return remember_record_chunk(r, pos, h);
	if (h->type < CHUNK_META || h->type > CHUNK_NAMES ||
	    h->type == CHUNK_RECORDS_1)
		return SMCO_OK; /* of another writer, and not needed */
	r->ended |= h->type == CHUNK_END;
	int rc = trace_chunk_payload(r, pos, h, &c);
	if (rc)
		;
	else if (h->type == CHUNK_END)
		rc = take_end(r, &c);
	else if (h->type == CHUNK_INDEX)
		rc = take_index(r, h->nr_items, &c);
	else if (h->type == CHUNK_SCHEMA || h->type == CHUNK_SCHEMA_4)
		rc = take_schema(r, (enum chunk_type)h->type, h->nr_items, &c);
	else if (h->flags & CHUNK_MODELLED)
		rc = take_stacks(r, h, &c);
	if (!rc && (h->type <= CHUNK_STACKS || h->type == CHUNK_NAMES))
		rc = tables_add(&r->tables, h->type, h->nr_items, &c);
	if (rc == SMCO_FORMAT)
		r->nr_damaged++;
	return rc == SMCO_NOMEM ? rc : SMCO_OK;
}

/*
 * Walk all chunks: tables are read, record chunks remembered. Where no chunk
 * header stands, the next one is searched for.
 */
static int scan(struct trace_reader *r, uint64_t pos, struct smco_err *err)
{
	uint32_t seq = 0;
	bool searching = false;
	while (pos < r->source.size) {
		struct chunk_head h;
		if (!trace_chunk_header(r, pos, &h)) {
			searching = true;
			pos = source_find(&r->source, pos + 1, CHUNK_MARKER);
			continue;
		}
		/* Several chunks can have gone in one gap, or been cut out
		 * without one. */
		if (h.seq > seq)
			r->nr_damaged += h.seq - seq;
		else if (searching)
			r->nr_damaged++;
		searching = false;
		r->any = true;
		seq = h.seq + 1;
		if (take_chunk(r, pos, &h) == SMCO_NOMEM)
			return smco_fail(err, SMCO_NOMEM, 0,
					 "the trace's tables do not fit into "
					 "memory");
		pos += h.size + h.stored_size;
	}
	if (searching) /* a torn chunk at the end */
		r->ended = false;
	return SMCO_OK;
}

static int open_source(struct trace_reader *r, struct smco_err *err)
{
	uint64_t first = 0;
	r->zstd = ZSTD_createDCtx();
	if (!r->zstd)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	r->threads = UINT64_MAX;
	int rc = read_header(r, &first, err);
	if (!rc)
		rc = scan(r, first, err);
	if (!rc && !r->has_schema && own_schema(r))
		rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	r->nr_damaged_opened = r->nr_damaged;
	r->nr_lost_opened = r->nr_lost;
	return rc;
}

int trace_reader_open(const char *path, struct trace_reader **ret,
		      struct smco_err *err)
{
	struct smco_err why = {0};
	struct trace_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	r->refs = 1;
	int rc = source_open(&r->source, path, err);
	if (!rc) {
		rc = open_source(r, &why);
		if (rc)
			smco_fail(err, rc, 0, "%s: %s", source_name(path),
				  why.msg);
	}
	if (rc)
		trace_reader_close(r);
	else
		*ret = r;
	return rc;
}

int trace_reader_open_mem(const void *buf, size_t len,
			  struct trace_reader **ret, struct smco_err *err)
{
	struct trace_reader *r = calloc(1, sizeof(*r));
	if (!r)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	r->refs = 1;
	source_open_mem(&r->source, buf, len);
	int rc = open_source(r, err);
	if (rc)
		trace_reader_close(r);
	else
		*ret = r;
	return rc;
}

struct trace_reader *trace_reader_ref(struct trace_reader *r)
{
	r->refs++;
	return r;
}

void trace_reader_close(struct trace_reader *r)
{
	if (!r || --r->refs)
		return;
	source_close(&r->source);
	tables_free(&r->tables);
	free(r->chunk);
	ZSTD_freeDCtx(r->zstd);
	bbuf_free(&r->stored);
	bbuf_free(&r->raw);
	codec_reader_free(&r->codec);
	pack_records_destroy(r->packed);
	pack_stacks_destroy(r->stacks);
	schema_table_free(&r->schema);
	free(r);
}

/* ------------------------------------------------------- what it has --- */

const char *trace_meta(struct trace_reader *r, const char *key)
{
	return tables_meta(&r->tables, key);
}

bool trace_meta_at(const struct trace_reader *r, size_t i, const char **key_ret,
		   const char **value_ret)
{
	return tables_meta_at(&r->tables, i, key_ret, value_ret);
}

const struct trace_frame *trace_stack(struct trace_reader *r, uint32_t id,
				      size_t *nr_ret)
{
	return tables_stack(&r->tables, id, nr_ret);
}

bool trace_stack_at(const struct trace_reader *r, size_t i, uint32_t *id_ret)
{
	if (i >= r->tables.nr_stacks)
		return false;
	*id_ret = r->tables.stack[i].id;
	return true;
}

bool trace_is_empty(const struct trace_reader *r)
{
	return !r->any;
}

bool trace_is_truncated(const struct trace_reader *r)
{
	return !r->ended;
}

uint64_t trace_start_real_ns(const struct trace_reader *r)
{
	return r->start_real_ns;
}

uint64_t trace_file_bytes(const struct trace_reader *r)
{
	return r->source.size;
}

unsigned trace_format(const struct trace_reader *r)
{
	return r->format;
}
