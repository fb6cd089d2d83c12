/*
 * Records decoded ahead by a thread are those that the reader itself returns,
 * in its order, damage included; and its owner may stop at any of them.
 */
#include "t/unit/tap.h"

#include <unistd.h>

#include "reports/ahead.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-random.h"
#include "t/unit/trace-show.h"

#define NR     90000 /* several times what is decoded ahead */
#define NEVER  UINT64_MAX
#define ALWAYS 1

static uint8_t *file;
static size_t file_size;

static void write_trace(const char *path)
{
	static uint8_t payload[600], large[200000];
	struct trace_writer *w = NULL;
	struct record r;
	trace_writer_create(path, 1, &w, NULL);
	for (uint32_t i = 0; i < NR; i++) {
		random_record(&r, payload);
		if (i % 9000 == 1) { /* larger than what others have together */
			memset(large, (int)i, sizeof(large));
			r.payload = large;
			r.payload_len = sizeof(large);
		}
		put_surely(w, &r);
		if (i % 1000 == 999)
			trace_sync(w, NULL);
	}
	trace_writer_close(w, NULL);
}

static struct trace_reader *open_file(void)
{
	struct trace_reader *r = NULL;
	check_int(trace_reader_open_mem(file, file_size, &r, NULL), SMCO_OK);
	return r;
}

/* Both ways of reading, side by side; how many records there are. */
static unsigned compare(uint64_t at_least_bytes)
{
	struct trace_reader *r = open_file(), *s = open_file();
	struct ahead *a = ahead_begin(s, at_least_bytes);
	struct record want, got;
	unsigned nr = 0, nr_bad = 0, nr_damaged = 0;
	int rc, got_rc;
	do {
		rc = trace_next(r, &want, NULL);
		got_rc = ahead_next(a, &got);
		nr_bad +=
			rc != got_rc || (rc == 1 && !same_record(&want, &got));
		nr += rc == 1;
		nr_damaged += rc < 0;
	} while (rc && got_rc && !nr_bad);
	check_int(nr_bad, 0);
	check_int(ahead_next(a, &got), 0); /* again */
	ahead_end(a);
	check_int(trace_nr_lost(s), trace_nr_lost(r));
	check_int(trace_nr_damaged(s), trace_nr_damaged(r));
	check(!nr_damaged == !trace_nr_damaged(r));
	trace_reader_close(r);
	trace_reader_close(s);
	return nr;
}

static void stop_anywhere(void)
{
	static const unsigned after[] = {0, 1, 2047, 2048, 2049, 30000};
	struct trace_reader *r = open_file();
	struct record got;
	unsigned nr = 0;
	for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
		struct ahead *a = ahead_begin(r, ALWAYS);
		for (unsigned j = 0; j < after[i]; j++)
			nr += ahead_next(a, &got) == 1;
		ahead_end(a);
		trace_rewind(r);
	}
	check_int(nr, 1 + 2047 + 2048 + 2049 + 30000);
	for (nr = 0; trace_next(r, &got, NULL); nr++)
		;
	check_int(nr, NR);
	trace_reader_close(r);
	ahead_end(NULL);
}

int main(void)
{
	const char *path = scratch_path("ahead.trace");
	write_trace(path);
	file = show_load(path, &file_size);
	check(file && file_size);
	check_int(compare(ALWAYS), NR);
	check_int(compare(NEVER), NR); /* without a thread */
	stop_anywhere();
	for (size_t at = file_size / 7; at < file_size; at += file_size / 7)
		file[at] ^= 0x55;
	unsigned nr = compare(ALWAYS);
	check(nr > 0 && nr < NR);
	check_int(compare(NEVER), nr);
	free(file);
	unlink(path);
	return tap_done();
}
