/*
 * The pieces a trace is read with, one by one: cursor, records, tables. And
 * the bytes themselves: a change of the coding changes the format's version.
 */
#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/codec.h"
#include "reports/disk.h"
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

static int decode(struct cursor c, struct record *ret)
{
	static struct bbuf payload;
	struct codec s = {0};
	return codec_decode(&s, &c, &payload, ret);
}

static void malformed_records(void)
{
	struct record r;
	/* The event's varint, time, cpu, thread, parameter end early. */
	check_int(decode(EXACT(0), &r), SMCO_FORMAT);
	check_int(decode(EXACT(4), &r), SMCO_FORMAT);
	check_int(decode(EXACT(4 | 8, 0), &r), SMCO_FORMAT);
	check_int(decode(EXACT(4 | 16, 0), &r), SMCO_FORMAT);
	check_int(decode(EXACT(4 | 32, 0), &r), SMCO_FORMAT);
	check_int(decode(EXACT(4, 0), &r), SMCO_FORMAT);
	check_int(decode(EXACT(4, 0, 3, 1), &r), SMCO_FORMAT);
	check_int(decode(EXACT(4, 0, 3, 1, 2), &r), 0);
	/* An event without fields must be raw. */
	check_int(decode(EXACT(7, 0, 0), &r), SMCO_FORMAT);
	check_int(decode(EXACT(7 | 64, 0, 0), &r), 0);
	check(!r.payload && !r.payload_len);
	/* Raw: one byte short; longer than any may be. */
	check_int(decode(EXACT(7 | 64, 0, 2, 1), &r), SMCO_FORMAT);
	check_int(decode(EXACT(7 | 64, 0, 2, 1, 5), &r), 0);
	check_int(r.payload_len, 2);
	size_t len = CODEC_MAX_PAYLOAD + 1;
	struct bbuf b = {0};
	bbuf_varint(&b, 7 | 64);
	bbuf_varint(&b, 0);
	bbuf_varint(&b, len);
	bbuf_reserve(&b, len);
	memset(b.data + b.len, 0, len);
	check_int(decode(exact(b.data, b.len + len), &r), SMCO_FORMAT);
	bbuf_free(&b);
	/* pid of a process event: 33 bits */
	check_int(decode(EXACT(5, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x10), &r),
		  SMCO_FORMAT);
	check_int(decode(EXACT(5, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f), &r), 0);
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
static struct codec coder;

static void encode(uint32_t event, const void *payload, size_t len)
{
	codec_encode(&coder,
		     &(struct record){.event = event,
				      .time_ns = 1000 * event,
				      .cpu = UINT32_MAX,
				      .tid = 3,
				      .param = 9,
				      .payload = payload,
				      .payload_len = (uint32_t)len},
		     &coded);
}

/* If this fails the format has changed: see TRACE_VERSION and FORMAT.md. */
static void bytes(void)
{
	static const char want[] =
		"39e807000612ff1f8080808080e03f80409003050a0a06020406010101"
		"00ae1880409003050a0101"
		"22e8071249010206"
		"0200090102"
		"23e80712ff97010a080c0e10121416181a1d0a"
		"24e8071203801002"
		"25e8071207e724018204"
		"6063b0de051202aabb";
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
	char hex[1024] = "";
	for (size_t i = 0; i < coded.len && i < 500; i++)
		snprintf(hex + 2 * i, 3, "%02x", coded.data[i]);
	check_str(hex, want);
	bbuf_free(&coded);
}

int main(void)
{
	cursors();
	malformed_records();
	malformed_tables();
	bytes();
	exact("", 0);
	return tap_done();
}
