/*
 * trace-mutate.h - what the fuzzer's bytes make of a trace. It cannot guess
 * checksums, so they are put on here; the first byte says on what:
 *   0  a file of arbitrary bytes behind a good header
 *   1  a session of all monitors with bytes changed: position (2 bytes), value
 *   2  one chunk, the second byte being its type and flags: modelled, zstd,
 *      or modelled as before format 7, dictionary from the top bit down; the
 *      third the number of its items
 *   3  the tables of that session, and records as feed.h makes them
 * Chunks have the heads of format 7, with the first byte's fourth bit those of
 * formats 3 and 4. The session's chunks are plain or modelled, so that what is
 * changed is what is read.
 */
#ifndef TRACE_MUTATE_H
#define TRACE_MUTATE_H

#include <zstd.h>

#include "reports/codec.h"
#include "reports/dictionary.h"
#include "t/fuzz/feed.h"
#include "t/unit/html-sample.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-show.h"

struct session {
	uint8_t *data;
	size_t size, tables_size; /* tables_size: to the first record */
};
static struct session sample, old_sample; /* old: in its heads */

/* What the monitors that sample_write() does not have leave. */
static void sample_others(struct trace_writer *w)
{
	static const char *const pairs[][2] = {
		{"monitors", "counters,nap,range,samples,phases"},
		{"elapsed_ns", "61200000000"},
		{"counters.interval_ns", "100000000"},
		{"counter.0.0", "task-clock"},
		{"counter.0.0.role", "task-clock"},
		{"counter.0.0.unit", "ns"},
		{"counter.0.1", "page-faults"},
		{"counter.0.1.role", "faults"},
		{"counter.1.0", "cycles"},
		{"counter.1.0.role", "cycles"},
		{"counter.1.1", "instructions"},
		{"counter.1.1.role", "instructions"},
		{"samples.event", "cpu-clock"},
		{"samples.hz", "999"},
		{"phase.1", "sdt:server:load"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		trace_put_meta(w, pairs[i][0], pairs[i][1]);
	struct trace_frame bare = {.offset = 0x1234, .naming = TRACE_CALL};
	const struct trace_frame f[] = {
		{.function = "inlined", .inlined = true},
		{.function = "named"}};
	trace_put_stack(w, 7, &bare, 1);
	trace_name_frame(w, &bare, f, 2);
	for (unsigned ms = 100; ms <= 500; ms += 100)
		html_sample_counts(w, ms, 4711 + ms / 100 % 2, ms / 200);
	for (uint32_t id = 1; id <= 3; id++) {
		struct ev_variable v = {
			.decl = id, .bits = 32, .flags = VARIABLE_SIGNED};
		struct ev_range r = {.smallest = -1,
				     .largest = 1000 * id,
				     .hits = 7,
				     .watched_ns = SAMPLE_MS(900),
				     .alive_ns = SAMPLE_MS(1000),
				     .pid = 4711,
				     .flags = RANGE_SENSED};
		SAMPLE_PUT(w, EV_VARIABLE, 600, id, v);
		SAMPLE_PUT(w, EV_RANGE, 700, id, r);
		SAMPLE_PUT(w, EV_PHASE_RANGE, 700, id,
			   (struct ev_phase_range){.smallest = -1,
						   .largest = 99,
						   .sure_largest = 10 * id,
						   .phase = id % 2,
						   .pid = 4711,
						   .flags = id % 2});
		SAMPLE_PUT(w, EV_SAMPLE, 700 + id, id,
			   (struct ev_sample){.weight = 1001, .pid = 4711});
		SAMPLE_PUT(w, EV_PHASE, 800 + id, 1,
			   (struct ev_phase){.length_ns = SAMPLE_MS(10 * id),
					     .pid = 4711});
		SAMPLE_PUT(w, EV_PHASE_SPAN, 850 + id, id % 2,
			   (struct ev_phase_span){.length_ns = SAMPLE_MS(100),
						  .count = 9,
						  .nr_seen = id,
						  .seen_ns = SAMPLE_MS(3 * id),
						  .pid = 4711});
	}
	SAMPLE_PUT(w, EV_PHASE_TOTAL, 900, 1,
		   (struct ev_phase_total){9, 3, SAMPLE_MS(60), SAMPLE_MS(30)});
}

static void session_write(const char *path)
{
	struct trace_writer *w;
	if (trace_writer_create(path, 0, &w, NULL))
		abort();
	sample_tables(w);
	SAMPLE_PUT(w, EV_PROCESS, 0, 4711, (struct ev_process){4711, 1, -1, 0});
	sample_others(w);
	sample_naps(w);
	sample_totals(w);
	SAMPLE_PUT(w, EV_PROCESS, 61200, 4711,
		   (struct ev_process){4711, 1, 0, 4});
	if (trace_writer_close(w, NULL))
		abort();
}

static void put_head(struct bbuf *to, const struct chunk_head *h, bool old)
{
	struct disk_chunk d = {
		.magic = CHUNK_MAGIC,
		.type = h->type,
		.flags = h->flags,
		.back = h->back,
		.seq = h->seq,
		.nr_items = h->nr_items,
		.stored_size = h->stored_size,
		.raw_size = h->raw_size,
	};
	if (old)
		bbuf_put(to, &d, sizeof(d));
	else
		chunk_head_write(to, h);
}

/* The chunks of @from, decompressed, behind heads of the one or the other kind.
 */
static struct session unpack(const uint8_t *from, size_t len, bool old)
{
	struct session ret = {.data = NULL};
	struct chunk_head h;
	struct bbuf b = {0};
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	size_t next, at = sizeof(struct disk_header);
	bbuf_put(&b, from, at);
	for (; at < len; at = next) {
		next = show_chunk(from, len, at, &h);
		const uint8_t *stored = from + at + h.size;
		size_t stored_size = h.stored_size;
		bool packed = h.flags & CHUNK_ZSTD;
		bool preset = h.flags & CHUNK_DICTIONARY;
		h.flags &= CHUNK_MODELLED | CHUNK_MODELLED_7;
		h.stored_size = h.raw_size;
		if (h.type == CHUNK_RECORDS && !ret.tables_size)
			ret.tables_size = b.len;
		put_head(&b, &h, old);
		uint8_t *to = bbuf_reserve(&b, h.raw_size);
		if (!to)
			abort();
		if (packed)
			ZSTD_decompress_usingDict(
				zstd, to, h.raw_size, stored, stored_size,
				preset ? dictionary_start : NULL,
				preset ? dictionary_size() : 0);
		else
			memcpy(to, stored, h.raw_size);
		b.len += h.raw_size;
	}
	ZSTD_freeDCtx(zstd);
	ret.data = b.data;
	ret.size = b.len;
	if (!ret.tables_size || ret.size > 1 << 16)
		abort();
	show_sign(ret.data, ret.size);
	return ret;
}

static void prepare(void)
{
	const char *path = scratch_path("x.trace");
	session_write(path);
	size_t len;
	uint8_t *packed = show_load(path, &len);
	scratch_remove(); /* a fuzzer seldom exits */
	if (!packed)
		abort();
	sample = unpack(packed, len, false);
	old_sample = unpack(packed, len, true);
	free(packed);
}

static void patched(struct bbuf *to, const struct session *s,
		    const uint8_t *data, size_t size)
{
	bbuf_put(to, s->data, s->size);
	for (; size >= 3; data += 3, size -= 3) {
		size_t at = (size_t)(data[0] << 8 | data[1]) % s->size;
		if (at >= sizeof(struct disk_header))
			to->data[at] = data[2];
	}
}

static void one_chunk(struct bbuf *to, bool old, unsigned type, unsigned nr,
		      const uint8_t *data, size_t size)
{
	struct chunk_head h = {.type = type & 15,
			       .nr_items = nr,
			       .stored_size = (uint32_t)size,
			       .raw_size = (uint32_t)size};
	if (type & 128) {
		h.flags = CHUNK_MODELLED;
		h.flags |= type & 64 ? 0 : CHUNK_MODELLED_7;
	} else if (type & 64) {
		h.flags = CHUNK_ZSTD | (type & 32 ? CHUNK_DICTIONARY : 0);
		h.raw_size = 256 * nr;
	}
	put_head(to, &h, old);
	bbuf_put(to, data, size);
}

static void records(struct bbuf *to, const struct session *s,
		    const uint8_t *data, size_t size)
{
	static struct codec_writer w;
	struct record r = {.event = 0};
	struct feed f = {data, size};
	struct bbuf out = {0};
	uint8_t payload[FEED_PAYLOAD];
	uint32_t nr = 0;
	if (!w.mem && codec_writer_init(&w))
		abort();
	for (; f.left && codec_has_room(&w); nr++) {
		feed_record(&f, &r, payload);
		if (!codec_encode(&w, &r))
			abort();
	}
	codec_finish(&w, 0, &out);
	bbuf_put(to, s->data, s->tables_size);
	one_chunk(to, s == &old_sample, CHUNK_RECORDS, nr, out.data, out.len);
	bbuf_free(&out);
}

/* The file that @data stands for, in memory of its own size, so that a byte too
 * far is seen. The caller frees; NULL if there is too little of it. */
static uint8_t *mutate(const uint8_t *data, size_t size, size_t *len_ret)
{
	struct bbuf b = {0};
	if (!sample.data)
		prepare();
	if (size < 3)
		return NULL;
	bool old = data[0] & 4;
	const struct session *s = old ? &old_sample : &sample;
	switch (data[0] % 4) {
	case 0:
		bbuf_put(&b, s->data, sizeof(struct disk_header));
		bbuf_put(&b, data + 1, size - 1);
		break;
	case 1:
		patched(&b, s, data + 1, size - 1);
		break;
	case 2:
		bbuf_put(&b, s->data, sizeof(struct disk_header));
		one_chunk(&b, old, data[1], data[2], data + 3, size - 3);
		break;
	default:
		records(&b, s, data + 1, size - 1);
		break;
	}
	show_sign(b.data, b.len);
	uint8_t *exact = malloc(b.len);
	memcpy(exact, b.data, b.len);
	*len_ret = b.len;
	bbuf_free(&b);
	return exact;
}

#endif
