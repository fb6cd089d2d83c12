#include "reports/trace.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zlib.h>
#include <zstd.h>

#include "reports/array.h"
#include "reports/codec.h"
#include "reports/disk.h"
#include "reports/hindex.h"
#include "reports/outfile.h"

#define SEAL_BYTES (256u << 10) /* a chunk is written when it has so many */
#define ZSTD_LEVEL 3
#define ZSTD_WORTH 96 /* smaller payloads are not tried */

/* A chunk being collected. */
struct pending {
	struct bbuf body;
	uint32_t nr_items;
};

struct frame_entry {
	uint32_t function, file, module, build_id; /* string ids */
	uint32_t line;
	uint32_t inlined;
	uint64_t offset;
};

struct trace_writer {
	struct outfile file;
	char *path; /* for messages */
	uint32_t seq;
	struct smco_err failure; /* code is 0 while all is well */

	struct pending meta, strings, frames, stacks, records;
	struct codec codec;
	struct bbuf out; /* chunks ready to be written */
	ZSTD_CCtx *zstd;
	struct bbuf zstd_out;

	struct hindex string_index, frame_index;
	struct bbuf string_bytes; /* every string with its NUL */
	size_t *string_at;	  /* [id - 1] offset in string_bytes */
	size_t nr_strings, cap_strings;
	struct frame_entry *frame; /* [id - 1] */
	size_t nr_frames, cap_frames;

	struct trace_stats stats;
};

static int fail(struct trace_writer *w, struct smco_err *err)
{
	if (err)
		*err = w->failure;
	return w->failure.code;
}

static int out_of_memory(struct trace_writer *w)
{
	return smco_fail(&w->failure, SMCO_NOMEM, 0,
			 "out of memory for the trace");
}

/* ------------------------------------------------------------- the file --- */

static void put_header(struct trace_writer *w, uint64_t start_ns)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	uint64_t real =
		(uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	struct disk_header h = {
		.version = TRACE_VERSION,
		.oldest_readable = TRACE_OLDEST_READABLE,
		.header_size = sizeof(h),
		.features = TRACE_FEATURE_ZSTD,
		.start_ns = start_ns,
		.start_real_ns = real - (smco_now_ns() - start_ns),
		.clock = TRACE_CLOCK_MONOTONIC,
		.arch = EM_X86_64,
	};
	memcpy(h.magic, TRACE_MAGIC, sizeof(h.magic));
	h.crc = (uint32_t)crc32(0, (const uint8_t *)&h,
				offsetof(struct disk_header, crc));
	bbuf_put(&w->out, &h, sizeof(h));
}

int trace_writer_create(const char *path, uint64_t start_ns,
			struct trace_writer **ret, struct smco_err *err)
{
	struct trace_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	w->file.fd = -1;
	w->path = strdup(path);
	w->zstd = ZSTD_createCCtx();
	int rc = SMCO_OK;
	if (!w->path || !w->zstd)
		rc = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (!rc)
		rc = outfile_open(&w->file, path, err);
	if (!rc) {
		/* The header goes out at once: an output that cannot be
		 * written to is found before the command starts. */
		put_header(w, start_ns);
		rc = trace_flush(w, err);
		if (rc)
			outfile_undo(&w->file);
	}
	if (rc) {
		trace_writer_destroy(w);
		return rc;
	}
	*ret = w;
	return SMCO_OK;
}

static int write_out(struct trace_writer *w)
{
	if (!w->out.len)
		return SMCO_OK;
	int error = outfile_append(&w->file, w->out.data, w->out.len);
	bbuf_reset(&w->out);
	w->stats.file_bytes = w->file.size;
	if (!error)
		return SMCO_OK;
	return smco_fail(&w->failure, SMCO_SYS, error,
			 "cannot write trace %s, stopped after %llu bytes",
			 w->path, (unsigned long long)w->file.size);
}

/* --------------------------------------------------------------- chunks --- */

/* Turn what is pending into a chunk at the end of w->out. */
static void seal(struct trace_writer *w, enum chunk_type type,
		 struct pending *p)
{
	if (!p->nr_items && type != CHUNK_END)
		return;
	const uint8_t *stored = p->body.data;
	size_t stored_size = p->body.len;
	uint8_t flags = 0;
	if (p->body.len >= ZSTD_WORTH) {
		size_t bound = ZSTD_compressBound(p->body.len);
		bbuf_reset(&w->zstd_out);
		uint8_t *to = bbuf_reserve(&w->zstd_out, bound);
		size_t n = 0;
		if (to)
			n = ZSTD_compressCCtx(w->zstd, to, bound, p->body.data,
					      p->body.len, ZSTD_LEVEL);
		if (n && !ZSTD_isError(n) &&
		    n < p->body.len - p->body.len / 16) {
			stored = to;
			stored_size = n;
			flags = CHUNK_ZSTD;
		}
	}
	struct disk_chunk h = {
		.magic = CHUNK_MAGIC,
		.type = (uint8_t)type,
		.flags = flags,
		.seq = w->seq++,
		.nr_items = p->nr_items,
		.stored_size = (uint32_t)stored_size,
		.raw_size = (uint32_t)p->body.len,
	};
	h.payload_crc = (uint32_t)crc32_z(0, stored, stored_size);
	h.header_crc = (uint32_t)crc32(0, (const uint8_t *)&h,
				       offsetof(struct disk_chunk, header_crc));
	bbuf_put(&w->out, &h, sizeof(h));
	bbuf_put(&w->out, stored, stored_size);
	w->stats.nr_chunks++;
	w->stats.raw_bytes += p->body.len;
	if (type == CHUNK_RECORDS) {
		w->stats.record_raw_bytes += p->body.len;
		w->stats.record_stored_bytes += sizeof(h) + stored_size;
	}
	p->nr_items = 0;
	bbuf_reset(&p->body);
}

static void seal_all(struct trace_writer *w)
{
	/* Definitions before what uses them: who reads a growing file or a
	 * torn one finds every name a record needs. */
	seal(w, CHUNK_META, &w->meta);
	seal(w, CHUNK_STRINGS, &w->strings);
	seal(w, CHUNK_FRAMES, &w->frames);
	seal(w, CHUNK_STACKS, &w->stacks);
	seal(w, CHUNK_RECORDS, &w->records);
	w->codec = (struct codec){0};
}

int trace_flush(struct trace_writer *w, struct smco_err *err)
{
	if (w->failure.code)
		return fail(w, err);
	if (w->meta.body.failed || w->strings.body.failed ||
	    w->frames.body.failed || w->stacks.body.failed ||
	    w->records.body.failed) {
		out_of_memory(w);
		return fail(w, err);
	}
	seal_all(w);
	if (w->out.failed)
		out_of_memory(w);
	else
		write_out(w);
	return w->failure.code ? fail(w, err) : SMCO_OK;
}

/* Begin item @size bytes long in @p; flushes first if the chunk is full. */
static int begin_item(struct trace_writer *w, struct pending *p, size_t size)
{
	if (!w->failure.code &&
	    (p->body.len >= SEAL_BYTES || p->body.len + size > CHUNK_MAX / 2))
		trace_flush(w, NULL);
	return w->failure.code;
}

static int end_item(struct trace_writer *w, struct pending *p)
{
	if (p->body.failed)
		return out_of_memory(w);
	p->nr_items++;
	return SMCO_OK;
}

int trace_put(struct trace_writer *w, const struct record *r)
{
	if (r->payload_len > CODEC_MAX_PAYLOAD)
		return SMCO_FORMAT;
	int rc = begin_item(w, &w->records, r->payload_len + 64);
	if (rc)
		return rc;
	codec_encode(&w->codec, r, &w->records.body);
	w->stats.nr_records++;
	return end_item(w, &w->records);
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

static uint32_t frame_id(struct trace_writer *w, const struct trace_frame *f)
{
	struct frame_key key = {
		.w = w,
		.entry = {string_id(w, f->function), string_id(w, f->file),
			  string_id(w, f->module), string_id(w, f->build_id),
			  f->line, f->inlined, f->offset},
	};
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

/* ------------------------------------------------------------------ end --- */

void trace_writer_stats(const struct trace_writer *w, struct trace_stats *ret)
{
	*ret = w->stats;
}

void trace_writer_destroy(struct trace_writer *w)
{
	if (!w)
		return;
	outfile_close(&w->file);
	ZSTD_freeCCtx(w->zstd);
	bbuf_free(&w->meta.body);
	bbuf_free(&w->strings.body);
	bbuf_free(&w->frames.body);
	bbuf_free(&w->stacks.body);
	bbuf_free(&w->records.body);
	bbuf_free(&w->out);
	bbuf_free(&w->zstd_out);
	bbuf_free(&w->string_bytes);
	hindex_free(&w->string_index);
	hindex_free(&w->frame_index);
	free(w->string_at);
	free(w->frame);
	free(w->path);
	free(w);
}

int trace_writer_close(struct trace_writer *w, struct smco_err *err)
{
	if (!w)
		return SMCO_OK;
	int rc = trace_flush(w, err);
	if (!rc) {
		struct pending end = {.nr_items = 0};
		bbuf_varint(&end.body, w->stats.nr_records);
		seal(w, CHUNK_END, &end);
		bbuf_free(&end.body);
		rc = write_out(w) ? fail(w, err) : SMCO_OK;
	}
	/* A network file system may report a full disk only now. */
	int error = outfile_close(&w->file);
	if (error && !rc)
		rc = smco_fail(err, SMCO_SYS, error, "cannot write trace %s",
			       w->path);
	trace_writer_destroy(w);
	return rc;
}
