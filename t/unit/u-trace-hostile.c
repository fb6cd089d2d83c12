/*
 * A trace that was made to harm its reader: every checksum is right, what is
 * inside is not. Run under ASan and UBSan this is the test that lengths are
 * not believed.
 */
#include "t/unit/tap.h"

#include <unistd.h>

#include "reports/bytes.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-random.h"
#include "t/unit/trace-show.h"

/* With the sanitizers each takes several times as long; t/fuzz has them, too.
 */
#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 1000
#else
#define ROUNDS 6000
#endif

static uint8_t *file;
static size_t file_size;

static void wrong_but_signed(void)
{
	unsigned opened = 0, rounds = ROUNDS;
	uint8_t *data = malloc(file_size + 8);
	for (unsigned i = 0; i < rounds; i++) {
		memcpy(data, file, file_size);
		for (uint64_t n = 1 + random_below(4); n; n--) {
			size_t at = 64 + random_below(file_size - 64);
			data[at] =
				random_below(3) ? (uint8_t)random_u64() : 0xff;
		}
		show_sign(data, file_size);
		opened += show(data, file_size, i % 20 == 0);
	}
	free(data);
	check_int(opened, rounds);
}

/* One chunk of @type with random bytes, plain, behind a good header. */
static void noise(void)
{
	struct {
		uint8_t header[64];
		struct disk_chunk chunk;
		uint8_t body[256];
	} t;
	unsigned opened = 0, rounds = 3 * ROUNDS;
	memcpy(t.header, file, sizeof(t.header));
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t n = (uint32_t)random_below(sizeof(t.body));
		t.chunk = (struct disk_chunk){
			.magic = CHUNK_MAGIC,
			.type = (uint8_t)(1 + random_below(10)),
			.nr_items = (uint32_t)random_value(),
			.stored_size = n,
			.raw_size = n,
		};
		for (uint32_t j = 0; j < n; j++)
			t.body[j] = random_below(2) ? (uint8_t)random_below(8)
						    : (uint8_t)random_u64();
		size_t len = offsetof(typeof(t), body) + n;
		show_sign((uint8_t *)&t, len);
		opened += show((uint8_t *)&t, len, i % 20 == 0);
	}
	check_int(opened, rounds);
}

/* Sizes that would overflow, be allocated, or be read past the end. */
static void sizes(void)
{
	static const uint32_t size[] = {
		0, 1, 0x7fffffff, CHUNK_MAX, CHUNK_MAX + 1, UINT32_MAX};
	struct chunk_head h;
	unsigned opened = 0;
	for (size_t i = 0; i < ARRAY_SIZE(size); i++)
		for (size_t j = 0; j < ARRAY_SIZE(size); j++) {
			struct bbuf b = {0};
			bbuf_put(&b, file, 64);
			size_t next = show_chunk(file, file_size, 64, &h);
			h.stored_size = size[i];
			h.raw_size = size[j];
			chunk_head_write(&b, &h);
			bbuf_put(&b, file + 64 + h.size,
				 file_size - 64 - h.size);
			check(next < file_size);
			opened += show(b.data, b.len, true);
			bbuf_free(&b);
		}
	check_int(opened, ARRAY_SIZE(size) * ARRAY_SIZE(size));
}

/* A compressed chunk that is shorter than it says is damaged, no more. */
static void short_zstd(void)
{
	struct trace_reader *r = NULL;
	unsigned compressed = 0, noticed = 0;
	for (size_t at = sizeof(struct disk_header); at < file_size;) {
		struct chunk_head h;
		struct record record;
		struct bbuf b = {0};
		size_t next = show_chunk(file, file_size, at, &h);
		if (h.flags & CHUNK_ZSTD) {
			h.raw_size++;
			bbuf_put(&b, file, at);
			chunk_head_write(&b, &h);
			bbuf_put(&b, file + at + h.size,
				 file_size - at - h.size);
			trace_reader_open_mem(b.data, b.len, &r, NULL);
			while (trace_next(r, &record, NULL))
				;
			noticed += trace_nr_damaged(r) == 1;
			trace_reader_close(r);
			compressed++;
		}
		bbuf_free(&b);
		at = next;
	}
	check(compressed > 2);
	check_int(noticed, compressed);
}

/* A newer writer's file: refused where it must be, read where it can be. */
static void newer(void)
{
	struct trace_reader *r;
	struct smco_err err = {0};
	struct disk_header h;
	uint8_t *data = malloc(file_size);
	memcpy(data, file, file_size);
	memcpy(&h, data, sizeof(h));
	h.version = 99;
	h.crc = (uint32_t)crc32_z(0, (uint8_t *)&h,
				  offsetof(struct disk_header, crc));
	memcpy(data, &h, sizeof(h));
	check(show(data, file_size, true));
	h.oldest_readable = 99;
	h.crc = (uint32_t)crc32_z(0, (uint8_t *)&h,
				  offsetof(struct disk_header, crc));
	memcpy(data, &h, sizeof(h));
	check_int(trace_reader_open_mem(data, file_size, &r, &err), SMCO_NEWER);
	check(strstr(err.msg, "format 99 or newer"));
	h.oldest_readable = 1;
	h.features |= 1ULL << 40;
	h.crc = (uint32_t)crc32_z(0, (uint8_t *)&h,
				  offsetof(struct disk_header, crc));
	memcpy(data, &h, sizeof(h));
	check_int(trace_reader_open_mem(data, file_size, &r, &err), SMCO_NEWER);
	h.features &= ~(1ULL << 40);
	h.arch = 183;
	h.crc = (uint32_t)crc32_z(0, (uint8_t *)&h,
				  offsetof(struct disk_header, crc));
	memcpy(data, &h, sizeof(h));
	check_int(trace_reader_open_mem(data, file_size, &r, &err),
		  SMCO_FOREIGN);
	free(data);
}

/* A chunk in plain, for a file that is put together here. */
static void add_chunk(struct bbuf *to, uint8_t type, uint32_t nr,
		      const struct bbuf *body)
{
	struct disk_chunk h = {.magic = CHUNK_MAGIC,
			       .type = type,
			       .nr_items = nr,
			       .stored_size = (uint32_t)body->len,
			       .raw_size = (uint32_t)body->len};
	bbuf_put(to, &h, sizeof(h));
	bbuf_put(to, body->data, body->len);
}

/*
 * A writer of another version has more fields at the end of an event, or less,
 * and events of its own: what both know is there, and what only the file knows
 * is read by its schema.
 */
static void other_fields(uint32_t event, bool more)
{
	struct bbuf trace = {0}, schema = {0}, records = {0};
	struct trace_reader *r = NULL;
	struct record got;
	uint64_t want[2] = {5, more ? 9 : 0};
	char text[] = {1, 'e', 1, 'p'}, field[] = {1, 'f'};
	bbuf_varint(&schema, event);
	bbuf_put(&schema, text, sizeof(text));
	bbuf_varint(&schema, more ? 24 : 8); /* bytes */
	bbuf_varint(&schema, more ? 3 : 1);  /* fields, 8 bytes, plain */
	for (uint64_t i = 0; i < (more ? 3 : 1); i++) {
		bbuf_put(&schema, field, sizeof(field));
		bbuf_varint(&schema, 8 * i);
		bbuf_varint(&schema, 16);
		bbuf_put(&schema, "\0\0\0", 3);
	}
	bbuf_put(&records, "\0\5\0\0\1\0\3", 7); /* as in u-trace-codec */
	bbuf_varint(&records, event);
	bbuf_put(&records, more ? "\7\5\11\13" : "\1\5", more ? 4 : 2);
	bbuf_put(&trace, file, sizeof(struct disk_header));
	add_chunk(&trace, CHUNK_SCHEMA_4, 1, &schema);
	add_chunk(&trace, CHUNK_RECORDS, 1, &records);
	show_sign(trace.data, trace.len);
	check_int(trace_reader_open_mem(trace.data, trace.len, &r, NULL), 0);
	check_int(trace_next(r, &got, NULL), 1);
	check_int(got.event, event);
	if (event == EV_COVERAGE) {
		check_int(got.payload_len, sizeof(struct ev_coverage));
		check(!memcmp(got.payload, want, sizeof(want)));
	} else {
		check_int(got.payload_len, more ? 24 : 8);
		check(!memcmp(got.payload, want, 8));
	}
	trace_reader_close(r);
	bbuf_free(&trace);
	bbuf_free(&schema);
	bbuf_free(&records);
}

/* Control characters in a name do not reach the terminal. */
static void escapes(const char *path)
{
	struct trace_writer *w = NULL;
	trace_writer_create(path, 1, &w, NULL);
	trace_put_meta(w, "command",
		       "ls\033[2J\n\r\xff\xc2\x9b"
		       "31m");
	trace_put_meta(w, "hostname", "\033]0;title\a");
	trace_put_meta(w, "mechanism_why", "\xe2\x80\xae");
	trace_put_meta(w, "mechanism", "\177");
	struct trace_frame f = {.function = "a\033[31mb\xf0\x9f",
				.file = "\b.c"};
	trace_put_stack(w, 1, &f, 1);
	struct ev_nap nap = {.size = 1, .length_ns = 1, .alloc_stack = 1};
	SAMPLE_PUT(w, EV_NAP, 1, 1, nap);
	trace_writer_close(w, NULL);
	free(file);
	file = show_load(path, &file_size);
	check(show(file, file_size, true));
}

int main(void)
{
	const char *path = scratch_path("x.trace");
	sample_write(path, NULL);
	file = show_load(path, &file_size);
	check(show_sign(file, file_size) > 5);
	check(show(file, file_size, true));
	wrong_but_signed();
	noise();
	sizes();
	short_zstd();
	newer();
	other_fields(EV_COVERAGE, true);
	other_fields(EV_COVERAGE, false);
	other_fields(99, true);
	other_fields(99, false);
	escapes(path);
	free(file);
	return tap_done();
}
