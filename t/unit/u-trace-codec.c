/*
 * The pieces a trace is read with, one by one: cursor, records, tables. And
 * the bytes themselves: a change of the coding changes the format's version.
 */
#include "t/unit/tap.h"

#include <stdlib.h>

#include <zlib.h>

#include "reports/codec.h"
#include "reports/disk.h"
#include "reports/pack.h"
#include "reports/schema-file.h"
#include "reports/tables.h"

/* A cursor over memory that ends where the data ends, for ASan. */
static struct cursor exact(const void *data, size_t len)
{
	static uint8_t *mem;
	free(mem);
	mem = malloc(len);
	if (len)
		memcpy(mem, data, len);
	return (struct cursor){mem, len, 0};
}
#define EXACT(...)                                                             \
	exact((const uint8_t[]){__VA_ARGS__},                                  \
	      sizeof((const uint8_t[]){__VA_ARGS__}))

static void cursors(void)
{
	const uint8_t *bytes;
	uint64_t v = 77;
	uint32_t v32 = 77;
	struct cursor c = exact("", 0);
	check(!cursor_varint(&c, &v) && c.pos == 0 && v == 77);
	check(cursor_bytes(&c, 0, &bytes));
	check(!cursor_bytes(&c, 1, &bytes));
	c = EXACT(0x80);
	check(!cursor_varint(&c, &v) && c.pos == 0);
	c = EXACT(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
	check(cursor_varint(&c, &v) && v == UINT64_MAX && c.pos == 10);
	c = EXACT(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2);
	check(!cursor_varint(&c, &v) && c.pos == 0);
	c = EXACT(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80);
	check(!cursor_varint(&c, &v));
	c = EXACT(0xff, 0xff, 0xff, 0xff, 0x0f);
	check(cursor_varint32(&c, &v32) && v32 == UINT32_MAX);
	c = EXACT(0x80, 0x80, 0x80, 0x80, 0x10);
	check(!cursor_varint32(&c, &v32) && c.pos == 0);
	c = EXACT(1, 2, 3);
	check(cursor_bytes(&c, 2, &bytes) && bytes[1] == 2 && c.pos == 2);
	check(!cursor_bytes(&c, 2, &bytes) && c.pos == 2);
	check(!cursor_bytes(&c, UINT64_MAX, &bytes) && c.pos == 2);
	check(cursor_bytes(&c, 1, &bytes) && cursor_at_end(&c));
	check_int(unzigzag(zigzag(INT64_MIN)), INT64_MIN);
	check_int(zigzag(-1), 1);
	check_int(zigzag(1), 2);
}

/* The first of @nr records of a chunk's payload, under our own schema. */
static int decode_first(struct cursor c, uint32_t nr, struct record *ret)
{
	static struct codec_reader r;
	static struct schema_table schema;
	if (!schema.nr) {
		struct bbuf b = {0};
		uint32_t n = schema_write(&b);
		struct cursor at = {b.data, b.len, 0};
		check_int(schema_read(&schema, true, n, &at), 0);
		check(cursor_at_end(&at));
		bbuf_free(&b);
	}
	int rc = codec_reader_begin(&r, c, nr, &schema);
	return rc ? rc : codec_decode(&r, ret);
}

/* A chunk of one record of event @e in slot 1: dropped, first time, lengths of
 * TIME1, TIME2 and VALUE, then the columns. */
#define ONE(ret, t1, t2, v, ...)                                               \
	decode_first(EXACT(0, 5, t1, t2, v, __VA_ARGS__), 1, ret)

static void malformed_records(void)
{
	struct record r;
	check_int(decode_first(EXACT(0), 1, &r), SMCO_FORMAT);
	check_int(decode_first(EXACT(0, 5, 0, 0), 1, &r), SMCO_FORMAT);
	/* head 0, time 3, value: event 77 */
	check_int(ONE(&r, 0, 0, 1, 0, 3, 77), 0);
	check_int(r.event, 77);
	check_int(r.time_ns, 8);
	check(r.cpu == UINT32_MAX && !r.tid && !r.param && !r.payload_len);
	/* More records than heads; columns longer than the payload. */
	check_int(decode_first(EXACT(0, 5, 0, 0, 1, 0, 3, 77), 2, &r),
		  SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 2, 0, 3, 77), SMCO_FORMAT);
	check_int(ONE(&r, 0xff, 0, 1, 0, 3, 77), SMCO_FORMAT);
	/* No event; a slot that is not taken yet. */
	check_int(ONE(&r, 0, 0, 0, 0, 3), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 0, 1, 3), SMCO_FORMAT);
	/* Times that go on where nothing is; more than 64 bits. */
	check_int(ONE(&r, 0, 0, 1, 0, 0x83, 77), SMCO_FORMAT);
	check_int(ONE(&r, 1, 0, 1, 0, 0x83, 1, 77), 0);
	check_int(r.time_ns, 5 + 3 + 128);
	check_int(ONE(&r, 1, 0, 1, 0, 0x83, 0x81, 77), SMCO_FORMAT);
	check_int(ONE(&r, 1, 1, 1, 0, 0x83, 0x81, 1, 77), 0);
	check_int(r.time_ns, 5 + 3 + 128 + 16384);
	check_int(ONE(&r, 1, 8, 1, 0, 0x80, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff,
		      0xff, 0xff, 1, 77),
		  0);
	check_int(ONE(&r, 1, 8, 1, 0, 0x80, 0x80, 0xff, 0xff, 0xff, 0xff, 0xff,
		      0xff, 0xff, 2, 77),
		  SMCO_FORMAT);
	/* More follows, but does not; is not known; earlier. */
	check_int(ONE(&r, 0, 0, 1, 128, 3, 77), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 2, 128, 3, 77, 4), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 2, 128, 3, 77, 1), 0);
	check_int(r.time_ns, 2);
	/* Who: cpu, thread. */
	check_int(ONE(&r, 0, 0, 2, 16, 3, 77, 1), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 3, 16, 3, 77, 3, 4), 0);
	check(r.cpu == 2 && r.tid == 2);
	/* The parameter. */
	check_int(ONE(&r, 0, 0, 1, 96, 3, 77), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 2, 96, 3, 77, 1), 0);
	check_int(r.param, UINT32_MAX);
	/* Raw: one byte short; whole; longer than any may be. */
	check_int(ONE(&r, 0, 0, 2, 128, 3, 77, 2, 2, 1), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 2, 128, 3, 77, 2, 2, 1, 5), 0);
	check_int(r.payload_len, 2);
	size_t len = CODEC_MAX_PAYLOAD + 1;
	struct bbuf b = {0};
	bbuf_put(&b, "\0\5\0\0\2\200\3M\2", 9);
	bbuf_varint(&b, len);
	bbuf_reserve(&b, len);
	memset(b.data + b.len, 0, len);
	check_int(decode_first(exact(b.data, b.len + len), 1, &r), SMCO_FORMAT);
	bbuf_free(&b);
	/* Fields of a coverage record: presence, values; a field too many. */
	check_int(ONE(&r, 0, 0, 1, 0, 3, 4), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 1, 0, 3, 4, 3, 1), SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 1, 0, 3, 4, 3, 1, 2), 0);
	check_int(r.payload_len, sizeof(struct ev_coverage));
	check_int(ONE(&r, 0, 0, 1, 0, 3, 4, 4, 1), SMCO_FORMAT);
	/* why of a process event: 33 bits */
	check_int(ONE(&r, 0, 0, 1, 0, 3, 5, 8, 0x80, 0x80, 0x80, 0x80, 0x10),
		  SMCO_FORMAT);
	check_int(ONE(&r, 0, 0, 1, 0, 3, 5, 8, 0xff, 0xff, 0xff, 0xff, 0x0f),
		  0);
}

static int read_schema(bool has_units, struct cursor c)
{
	struct schema_table t = {0};
	int rc = schema_read(&t, has_units, 1, &c);
	schema_table_free(&t);
	return rc;
}

static void malformed_schemas(void)
{
	/* id, name, parameter, size, fields: name, offset, width << 1 |
	 * signed, coding, a, b */
	check_int(read_schema(false, EXACT(9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 0,
					   16, 0, 0, 0)),
		  0);
	check_int(read_schema(false, EXACT(9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 4,
					   9, 0, 0, 0)),
		  0);
	static const uint8_t wrong[][14] = {
		{0, 1, 'e', 1, 'p', 8, 1, 1, 'f', 0, 16, 0, 0, 0},  /* id */
		{9, 99, 'e', 1, 'p', 8, 1, 1, 'f', 0, 16, 0, 0, 0}, /* name */
		{9, 1, 0, 1, 'p', 8, 1, 1, 'f', 0, 16, 0, 0, 0},
		{9, 1, 'e', 1, 'p', 8, 0, 1, 'f', 0, 16, 0, 0, 0},
		{9, 1, 'e', 1, 'p', 8, 99, 1, 'f', 0, 16, 0, 0, 0},
		{9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 1, 16, 0, 0, 0},
		{9, 1, 'e', 1, 'p', 7, 1, 1, 'f', 0, 16, 0, 0, 0},
		{9, 1, 'e', 1, 'p', 3, 1, 1, 'f', 0, 8, 0, 0, 0},
		{9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 0, 12, 0, 0, 0},
		{9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 0, 16, 77, 0, 0},
		{9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 0, 16, 5, 0, 0},
		{9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 0, 16, 6, 0, 1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check_int(read_schema(false, exact(wrong[i], sizeof(wrong[i]))),
			  SMCO_FORMAT);
	check_int(read_schema(false, EXACT(9, 1, 'e', 1, 'p', 8, 1, 1, 'f', 0,
					   16, 0, 0)),
		  SMCO_FORMAT);
}

/* The same with units, of time and of the field. */
static void malformed_units(void)
{
	check_int(read_schema(true, EXACT(9, 1, 'e', 1, 'p', 8, 1, 1, 1, 'f', 0,
					  16, 0, 0, 0, 100)),
		  0);
	check_int(read_schema(true, EXACT(9, 1, 'e', 1, 'p', 8, 1, 1, 1, 'f', 0,
					  16, 0, 0, 0, 0)),
		  SMCO_FORMAT);
	check_int(read_schema(true, EXACT(9, 1, 'e', 1, 'p', 8, 1, 0, 1, 'f', 0,
					  16, 0, 0, 0, 1)),
		  SMCO_FORMAT);
	check_int(read_schema(true, EXACT(9, 1, 'e', 1, 'p', 8, 1, 1, 1, 'f', 0,
					  16, 0, 0, 0)),
		  SMCO_FORMAT);
	check_int(read_schema(true,
			      EXACT(9, 1, 'e', 1, 'p', 8, 1, 1, 1, 'f', 0, 16,
				    0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10)),
		  SMCO_FORMAT);
}

static int add(struct tables *t, unsigned type, uint32_t nr, struct cursor c)
{
	return tables_add(t, type, nr, &c);
}

static void malformed_tables(void)
{
	struct tables t = {0};
	size_t nr;
	check_int(add(&t, CHUNK_STRINGS, 2, EXACT(1, 1, 'a', 2, 'b', 'c')), 0);
	/* One byte short: what came before stays. */
	check_int(add(&t, CHUNK_STRINGS, 2, EXACT(3, 1, 'd', 2, 'e')),
		  SMCO_FORMAT);
	/* Ids that were given out already, id 0, ids beyond 32 bits. */
	check_int(add(&t, CHUNK_STRINGS, 1, EXACT(3, 1, 'x')), SMCO_FORMAT);
	check_int(add(&t, CHUNK_STRINGS, 1, EXACT(0, 1, 'x')), SMCO_FORMAT);
	check_int(add(&t, CHUNK_STRINGS, 2,
		      EXACT(0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0)),
		  SMCO_FORMAT);
	check_int(add(&t, CHUNK_STRINGS, 1, EXACT(9, 1, 'z')), 0);
	/* function, file, line, module, build-id, offset */
	check_int(add(&t, CHUNK_FRAMES, 2,
		      EXACT(1, 1, 2, 7, 3, 9, 5, 4, 8, 6, 10, 255, 1, 1)),
		  0);
	check_int(add(&t, CHUNK_FRAMES, 1, EXACT(9, 1, 2, 7, 3, 9)),
		  SMCO_FORMAT);
	/* id, depth, frames as differences: 1, 2, 77 */
	check_int(add(&t, CHUNK_STACKS, 1, EXACT(5, 3, 2, 2, 150, 1)), 0);
	check_int(add(&t, CHUNK_STACKS, 1, EXACT(6, 3, 2, 2)), SMCO_FORMAT);
	struct bbuf deep = {0};
	bbuf_varint(&deep, 7);
	bbuf_varint(&deep, STACK_MAX_FRAMES + 1);
	for (int i = 0; i <= STACK_MAX_FRAMES; i++)
		bbuf_varint(&deep, 0);
	check_int(add(&t, CHUNK_STACKS, 1, exact(deep.data, deep.len)),
		  SMCO_FORMAT);
	bbuf_free(&deep);
	check_int(add(&t, CHUNK_META, 1, EXACT(1, 'k', 1)), SMCO_FORMAT);
	check_int(add(&t, CHUNK_META, 1, EXACT(1, 'k', 1, 'v')), 0);
	check_int(add(&t, CHUNK_END, 1, EXACT(1)), SMCO_FORMAT);

	const struct trace_frame *f = tables_stack(&t, 5, &nr);
	check_int(nr, 3);
	check_str(f[0].function, "a");
	check_str(f[0].file, "bc");
	check_int(f[0].line, 3);
	check(f[0].inlined);
	check_str(f[0].module, "d");
	check_str(f[0].build_id, "z");
	check_int(f[0].offset, 5);
	/* Ids that nothing defines: 4, 8, 6, 10; frame 77. */
	check_str(f[1].function, "");
	check_str(f[1].module, "");
	check_str(f[2].function, "");
	check(!tables_stack(&t, 6, &nr));
	check(!tables_stack(&t, 7, &nr));
	check_str(tables_meta(&t, "k"), "v");
	tables_free(&t);
}

static struct bbuf coded;
static struct codec_writer coder;

static void encode(uint32_t event, const void *payload, size_t len)
{
	codec_encode(&coder, &(struct record){.event = event,
					      .time_ns = 1000 * event,
					      .cpu = UINT32_MAX,
					      .tid = 3,
					      .param = 9,
					      .payload = payload,
					      .payload_len = (uint32_t)len});
}

/* If this fails the format has changed: see TRACE_VERSION and FORMAT.md. */
static void bytes(void)
{
	static const char want[] =
		"07e80705010f"
		"70016002606060e006"
		"0000e800e8e8e8b000"
		"07070707de"
		"05"
		"010006120212031204120512630212"
		"ff1f8080808080e03f808001c00c86030a8f030602040601"
		"02a80886038f0301"
		"4901020b"
		"4901020b"
		"ff97010a080c0e10121416181a1d0a"
		"03801002"
		"07bc49028204"
		"02aabb";
	check_int(codec_writer_init(&coder), 0);
	struct ev_nap nap = {.addr = 0x7f8000000000,
			     .size = 8192,
			     .start_ns = 800,
			     .length_ns = 5,
			     .error_ns = 5,
			     .alloc_ns = 995,
			     .pid = 3,
			     .alloc_stack = 1,
			     .ended_stack = 2,
			     .last_stack = 3,
			     .ended_syscall = -2,
			     .flags = 1};
	struct ev_site site = {.nr_allocs = 1, .nr_live = 2, .stack = 3};
	struct ev_ledger ledger = {.run_ns = 5,
				   .spent_ns = 4,
				   .mech_ns = {6, 7, 8, 9, 10, 11},
				   .nr_known = 12,
				   .nr_armed = 13,
				   .recent_ppb = -15,
				   .longest_stop_ns = 5};
	struct ev_coverage coverage = {2048, 2};
	struct ev_process process = {4711, 1, 256, 0};
	encode(EV_NAP, &nap, sizeof(nap));
	encode(EV_NAP, &nap, sizeof(nap));
	encode(EV_SITE, &site, sizeof(site));
	encode(EV_SITE, &site, sizeof(site));
	encode(EV_LEDGER, &ledger, sizeof(ledger));
	encode(EV_COVERAGE, &coverage, sizeof(coverage));
	encode(EV_PROCESS, &process, sizeof(process));
	encode(99, "\xaa\xbb", 2);
	encode(99, NULL, 0);
	codec_finish(&coder, 7, &coded);
	codec_writer_free(&coder);
	char hex[1024] = "";
	for (size_t i = 0; i < coded.len && i < 500; i++)
		snprintf(hex + 2 * i, 3, "%02x", coded.data[i]);
	check_str(hex, want);
	bbuf_free(&coded);
}

static void check_coded(size_t len, uint32_t crc)
{
	check_int(coded.len, len);
	check_int((uint32_t)crc32_z(0, coded.data, coded.len), crc);
	bbuf_reset(&coded);
}

/* Two threads, one of which changes its pace now and then. */
static void modelled_record(uint32_t i, struct pack_records *p,
			    struct bitcoder *c)
{
	struct ev_range range = {.smallest = -(int64_t)i,
				 .largest = 1000 * i,
				 .hits = i * i,
				 .watched_ns = 77 * i,
				 .alive_ns = 100 * i,
				 .pid = 4711,
				 .flags = i % 3};
	struct ev_counts counts = {
		.enabled_ns = 1000 + i,
		.value = {3000 + 3 * i, i},
	};
	bool is_range = i % 4 != 3;
	uint64_t pace = i / 100 % 2 ? 1000000 : 3000000;
	struct record r = {
		.event = is_range ? EV_RANGE : EV_COUNTS,
		.time_ns = pace * (i / 2) + i % 5 + (i % 20 < 2 ? pace : 0),
		.cpu = i % 7 == 3 ? 1 : UINT32_MAX,
		.tid = 5 + i % 2,
		.param = i * i % 9,
		.payload = is_range ? (void *)&range : (void *)&counts,
		.payload_len = is_range ? sizeof(range) : sizeof(counts)};
	check_int(pack_record(p, c, &r), 0);
}

/* Stacks of which the first frames change and the others seldom do, each
 * defined again with others. */
static uint32_t plain_stacks(struct bbuf *to)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t again = i % 8 >= 4 ? 1000 : 0, last = 0;
		bbuf_varint(to, i / 8 * 4 + i % 4);
		bbuf_varint(to, 2 + i / 4 % 5);
		for (uint32_t j = 0; j < 2 + i / 4 % 5; j++) {
			uint32_t frame = 10 * j + again + 1;
			if (!j || i % (10 * j) == 3)
				frame += i % 9;
			bbuf_varint(to, zigzag((int32_t)(frame - last)));
			last = frame;
		}
		nr++;
	}
	return nr;
}

/* The same of modelled records and stacks. */
static void bytes_modelled(void)
{
	struct pack_records *p = pack_records_create(NULL);
	struct pack_stacks *s = pack_stacks_create();
	struct bbuf plain = {0};
	struct bitcoder c;
	bitcoder_begin_out(&c, &coded);
	for (uint32_t i = 0; i < 1000; i++)
		modelled_record(i, p, &c);
	struct record raw = {.event = 99, .payload = &raw, .payload_len = 1};
	check_int(pack_record(p, &c, &raw), SMCO_UNSUPPORTED);
	bitcoder_finish(&c);
	check_coded(7079, 0x6d73c4af);
	bitcoder_begin_out(&c, &coded);
	uint32_t nr = plain_stacks(&plain);
	struct cursor in = {plain.data, plain.len, 0};
	check_int(pack_stacks_encode(s, &c, nr, in), 0);
	bitcoder_finish(&c);
	check_coded(238, 0x878991d3);
	bbuf_free(&coded);
	bbuf_free(&plain);
	pack_records_destroy(p);
	pack_stacks_destroy(s);
}

int main(void)
{
	cursors();
	malformed_records();
	malformed_schemas();
	malformed_units();
	malformed_tables();
	bytes();
	bytes_modelled();
	exact("", 0);
	return tap_done();
}
