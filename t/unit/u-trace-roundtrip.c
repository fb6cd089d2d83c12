/*
 * What a trace gives back is exactly what was put in. `u-trace-roundtrip PATH`
 * writes the random records to PATH, for the shell tests.
 */
#include "t/unit/tap.h"

#include <sys/stat.h>
#include <unistd.h>

#include "reports/disk.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-random.h"
#include "t/unit/trace-show.h"

#define NR 20000

static struct record want[NR];
static uint8_t *payloads;
static const char *path;

static void fill(void)
{
	payloads = malloc((size_t)NR * 600);
	for (size_t i = 0; i < NR; i++)
		random_record(&want[i], payloads + i * 600);
}

/* Payloads of the first @nr become such as the schema has, without which a
 * chunk is not modelled. */
static void fit(size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct schema_event *e = schema_event(want[i].event);
		uint8_t *payload = payloads + i * 600;
		for (size_t j = want[i].payload_len; e && j < e->size; j++)
			payload[j] = (uint8_t)random_value();
		want[i].payload_len = e ? (uint32_t)e->size : 0;
		want[i].payload = e ? payload : NULL;
		/* Some threads and parameters come again, as they do. */
		if (i % 2) {
			want[i].tid %= 5;
			want[i].param %= 50;
		}
	}
}

/* How many chunks of @type have @flag. */
static unsigned nr_flagged(unsigned type, unsigned flag)
{
	struct chunk_head h;
	unsigned nr = 0;
	size_t size = 0;
	uint8_t *file = show_load(path, &size);
	for (size_t at = sizeof(struct disk_header); at < size;) {
		at = show_chunk(file, size, at, &h);
		nr += h.type == type && h.flags & flag;
	}
	free(file);
	return nr;
}

static void write_all(uint64_t flush_every)
{
	struct trace_writer *w = NULL;
	struct smco_err err = {0};
	check_int(trace_writer_create(path, 5, &w, &err), 0);
	size_t bad = 0;
	for (size_t i = 0; i < NR; i++) {
		bad += put_surely(w, &want[i]) != 0;
		if (random_below(flush_every) == 0)
			bad += trace_flush(w, &err) != 0;
	}
	check_int(bad, 0);
	check_int(trace_writer_close(w, &err), 0);
}

static void read_all(void)
{
	struct trace_reader *r = NULL;
	struct smco_err err = {0};
	struct record got;
	size_t n = 0, same = 0, unaligned = 0;
	int rc;
	check_int(trace_reader_open(path, &r, &err), 0);
	while ((rc = trace_next(r, &got, &err)) > 0) {
		if (n < NR)
			same += same_record(&got, &want[n]);
		unaligned += got.payload && (uintptr_t)got.payload % 8;
		n++;
	}
	check_int(rc, 0);
	check_int(n, NR);
	check_int(same, NR);
	check_int(unaligned, 0);
	check_int(trace_nr_damaged(r), 0);
	check_int(trace_nr_lost(r), 0);
	check(!trace_is_truncated(r));
	trace_reader_close(r);
}

static struct trace_frame frame(const char *function, uint32_t line)
{
	return (struct trace_frame){
		.function = function,
		.file = line ? "/src/prog.c" : "",
		.line = line,
		.module = "/usr/bin/prog",
		.build_id = "00ff",
		.offset = 0x1000ULL + line,
		.inlined = line == 7,
	};
}

static void tables(void)
{
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	struct smco_err err = {0};
	check_int(trace_writer_create(path, 5, &w, &err), 0);
	trace_put_meta(w, "command", "first");
	trace_put_meta(w, "empty", "");
	struct trace_frame f[3] = {
		frame("inner", 7), frame("outer", 8), {.offset = UINT64_MAX}};
	trace_put_stack(w, 9, f, 3);
	trace_put_stack(w, UINT32_MAX, f + 1, 1);
	trace_put_stack(w, 4, f, 0);
	trace_flush(w, &err);
	trace_put_meta(w, "command", "second");
	trace_put_stack(w, UINT32_MAX, f, 2); /* the later definition wins */
	static struct trace_frame deep[3000];
	for (size_t i = 0; i < 3000; i++)
		deep[i] = frame("deep", (uint32_t)i + 10);
	trace_put_stack(w, 77, deep, 3000);
	check_int(trace_writer_close(w, &err), 0);

	check_int(trace_reader_open(path, &r, &err), 0);
	check_str(trace_meta(r, "command"), "second");
	check_str(trace_meta(r, "empty"), "");
	check(!trace_meta(r, "nothing"));
	const char *key, *value;
	check(trace_meta_at(r, 1, &key, &value) && !strcmp(key, "empty"));
	check(!trace_meta_at(r, 2, &key, &value));

	size_t nr;
	const struct trace_frame *s = trace_stack(r, 9, &nr);
	check_int(nr, 3);
	check_str(s[0].function, "inner");
	check_str(s[0].file, "/src/prog.c");
	check_str(s[0].module, "/usr/bin/prog");
	check_str(s[0].build_id, "00ff");
	check_int(s[0].line, 7);
	check(s[0].inlined && !s[1].inlined);
	check_int(s[1].offset, 0x1008);
	check_str(s[2].function, "");
	check_str(s[2].file, "");
	check(s[2].offset == UINT64_MAX);
	s = trace_stack(r, UINT32_MAX, &nr);
	check_int(nr, 2);
	check_str(s[0].function, "inner");
	check(trace_stack(r, 4, &nr) && nr == 0);
	check(!trace_stack(r, 5, &nr));
	s = trace_stack(r, 77, &nr);
	check_int(nr, 1024);
	check_int(s[1023].line, 1033);
	trace_reader_close(r);
}

static void many_names(void)
{
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	struct smco_err err = {0};
	char name[64];
	check_int(trace_writer_create(path, 5, &w, &err), 0);
	for (uint32_t i = 1; i <= 30000; i++) {
		snprintf(name, sizeof(name), "function_number_%u", i);
		struct trace_frame f[2] = {frame(name, i), frame("main", 3)};
		trace_put_stack(w, i * 7, f, 2);
	}
	check_int(trace_writer_close(w, &err), 0);
	check_int(trace_reader_open(path, &r, &err), 0);
	size_t wrong = 0;
	for (uint32_t i = 1; i <= 30000; i++) {
		size_t nr = 0;
		snprintf(name, sizeof(name), "function_number_%u", i);
		const struct trace_frame *s = trace_stack(r, i * 7, &nr);
		wrong += !s || nr != 2 || strcmp(s[0].function, name) ||
			 s[0].line != i || strcmp(s[1].function, "main");
	}
	check_int(wrong, 0);
	trace_reader_close(r);
}

/* What a nap costs on disk, in a session as they are: some sizes, a few
 * hundred stacks, naps that end one after the other. */
static void size_of_naps(void)
{
	struct trace_writer *w = NULL;
	struct trace_stats stats;
	uint64_t now = 0;
	const uint32_t nr = 20000;
	check_int(trace_writer_create(path, 5, &w, NULL), 0);
	for (uint32_t i = 0; i < nr; i++) {
		now += random_below(20 * NSEC_PER_MSEC);
		uint64_t length = 2 * NSEC_PER_SEC + random_below(NSEC_PER_SEC);
		uint32_t stack = 1 + (uint32_t)random_below(300);
		struct ev_nap nap = {
			.addr = 0x7f0000000000 + random_below(1 << 20) * 4096,
			.size = 8192 << stack % 8,
			.start_ns = now - length,
			.length_ns = length,
			.error_ns = 5 * NSEC_PER_MSEC,
			.alloc_ns = now - length - random_below(NSEC_PER_SEC),
			.pid = 4711,
			.alloc_stack = stack,
			.ended_stack = 300 + stack % 7,
			.ended_syscall = -1,
			.flags = NAP_ENDED_READ,
		};
		trace_put(w, &(struct record){.event = EV_NAP,
					      .time_ns = now,
					      .cpu = UINT32_MAX,
					      .param = i,
					      .payload = &nap,
					      .payload_len = sizeof(nap)});
	}
	trace_sync(w, NULL);
	trace_writer_stats(w, &stats);
	trace_writer_close(w, NULL);
	check_int(stats.nr_records, nr);
	printf("# a nap: %zu bytes in memory, %.1f coded, %.1f on disk\n",
	       sizeof(struct ev_nap) + 28, (double)stats.record_raw_bytes / nr,
	       (double)stats.record_stored_bytes / nr);
	check(stats.record_raw_bytes < 40 * nr);
	check(stats.record_stored_bytes <= stats.record_raw_bytes);
}

/* Streams that a coder may stumble over: what must not be foretold, more
 * events than slots, all fields at their edges, times that run back. */
static void adversarial(void)
{
	static const uint32_t edge[] = {
		0, 1, 2, 0x7fffffff, 0x80000000, UINT32_MAX - 1, UINT32_MAX};
	const size_t n = ARRAY_SIZE(edge);
	for (size_t i = 0; i < NR; i++) {
		struct record *r = &want[i];
		uint64_t *field = (uint64_t *)(payloads + i * 600);
		*r = (struct record){.event = edge[i / 3 % n],
				     .time_ns = i % 5 ? i * 100 : UINT64_MAX,
				     .cpu = edge[i / 5 % n],
				     .tid = edge[i / 7 % n],
				     .param = edge[i * i % n]};
		if (i % 2)
			r->event = 1 + (uint32_t)(i / 2 % 40);
		if (i % 1000 == 999)
			r->time_ns = 0;
		const struct schema_event *e = schema_event(r->event);
		r->payload_len = e ? (uint32_t)e->size : 0;
		if (i % 11 == 3)
			r->payload_len = i % 2 ? 0 : 7;
		for (size_t j = 0; j < r->payload_len; j += 8)
			*field++ = i % 3 ? UINT64_MAX << (i + j) % 64 : i;
		r->payload = r->payload_len ? payloads + i * 600 : NULL;
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		path = argv[1];
		fill();
		fit(2000);
		write_all(300);
		return tap_done();
	}
	path = scratch_path("x.trace");
	fill();
	write_all(NR * 2); /* chunks by size only */
	read_all();
	write_all(50);
	read_all();
	fit(NR);
	write_all(50);
	read_all();
	check(nr_flagged(CHUNK_RECORDS, CHUNK_MODELLED) > 1);
	adversarial();
	write_all(NR * 2);
	read_all();
	write_all(50);
	read_all();
	fit(NR);
	write_all(2000);
	read_all();
	check(nr_flagged(CHUNK_RECORDS, CHUNK_MODELLED) > 1);
	tables();
	check_int(nr_flagged(CHUNK_STACKS, CHUNK_MODELLED), 2);
	many_names();
	size_of_naps();
	free(payloads);
	return tap_done();
}
