/*
 * The coding of records. The first byte says what the others are:
 *   0  a schema and a chunk's payload, as hostile as they come
 *   1  records, which must come out of a chunk as they went in
 *   2, 3  the same of modelled records; 2 also of stacks
 */
#include <stdlib.h>
#include <string.h>

#include "reports/codec.h"
#include "reports/pack.h"
#include "reports/schema-file.h"
#include "t/fuzz/feed.h"

static void hostile(const uint8_t *data, size_t size)
{
	struct schema_table schema = {0};
	struct codec_reader r = {0};
	struct record record;
	if (size < 3)
		return;
	size_t n = data[1] < size - 3 ? data[1] : size - 3;
	struct cursor c = {data + 3, n, 0};
	struct cursor rest = {data + 3 + n, size - 3 - n, 0};
	schema_read(&schema, data[2] & 1, data[0], &c);
	if (!codec_reader_begin(&r, rest, data[2], &schema))
		for (unsigned i = 0; i < data[2]; i++)
			if (codec_decode(&r, &record))
				break;
	codec_reader_free(&r);
	schema_table_free(&schema);
}

static void hostile_stacks(struct cursor c, unsigned nr, bool is_old)
{
	struct pack_stacks *p = pack_stacks_create();
	struct bitcoder bits;
	struct bbuf plain = {0};
	if (!p)
		abort();
	pack_stacks_reset(p, is_old);
	bitcoder_begin_in(&bits, c);
	pack_stacks_decode(p, &bits, nr, 1 << 16, &plain);
	pack_stacks_destroy(p);
	bbuf_free(&plain);
}

static void hostile_modelled(const uint8_t *data, size_t size)
{
	struct schema_table schema = {0};
	struct pack_records *p = pack_records_create(&schema);
	struct bitcoder bits;
	struct record record;
	if (size >= 3 && p) {
		size_t n = data[1] < size - 3 ? data[1] : size - 3;
		struct cursor c = {data + 3, n, 0};
		struct cursor rest = {data + 3 + n, size - 3 - n, 0};
		schema_read(&schema, data[2] & 1, data[0], &c);
		pack_records_reset(p, data[0] & 1);
		bitcoder_begin_in(&bits, rest);
		for (unsigned i = 0; i < data[2]; i++)
			if (pack_record(p, &bits, &record))
				break;
		hostile_stacks(rest, data[2], data[0] & 1);
	}
	pack_records_destroy(p);
	schema_table_free(&schema);
}

static bool same(const struct record *a, const struct record *b)
{
	return a->event == b->event && a->time_ns == b->time_ns &&
	       a->cpu == b->cpu && a->tid == b->tid && a->param == b->param &&
	       a->payload_len == b->payload_len &&
	       (!a->payload_len ||
		!memcmp(a->payload, b->payload, a->payload_len));
}

static void round_trip(const uint8_t *data, size_t size)
{
	static struct schema_table schema;
	static struct codec_writer w;
	struct codec_reader r = {0};
	struct bbuf out = {0};
	struct record record = {.event = 0}, got;
	struct feed f = {data, size};
	uint8_t payload[FEED_PAYLOAD];
	uint32_t nr = 0;
	if (!w.mem) {
		struct bbuf b = {0};
		uint32_t n = schema_write(&b);
		struct cursor c = {b.data, b.len, 0};
		if (schema_read(&schema, true, n, &c) || codec_writer_init(&w))
			abort();
		bbuf_free(&b);
	}
	for (; f.left && codec_has_room(&w); nr++) {
		feed_record(&f, &record, payload);
		if (!codec_encode(&w, &record))
			abort();
	}
	codec_finish(&w, 0, &out);
	if (codec_reader_begin(&r, (struct cursor){out.data, out.len, 0}, nr,
			       &schema))
		abort();
	record = (struct record){.event = 0};
	f = (struct feed){data, size};
	for (uint32_t i = 0; i < nr; i++) {
		feed_record(&f, &record, payload);
		if (codec_decode(&r, &got) || !same(&record, &got))
			abort();
	}
	codec_reader_free(&r);
	bbuf_free(&out);
}

static void round_trip_modelled(const uint8_t *data, size_t size)
{
	struct pack_records *to = pack_records_create(NULL);
	struct pack_records *from = pack_records_create(NULL);
	struct bbuf out = {0};
	struct bitcoder bits;
	struct record record = {.event = 0}, got;
	struct feed f = {data, size};
	uint8_t payload[FEED_PAYLOAD];
	unsigned nr = 0;
	int rc = 0;
	if (!to || !from)
		abort();
	bitcoder_begin_out(&bits, &out);
	for (; f.left && !rc; nr += !rc) {
		feed_record(&f, &record, payload);
		rc = pack_record(to, &bits, &record);
		if (rc && rc != SMCO_UNSUPPORTED)
			abort();
	}
	bitcoder_finish(&bits);
	bitcoder_begin_in(&bits, (struct cursor){out.data, out.len, 0});
	record = (struct record){.event = 0};
	f = (struct feed){data, size};
	for (unsigned i = 0; i < nr; i++) {
		feed_record(&f, &record, payload);
		if (pack_record(from, &bits, &got) || !same(&record, &got))
			abort();
	}
	pack_records_destroy(to);
	pack_records_destroy(from);
	bbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const what[])(const uint8_t *, size_t) = {
		hostile, round_trip, hostile_modelled, round_trip_modelled};
	if (size)
		what[*data % 4](data + 1, size - 1);
	return 0;
}
