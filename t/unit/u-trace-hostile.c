/*
 * A trace that was made to harm its reader: every checksum is right, what is
 * inside is not. Run under ASan and UBSan this is the test that lengths are
 * not believed.
 */
#include "t/unit/tap.h"

#include <unistd.h>

#include "t/unit/trace-random.h"
#include "t/unit/trace-show.h"

static uint8_t *file;
static size_t file_size;

static void wrong_but_signed(void)
{
	unsigned opened = 0, rounds = 6000;
	uint8_t *data = malloc(file_size + 8);
	for (unsigned i = 0; i < rounds; i++) {
		memcpy(data, file, file_size);
		for (uint64_t n = 1 + random_below(4); n; n--) {
			size_t at = 64 + random_below(file_size - 64);
			data[at] =
				random_below(3) ? (uint8_t)random_u64() : 0xff;
		}
		show_sign(data, file_size);
		opened += show(data, file_size);
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
	unsigned opened = 0, rounds = 20000;
	memcpy(t.header, file, sizeof(t.header));
	for (unsigned i = 0; i < rounds; i++) {
		uint32_t n = (uint32_t)random_below(sizeof(t.body));
		t.chunk = (struct disk_chunk){
			.magic = CHUNK_MAGIC,
			.type = (uint8_t)(1 + random_below(7)),
			.nr_items = (uint32_t)random_value(),
			.stored_size = n,
			.raw_size = n,
		};
		for (uint32_t j = 0; j < n; j++)
			t.body[j] = random_below(2) ? (uint8_t)random_below(8)
						    : (uint8_t)random_u64();
		size_t len = offsetof(typeof(t), body) + n;
		show_sign((uint8_t *)&t, len);
		opened += show((uint8_t *)&t, len);
	}
	check_int(opened, rounds);
}

/* Sizes that would overflow, be allocated, or be read past the end. */
static void sizes(void)
{
	static const uint32_t size[] = {
		0, 1, 0x7fffffff, CHUNK_MAX, CHUNK_MAX + 1, UINT32_MAX};
	uint8_t *data = malloc(file_size);
	unsigned opened = 0;
	for (size_t i = 0; i < ARRAY_SIZE(size); i++)
		for (size_t j = 0; j < ARRAY_SIZE(size); j++) {
			struct disk_chunk h;
			memcpy(data, file, file_size);
			memcpy(&h, data + 64, sizeof(h));
			h.stored_size = size[i];
			h.raw_size = size[j];
			h.header_crc = (uint32_t)crc32_z(
				0, (uint8_t *)&h,
				offsetof(struct disk_chunk, header_crc));
			memcpy(data + 64, &h, sizeof(h));
			opened += show(data, file_size);
		}
	free(data);
	check_int(opened, ARRAY_SIZE(size) * ARRAY_SIZE(size));
}

/* A compressed chunk that is shorter than it says is damaged, no more. */
static void short_zstd(void)
{
	struct trace_reader *r = NULL;
	unsigned compressed = 0, noticed = 0;
	uint8_t *data = malloc(file_size);
	for (size_t at = sizeof(struct disk_header); at < file_size;) {
		struct disk_chunk h;
		struct record record;
		memcpy(data, file, file_size);
		memcpy(&h, data + at, sizeof(h));
		size_t next = at + sizeof(h) + h.stored_size;
		if (h.flags & CHUNK_ZSTD) {
			h.raw_size++;
			memcpy(data + at, &h, sizeof(h));
			show_sign(data, file_size);
			trace_reader_open_mem(data, file_size, &r, NULL);
			while (trace_next(r, &record, NULL))
				;
			noticed += trace_nr_damaged(r) == 1;
			trace_reader_close(r);
			compressed++;
		}
		at = next;
	}
	free(data);
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
	check(show(data, file_size));
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

/* Fields a later version adds to an event are stepped over. */
static void more_fields(void)
{
	struct codec enc = {0}, dec = {0};
	struct bbuf out = {0}, payload = {0};
	struct ev_coverage c = {7, 9};
	struct record r = {.event = EV_COVERAGE,
			   .payload_len = sizeof(c),
			   .payload = &c},
		      got;
	codec_encode(&enc, &r, &out);
	/* The last three bytes: presence, 7, 9; then fields 2 and 62. */
	check_int(out.data[out.len - 3], 3);
	out.len -= 3;
	bbuf_varint(&out, 3 | 1ULL << 2 | 1ULL << 62);
	bbuf_varint(&out, 7);
	bbuf_varint(&out, 9);
	bbuf_varint(&out, UINT64_MAX);
	bbuf_varint(&out, 1);
	codec_encode(&enc, &r, &out);
	struct cursor at = {out.data, out.len, 0};
	check_int(codec_decode(&dec, &at, &payload, &got), 0);
	check_int(got.payload_len, sizeof(c));
	check(!memcmp(got.payload, &c, sizeof(c)));
	check_int(codec_decode(&dec, &at, &payload, &got), 0);
	check(!memcmp(got.payload, &c, sizeof(c)));
	check(cursor_at_end(&at));
	bbuf_free(&out);
	bbuf_free(&payload);
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
	check(show(file, file_size));
}

int main(void)
{
	char path[] = "/tmp/u-hostile-XXXXXX";
	close(mkstemp(path));
	sample_write(path, NULL);
	file = show_load(path, &file_size);
	check(show_sign(file, file_size) > 5);
	check(show(file, file_size));
	wrong_but_signed();
	noise();
	sizes();
	short_zstd();
	newer();
	more_fields();
	escapes(path);
	show_unlink(path);
	free(file);
	return tap_done();
}
