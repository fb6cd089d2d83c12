#include "reports/trace.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zlib.h>

#include "reports/array.h"
#include "reports/codec.h"
#include "reports/disk.h"
#include "reports/hindex.h"
#include "reports/schema-file.h"
#include "reports/sink.h"

#define SEAL_BYTES                                                             \
	(256u << 10) /* a table's chunk is full when it has so many */

/* A table's chunk being collected. */
struct pending {
	struct bbuf body;
	uint32_t nr_items;
};

struct aside {
	enum chunk_type type;
	struct pending pending;
};

struct frame_entry {
	uint32_t function, file, module, build_id; /* string ids */
	uint32_t line;
	uint16_t inlined;
	uint16_t naming; /* enum trace_naming; not in the file */
	uint64_t offset;
};

/* What a frame is to be read as: entries of a writer's named_as. */
struct names_entry {
	uint32_t at, nr; /* nr 0: as it is, so far */
};

struct trace_writer {
	struct sink *sink;
	struct smco_err failure; /* code is 0 while all is well */

	struct pending meta, strings, frames, names, stacks;
	/* Full ones for which there was no place, in the order of the file. */
	struct aside *aside;
	size_t nr_aside, cap_aside;
	struct codec_writer records;
	uint64_t nr_records;  /* taken, in all */
	uint64_t nr_dropped;  /* for want of room, in all */
	uint64_t nr_not_told; /* of these, not yet in a chunk */

	struct hindex string_index, frame_index;
	struct bbuf string_bytes; /* every string with its NUL */
	size_t *string_at;	  /* [id - 1] offset in string_bytes */
	size_t nr_strings, cap_strings;
	struct frame_entry *frame; /* [id - 1] */
	size_t nr_frames, cap_frames;
	struct names_entry *named; /* [id - 1] */
	size_t nr_named, cap_named;
	uint32_t *named_as; /* frame ids */
	size_t nr_named_as, cap_named_as;
	uint32_t last_named, last_name; /* ids in the chunk being collected */
};

static int fail(struct trace_writer *w, struct smco_err *err)
{
	if (err)
		*err = w->failure;
	return w->failure.code;
}

static int out_of_memory(struct trace_writer *w)
{
	w->records.room = 0;
	return smco_fail(&w->failure, SMCO_NOMEM, 0,
			 "out of memory for the trace");
}

/* ------------------------------------------------------------- the file --- */

static void fill_header(struct disk_header *h, uint64_t start_ns,
			uint32_t schema_crc)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	uint64_t real =
		(uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	*h = (struct disk_header){
		.version = TRACE_VERSION,
		.oldest_readable = TRACE_OLDEST_READABLE,
		.header_size = sizeof(*h),
		.features = TRACE_FEATURE_ZSTD,
		.start_ns = start_ns,
		.start_real_ns = real - (smco_now_ns() - start_ns),
		.clock = TRACE_CLOCK_MONOTONIC,
		.arch = EM_X86_64,
		.schema_crc = schema_crc,
	};
	memcpy(h->magic, TRACE_MAGIC, sizeof(h->magic));
	h->crc = (uint32_t)crc32(0, (const uint8_t *)h,
				 offsetof(struct disk_header, crc));
}

int trace_writer_prepare(const char *path, uint64_t start_ns,
			 struct trace_writer **ret, struct smco_err *err)
{
	struct trace_writer *w = calloc(1, sizeof(*w));
	struct chunk *schema = NULL;
	struct disk_header h;
	struct bbuf b = {0};
	if (!w || codec_writer_init(&w->records)) {
		free(w);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	uint32_t nr = schema_write(&b);
	fill_header(&h, start_ns, (uint32_t)crc32_z(0, b.data, b.len));
	int rc = b.failed ? smco_fail(err, SMCO_NOMEM, 0, "out of memory")
			  : sink_open(path, &h, sizeof(h), &w->sink, err);
	if (!rc)
		schema = sink_take(w->sink);
	if (schema) {
		bbuf_put(&schema->body, b.data, b.len);
		schema->type = CHUNK_SCHEMA;
		schema->nr_items = nr;
		sink_submit(w->sink);
		rc = sink_drain(w->sink, err);
	}
	bbuf_free(&b);
	if (rc)
		trace_writer_destroy(w);
	else
		*ret = w;
	return rc;
}

int trace_writer_publish(struct trace_writer *w, struct smco_err *err)
{
	return sink_publish(w->sink, err);
}

void trace_writer_publish_soon(struct trace_writer *w)
{
	sink_publish_soon(w->sink);
}

int trace_writer_create(const char *path, uint64_t start_ns,
			struct trace_writer **ret, struct smco_err *err)
{
	struct trace_writer *w = NULL;
	int rc = trace_writer_prepare(path, start_ns, &w, err);
	if (!rc)
		rc = trace_writer_publish(w, err);
	if (rc)
		trace_writer_destroy(w);
	else
		*ret = w;
	return rc;
}

/* --------------------------------------------------------------- chunks --- */

/* True unless there is no place for it now. */
static bool hand_over(struct trace_writer *w, enum chunk_type type,
		      struct pending *p)
{
	if (!p->nr_items)
		return true;
	struct chunk *c = sink_take(w->sink);
	if (!c)
		return false;
	struct bbuf empty = c->body;
	c->body = p->body;
	c->type = type;
	c->nr_items = p->nr_items;
	*p = (struct pending){.body = empty};
	sink_submit(w->sink);
	return true;
}

static bool hand_over_records(struct trace_writer *w)
{
	if (!w->records.nr)
		return true;
	struct chunk *c = sink_take(w->sink);
	if (!c)
		return false;
	c->type = CHUNK_RECORDS;
	c->nr_items = w->records.nr;
	w->nr_records += w->records.nr;
	c->earliest_ns = w->records.earliest_ns;
	c->latest_ns = w->records.latest_ns;
	c->threads = w->records.threads;
	codec_finish(&w->records, w->nr_not_told, &c->body);
	w->nr_not_told = 0;
	sink_submit(w->sink);
	return true;
}

/* False if not all found a place. */
static bool hand_over_aside(struct trace_writer *w)
{
	size_t nr = 0;
	while (nr < w->nr_aside &&
	       hand_over(w, w->aside[nr].type, &w->aside[nr].pending))
		bbuf_free(&w->aside[nr++].pending.body);
	w->nr_aside -= nr;
	if (nr)
		memmove(w->aside, w->aside + nr,
			w->nr_aside * sizeof(*w->aside));
	return !w->nr_aside;
}

/* Definitions before what uses them: who reads a growing file or a torn one
 * finds every name a record needs. False if not all found a place. */
static bool hand_over_all(struct trace_writer *w)
{
	return hand_over_aside(w) && hand_over(w, CHUNK_META, &w->meta) &&
	       hand_over(w, CHUNK_STRINGS, &w->strings) &&
	       hand_over(w, CHUNK_FRAMES, &w->frames) &&
	       hand_over(w, CHUNK_NAMES, &w->names) &&
	       hand_over(w, CHUNK_STACKS, &w->stacks) && hand_over_records(w);
}

/* What is in the tables waits in memory for the disk, all of it, so that
 * definitions stay before what uses them. False when out of memory. */
static bool set_aside(struct trace_writer *w)
{
	struct aside all[] = {
		{CHUNK_META, w->meta},	   {CHUNK_STRINGS, w->strings},
		{CHUNK_FRAMES, w->frames}, {CHUNK_NAMES, w->names},
		{CHUNK_STACKS, w->stacks},
	};
	struct pending *from[] = {&w->meta, &w->strings, &w->frames, &w->names,
				  &w->stacks};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (!all[i].pending.nr_items)
			continue;
		if (!ARRAY_ROOM(w->aside, w->nr_aside, w->cap_aside))
			return false;
		w->aside[w->nr_aside++] = all[i];
		*from[i] = (struct pending){0};
	}
	return true;
}

static int check_memory(struct trace_writer *w)
{
	if (!w->failure.code &&
	    (w->meta.body.failed || w->strings.body.failed ||
	     w->frames.body.failed || w->names.body.failed ||
	     w->stacks.body.failed))
		return out_of_memory(w);
	if (!w->failure.code && sink_failure(w->sink, &w->failure))
		w->records.room = 0; /* trace_put comes to ask */
	return w->failure.code;
}

int trace_flush(struct trace_writer *w, struct smco_err *err)
{
	if (check_memory(w))
		return fail(w, err);
	hand_over_all(w);
	return SMCO_OK;
}

int trace_sync(struct trace_writer *w, struct smco_err *err)
{
	if (check_memory(w))
		return fail(w, err);
	/* There may be more than there are places. */
	while (!hand_over_all(w) && !sink_failure(w->sink, NULL))
		sink_drain(w->sink, NULL);
	sink_drain(w->sink, NULL);
	return check_memory(w) ? fail(w, err) : SMCO_OK;
}

/* Begin item @size bytes long in @p; flushes first if the chunk is full. What
 * a table holds is never dropped, and nobody waits for a place: it grows until
 * there is one. */
static int begin_item(struct trace_writer *w, struct pending *p, size_t size)
{
	if (!check_memory(w) && p->body.len + size > SEAL_BYTES)
		trace_flush(w, NULL);
	if (!w->failure.code && p->body.len + size > CHUNK_MAX / 2 &&
	    !set_aside(w))
		return out_of_memory(w);
	return w->failure.code;
}

static int end_item(struct trace_writer *w, struct pending *p)
{
	if (p->body.failed)
		return out_of_memory(w);
	p->nr_items++;
	return SMCO_OK;
}

/* What is no simple case: the chunk is full, or nothing is written any more. */
__attribute__((noinline)) static int put_rarely(struct trace_writer *w,
						const struct record *r)
{
	if (r->payload_len > CODEC_MAX_PAYLOAD)
		return SMCO_FORMAT;
	if (check_memory(w))
		return w->failure.code;
	if (!codec_has_room(&w->records))
		hand_over_all(w);
	if (!codec_has_room(&w->records)) {
		w->nr_dropped++;
		w->nr_not_told++;
		return SMCO_BUSY;
	}
	return codec_encode(&w->records, r) ? SMCO_OK : out_of_memory(w);
}

int trace_put(struct trace_writer *w, const struct record *r)
{
	if (__builtin_expect(!codec_has_room(&w->records) ||
				     r->payload_len > CODEC_MAX_PAYLOAD,
			     0))
		return put_rarely(w, r);
	return codec_encode(&w->records, r) ? SMCO_OK : out_of_memory(w);
}

bool trace_has_room(struct trace_writer *w)
{
	return codec_has_room(&w->records) ||
	       (!check_memory(w) && hand_over_all(w));
}

int trace_put_patiently(struct trace_writer *w, const struct record *r)
{
	if (!trace_has_room(w))
		trace_sync(w, NULL);
	return trace_put(w, r);
}

static void put_text(struct bbuf *b, const char *s, size_t len)
{
	bbuf_varint(b, len);
	bbuf_put(b, s, len);
}

int trace_put_meta(struct trace_writer *w, const char *key, const char *value)
{
	size_t key_len = strnlen(key, STRING_MAX);
	size_t value_len = strnlen(value, STRING_MAX);
	int rc = begin_item(w, &w->meta, key_len + value_len + 16);
	if (rc)
		return rc;
	put_text(&w->meta.body, key, key_len);
	put_text(&w->meta.body, value, value_len);
	return end_item(w, &w->meta);
}

/* --------------------------------------------------------------- tables --- */

struct string_key {
	const struct trace_writer *w;
	const char *s;
	size_t len;
};

static bool same_string(const void *ctx, uint32_t value)
{
	const struct string_key *k = ctx;
	const char *have =
		(const char *)k->w->string_bytes.data + k->w->string_at[value];
	return !strncmp(have, k->s, k->len) && !have[k->len];
}

/* Id of a string, defining it if it is new; 0 for NULL and "". */
static uint32_t string_id(struct trace_writer *w, const char *s)
{
	if (!s || !*s || w->failure.code)
		return 0;
	struct string_key key = {w, s, strnlen(s, STRING_MAX)};
	uint64_t hash = hindex_hash(0, s, key.len);
	uint32_t found;
	if (hindex_find(&w->string_index, hash, same_string, &key, &found))
		return found + 1;
	if (begin_item(w, &w->strings, key.len + 16))
		return 0;
	if (!ARRAY_ROOM(w->string_at, w->nr_strings, w->cap_strings) ||
	    !hindex_add(&w->string_index, hash, (uint32_t)w->nr_strings)) {
		out_of_memory(w);
		return 0;
	}
	w->string_at[w->nr_strings++] = w->string_bytes.len;
	bbuf_put(&w->string_bytes, s, key.len);
	bbuf_put(&w->string_bytes, "", 1);
	uint32_t id = (uint32_t)w->nr_strings;
	if (!w->strings.nr_items)
		bbuf_varint(&w->strings.body, id); /* first of the chunk */
	put_text(&w->strings.body, s, key.len);
	if (w->string_bytes.failed || end_item(w, &w->strings))
		out_of_memory(w);
	return id;
}

struct frame_key {
	const struct trace_writer *w;
	struct frame_entry entry;
};

static bool same_frame(const void *ctx, uint32_t value)
{
	const struct frame_key *k = ctx;
	return !memcmp(&k->w->frame[value], &k->entry, sizeof(k->entry));
}

static struct frame_entry entry_of(struct trace_writer *w,
				   const struct trace_frame *f)
{
	return (struct frame_entry){
		string_id(w, f->function),
		string_id(w, f->file),
		string_id(w, f->module),
		string_id(w, f->build_id),
		f->line,
		f->inlined,
		f->naming,
		f->offset,
	};
}

static uint32_t frame_id(struct trace_writer *w, const struct trace_frame *f)
{
	struct frame_key key = {.w = w, .entry = entry_of(w, f)};
	uint64_t hash = hindex_hash(0, &key.entry, sizeof(key.entry));
	uint32_t found;
	if (hindex_find(&w->frame_index, hash, same_frame, &key, &found))
		return found + 1;
	if (begin_item(w, &w->frames, 64))
		return 0;
	if (!ARRAY_ROOM(w->frame, w->nr_frames, w->cap_frames) ||
	    !hindex_add(&w->frame_index, hash, (uint32_t)w->nr_frames)) {
		out_of_memory(w);
		return 0;
	}
	w->frame[w->nr_frames++] = key.entry;
	struct bbuf *b = &w->frames.body;
	if (!w->frames.nr_items)
		bbuf_varint(b, w->nr_frames); /* first id of the chunk */
	bbuf_varint(b, key.entry.function);
	bbuf_varint(b, key.entry.file);
	bbuf_varint(b, (uint64_t)key.entry.line << 1 | key.entry.inlined);
	bbuf_varint(b, key.entry.module);
	bbuf_varint(b, key.entry.build_id);
	bbuf_varint(b, key.entry.offset);
	end_item(w, &w->frames);
	return (uint32_t)w->nr_frames;
}

int trace_put_stack(struct trace_writer *w, uint32_t id,
		    const struct trace_frame *frames, size_t nr)
{
	uint32_t ids[STACK_MAX_FRAMES];
	if (w->failure.code)
		return w->failure.code;
	if (nr > STACK_MAX_FRAMES)
		nr = STACK_MAX_FRAMES;
	for (size_t i = 0; i < nr; i++)
		ids[i] = frame_id(w, &frames[i]);
	if (begin_item(w, &w->stacks, nr * 10 + 32))
		return w->failure.code;
	bbuf_varint(&w->stacks.body, id);
	bbuf_varint(&w->stacks.body, nr);
	uint32_t last = 0;
	for (size_t i = 0; i < nr; i++) {
		bbuf_varint(&w->stacks.body, zigzag((int32_t)(ids[i] - last)));
		last = ids[i];
	}
	return end_item(w, &w->stacks);
}

/* NULL if out of memory. */
static struct names_entry *names_of(struct trace_writer *w, uint32_t id)
{
	while (w->nr_named < id) {
		if (!ARRAY_ROOM(w->named, w->nr_named, w->cap_named))
			return NULL;
		w->named[w->nr_named++] = (struct names_entry){0, 0};
	}
	return &w->named[id - 1];
}

/* Both are the same in the file. */
static bool reads_the_same(struct trace_writer *w, const struct trace_frame *f,
			   const struct trace_frame *g)
{
	struct frame_entry a = entry_of(w, f), b = entry_of(w, g);
	a.naming = b.naming;
	return !memcmp(&a, &b, sizeof(a));
}

static int put_names(struct trace_writer *w, uint32_t id, const uint32_t *as,
		     size_t nr)
{
	struct bbuf *b = &w->names.body;
	if (begin_item(w, &w->names, nr * 5 + 16))
		return w->failure.code;
	if (!w->names.nr_items)
		w->last_named = w->last_name = 0;
	bbuf_varint(b, zigzag((int32_t)(id - w->last_named)));
	bbuf_varint(b, nr);
	w->last_named = id;
	for (size_t i = 0; i < nr; i++) {
		bbuf_varint(b, zigzag((int32_t)(as[i] - w->last_name)));
		w->last_name = as[i];
	}
	return end_item(w, &w->names);
}

int trace_name_frame(struct trace_writer *w, const struct trace_frame *f,
		     const struct trace_frame *names, size_t nr)
{
	uint32_t as[NAMES_MAX_FRAMES];
	uint32_t id = frame_id(w, f);
	if (nr > NAMES_MAX_FRAMES)
		nr = NAMES_MAX_FRAMES;
	bool as_it_is = nr == 1 && reads_the_same(w, f, names);
	for (size_t i = 0; i < nr; i++)
		as[i] = as_it_is ? id : frame_id(w, &names[i]);
	if (w->failure.code || !nr)
		return w->failure.code;
	struct names_entry *e = names_of(w, id);
	if (!e)
		return out_of_memory(w);
	if (e->nr)
		return e->nr == nr && !memcmp(w->named_as + e->at, as,
					      nr * sizeof(*as))
			       ? SMCO_OK
			       : SMCO_BUSY;
	*e = (struct names_entry){(uint32_t)w->nr_named_as, (uint32_t)nr};
	for (size_t i = 0; i < nr; i++) {
		if (!ARRAY_ROOM(w->named_as, w->nr_named_as, w->cap_named_as))
			return out_of_memory(w);
		w->named_as[w->nr_named_as++] = as[i];
	}
	return as_it_is ? SMCO_OK : put_names(w, id, as, nr);
}

/* ------------------------------------------------------------------ end --- */

bool trace_writer_which(const struct trace_writer *w, struct stat *ret)
{
	return w->sink && sink_which(w->sink, ret);
}

void trace_writer_stats(const struct trace_writer *w, struct trace_stats *ret)
{
	*ret = (struct trace_stats){
		.nr_records = w->nr_records + w->records.nr,
		.nr_dropped = w->nr_dropped,
	};
	sink_stats(w->sink, ret);
}

void trace_writer_destroy(struct trace_writer *w)
{
	if (!w)
		return;
	sink_destroy(w->sink);
	codec_writer_free(&w->records);
	for (size_t i = 0; i < w->nr_aside; i++)
		bbuf_free(&w->aside[i].pending.body);
	free(w->aside);
	bbuf_free(&w->meta.body);
	bbuf_free(&w->strings.body);
	bbuf_free(&w->frames.body);
	bbuf_free(&w->names.body);
	bbuf_free(&w->stacks.body);
	bbuf_free(&w->string_bytes);
	hindex_free(&w->string_index);
	hindex_free(&w->frame_index);
	free(w->string_at);
	free(w->frame);
	free(w->named);
	free(w->named_as);
	free(w);
}

int trace_writer_close(struct trace_writer *w, struct smco_err *err)
{
	if (!w)
		return SMCO_OK;
	int rc = trace_sync(w, err);
	if (!rc) {
		rc = sink_close(w->sink, w->nr_records, w->nr_dropped, err);
		w->sink = NULL;
	}
	trace_writer_destroy(w);
	return rc;
}
