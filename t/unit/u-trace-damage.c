/*
 * A damaged trace: whatever byte is wrong or missing, the reader notices,
 * loses one chunk and those that continue it at most, and returns no record
 * that was not written.
 */
#include "t/unit/tap.h"

#include <malloc.h>
#include <unistd.h>

#include "reports/disk.h"
#include "reports/summary.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-random.h"
#include "t/unit/trace-show.h"

#ifdef __SANITIZE_ADDRESS__
/* Thousands of readers, and each would get memory that nobody has had yet. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:"
	       "allocator_release_to_os_interval_ms=-1";
}
#endif

#define CHUNKS	  4
#define PER_CHUNK 10
#define NR	  (CHUNKS * PER_CHUNK)

static struct record want[NR];
static uint8_t payloads[NR][600];
static uint8_t *file;
static size_t file_size;

static void write_trace(const char *path)
{
	struct trace_writer *w = NULL;
	struct trace_frame f = {.function = "f",
				.file = "f.c",
				.line = 1,
				.module = "/bin/f",
				.build_id = "00",
				.offset = 16};
	trace_writer_create(path, 1, &w, NULL);
	trace_put_meta(w, "command", "f");
	for (uint32_t i = 0; i < NR; i++) {
		random_record(&want[i], payloads[i]);
		/* A payload that the schema has, so that chunks are modelled,
		 * and ids that cannot be mistaken for one another. */
		const struct schema_event *e = schema_event(want[i].event);
		memset(payloads[i], (int)random_below(256), 600);
		want[i].payload_len = e ? (uint32_t)e->size : 0;
		want[i].payload = e ? payloads[i] : NULL;
		want[i].param = 1000 + i;
		f.line = i;
		if (i % PER_CHUNK == 0)
			trace_put_stack(w, i, &f, 1);
		trace_put(w, &want[i]);
		if (i % PER_CHUNK == PER_CHUNK - 1)
			trace_sync(w, NULL);
	}
	trace_writer_close(w, NULL);
}

struct outcome {
	int open_code;
	unsigned whole;	       /* chunks of which all records came */
	unsigned partial;      /* chunks of which some came: must be 0 */
	unsigned foreign;      /* records that were never written */
	unsigned whole_prefix; /* whole chunks before the first one missing */
	uint64_t damaged, lost;
	bool truncated;
};

static struct outcome read_trace(const uint8_t *data, size_t len)
{
	struct outcome o = {0};
	struct trace_reader *r;
	struct record got;
	unsigned seen[CHUNKS] = {0};
	size_t nr;
	int rc;
	o.open_code = trace_reader_open_mem(data, len, &r, NULL);
	if (o.open_code)
		return o;
	while ((rc = trace_next(r, &got, NULL)) != 0) {
		uint32_t i = got.param - 1000;
		if (rc < 0)
			continue;
		if (i < NR && same_record(&got, &want[i]))
			seen[i / PER_CHUNK]++;
		else
			o.foreign++;
	}
	for (unsigned i = 0; i < CHUNKS; i++) {
		o.whole += seen[i] == PER_CHUNK;
		o.partial += seen[i] && seen[i] != PER_CHUNK;
		if (o.whole_prefix == i && seen[i] == PER_CHUNK)
			o.whole_prefix++;
		trace_stack(r, i * PER_CHUNK, &nr);
	}
	o.damaged = trace_nr_damaged(r);
	o.lost = trace_nr_lost(r);
	o.truncated = trace_is_truncated(r);
	trace_reader_close(r);
	return o;
}

static void whole(void)
{
	struct outcome o = read_trace(file, file_size);
	check_int(o.whole, CHUNKS);
	check_int(o.damaged, 0);
	check(!o.truncated);
}

static void cut_at_every_byte(void)
{
	unsigned foreign = 0, partial = 0, unnoticed = 0, holes = 0, less = 0;
	unsigned last = 0, most = 0;
	for (size_t len = 0; len < file_size; len++) {
		/* In memory of its own, so that ASan sees a step too far. */
		uint8_t *part = malloc(len ? len : 1);
		memcpy(part, file, len);
		struct outcome o = read_trace(part, len);
		free(part);
		if (o.open_code) {
			unnoticed += len >= 64;
			continue;
		}
		foreign += o.foreign;
		partial += o.partial;
		holes += o.whole != o.whole_prefix;
		less += o.whole < last;
		unnoticed += !o.truncated;
		last = o.whole;
		if (o.whole > most)
			most = o.whole;
	}
	check_int(foreign, 0);
	check_int(partial, 0);
	check_int(holes, 0);
	check_int(less, 0);
	check_int(unnoticed, 0);
	check_int(most, CHUNKS);
}

/* Where the last records end: the index and the end chunk follow. */
static size_t end_of_records(void)
{
	size_t end = 0;
	struct chunk_head h;
	for (size_t at = sizeof(struct disk_header); at < file_size;) {
		at = show_chunk(file, file_size, at, &h);
		if (h.type == CHUNK_RECORDS)
			end = at;
	}
	return end;
}

/* How many record chunks end before @at. */
static unsigned nr_before(size_t at)
{
	unsigned nr = 0;
	struct chunk_head h;
	for (size_t pos = sizeof(struct disk_header); pos < file_size;) {
		pos = show_chunk(file, file_size, pos, &h);
		nr += h.type == CHUNK_RECORDS && pos <= at;
	}
	return nr;
}

/* Are all record chunks there, or, if @at is in one, those before it? */
static bool is_as_hit(const struct outcome *o, size_t at)
{
	bool in_one = false;
	struct chunk_head h;
	for (size_t pos = sizeof(struct disk_header); pos <= at;) {
		pos = show_chunk(file, file_size, pos, &h);
		in_one = h.type == CHUNK_RECORDS;
	}
	unsigned want_whole = in_one ? nr_before(at) : CHUNKS;
	return o->whole == want_whole && o->whole_prefix == want_whole;
}

/* Each bit of a byte in turn, two or three of each byte; all of them would take
 * a minute. Sanitizers take some times as long. */
#ifdef __SANITIZE_ADDRESS__
#define BIT_STEP 7
#else
#define BIT_STEP 3
#endif

static void flip_bits(void)
{
	unsigned foreign = 0, partial = 0, unnoticed = 0, too_many = 0;
	unsigned refused = 0, wrong_loss = 0;
	const size_t end = end_of_records();
	for (size_t i = 0; i < file_size * 8; i += BIT_STEP) {
		file[i / 8] ^= (uint8_t)(1 << i % 8);
		struct outcome o = read_trace(file, file_size);
		file[i / 8] ^= (uint8_t)(1 << i % 8);
		if (o.open_code) {
			refused++;
			unnoticed += i / 8 >= 8; /* only the magic may */
			continue;
		}
		foreign += o.foreign;
		partial += o.partial;
		too_many += !is_as_hit(&o, i / 8);
		unnoticed += !o.damaged && !o.truncated;
		/* Unless the grand total itself may be hit. */
		wrong_loss +=
			i / 8 < end && o.lost != (CHUNKS - o.whole) * PER_CHUNK;
	}
	check_int(foreign, 0);
	check_int(partial, 0);
	check_int(too_many, 0);
	check_int(unnoticed, 0);
	check_int(refused, (64 + BIT_STEP - 1) / BIT_STEP);
	check_int(wrong_loss, 0);
}

/* A piece in the middle is gone; what stands around it is found again. */
static void holes(void)
{
	unsigned foreign = 0, unnoticed = 0, none = 0;
	uint8_t *holed = malloc(file_size);
	for (size_t at = 64; at + 50 < file_size; at++) {
		memcpy(holed, file, at);
		memcpy(holed + at, file + at + 50, file_size - at - 50);
		struct outcome o = read_trace(holed, file_size - 50);
		foreign += o.foreign;
		unnoticed += !o.damaged && !o.truncated;
		none += o.whole_prefix < nr_before(at);
	}
	free(holed);
	check_int(foreign, 0);
	check_int(unnoticed, 0);
	check_int(none, 0);
}

/* Something stands behind the end, or the end is gone and a chunk is bad. */
static void ends(void)
{
	const size_t end = end_of_records();
	uint8_t *longer = malloc(file_size + 40);
	memcpy(longer, file, file_size);
	memset(longer + file_size, 'S', 40);
	struct outcome o = read_trace(longer, file_size + 40);
	check_int(o.whole, CHUNKS);
	check(o.truncated);
	longer[end - 1] ^= 1; /* in the last records */
	o = read_trace(longer, end);
	free(longer);
	check_int(o.whole, CHUNKS - 1);
	check_int(o.lost, PER_CHUNK);
	check_int(o.damaged, 1);
	check(o.truncated);
}

#define LONG_CHUNKS 150

/* Of a long row of chunks a damaged one takes those along that continue it, and
 * no others: sooner or later one starts afresh. So does one that says
 * @otherwise how it is modelled than those that it continues. */
static void rows(const char *path, bool otherwise)
{
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	struct chunk_head h;
	struct record got, one = {.event = 77, .cpu = 1, .tid = 5};
	size_t hit = 0, afresh = 0, nr = 0;
	trace_writer_create(path, 1, &w, NULL);
	for (uint32_t i = 0; i < LONG_CHUNKS * PER_CHUNK; i++) {
		one.param = i;
		one.time_ns = 1000 * i;
		trace_put(w, &one);
		if (i % PER_CHUNK == PER_CHUNK - 1)
			trace_sync(w, NULL);
	}
	trace_writer_close(w, NULL);
	free(file);
	file = show_load(path, &file_size);
	check(file && file_size);
	for (size_t at = sizeof(struct disk_header); at < file_size; nr++) {
		size_t start = at;
		at = show_chunk(file, file_size, at, &h);
		nr -= h.type != CHUNK_RECORDS;
		if (h.type == CHUNK_RECORDS && nr == 10) {
			hit = nr;
			if (otherwise) {
				file[start + 2] ^= CHUNK_MODELLED_7 << 4;
				chunk_head_sign(file + start, &h);
			} else {
				file[at - 1] ^= 1;
			}
		}
		if (h.type == CHUNK_RECORDS && hit && !h.back && !afresh)
			afresh = nr;
	}
	check_int(nr, LONG_CHUNKS);
	check(afresh > hit && afresh < LONG_CHUNKS);
	check_int(trace_reader_open_mem(file, file_size, &r, NULL), 0);
	for (int again = 0; again < 2; again++) {
		size_t n = 0, wrong = 0, lost = (afresh - hit) * PER_CHUNK;
		for (int rc; (rc = trace_next(r, &got, NULL)) != 0;) {
			size_t i = n < hit * PER_CHUNK ? n : n + lost;
			n += rc > 0;
			wrong += rc > 0 && got.param != i;
		}
		check_int(wrong, 0);
		check_int(n, LONG_CHUNKS * PER_CHUNK - lost);
		check_int(trace_nr_lost(r), lost);
		check_int(trace_nr_damaged(r), afresh - hit);
		trace_rewind(r);
	}
	trace_reader_close(r);
}

static void not_traces(void)
{
	struct smco_err err = {0};
	struct trace_reader *r = NULL;
	check_int(trace_reader_open_mem("", 0, &r, &err), SMCO_EMPTY);
	check_str(err.msg, "not a trace but empty");
	char text[200];
	memset(text, 'x', sizeof(text));
	check_int(trace_reader_open_mem(text, sizeof(text), &r, NULL),
		  SMCO_FORMAT);
	check_int(trace_reader_open("/nonexistent/x.trace", &r, &err),
		  SMCO_NOTFOUND);
	check_int(trace_reader_open("/tmp", &r, &err), SMCO_SYS);
}

int main(void)
{
	const char *path = scratch_path("x.trace");
	/* Thousands of readers: memory that is given back is zeroed anew. */
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	mallopt(M_MMAP_THRESHOLD, 256 << 20);
	random_state = 42;
	write_trace(path);
	file = show_load(path, &file_size);
	check(file && file_size);
	whole();
	cut_at_every_byte();
	flip_bits();
	holes();
	ends();
	rows(path, false);
	rows(path, true);
	not_traces();
	free(file);
	return tap_done();
}
