/*
 * What the trace format takes and how fast it is, beside 24-byte records
 * through zstd -3 and what CTF would need.
 *
 *	codec-bench size FILE...    traces, or plain 24-byte records (*.plain)
 *	codec-bench speed N [FILE]  write N made-up events, read them again
 *
 * Plain records are {event 32, time 64, cpu 32, thread 32, parameter 32},
 * little-endian. CTF: a compact header of 4 bytes (5 bits id, 27 bits time),
 * the thread as context and the parameter, 4 bytes each, and the payload; what
 * its packets and extended headers take besides is left out. Here: the whole
 * file but strings, frames and names, which are symbols. CTF and zstd have no
 * stacks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <zstd.h>

#include "reports/bytes.h"
#include "reports/chunk-head.h"
#include "reports/disk.h"
#include "reports/trace.h"

#define CTF_HEADER 12

static const char *trace_path = "codec-bench.trace";

static void die(const char *what)
{
	fprintf(stderr, "codec-bench: %s\n", what);
	exit(1);
}

/* Of this thread: what others do on a busy machine does not count. */
#define OWN_CLOCK CLOCK_THREAD_CPUTIME_ID

static double cpu_seconds(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Put @r; wait where a tracer would drop. Returns how often it had to. */
static uint64_t put(struct trace_writer *w, const struct record *r)
{
	uint64_t waits = 0;
	int rc;
	while ((rc = trace_put(w, r)) == SMCO_BUSY) {
		waits++;
		trace_sync(w, NULL);
	}
	if (rc)
		die("cannot write");
	return waits;
}

/* ----------------------------------------------------------------- sizes ---
 */

struct sums {
	uint64_t nr, payload;
	struct bbuf plain;
};

static void count(struct sums *s, const struct record *r)
{
	s->nr++;
	s->payload += r->payload_len;
	bbuf_put(&s->plain, &r->event, 4);
	bbuf_put(&s->plain, &r->time_ns, 8);
	bbuf_put(&s->plain, &r->cpu, 4);
	bbuf_put(&s->plain, &r->tid, 4);
	bbuf_put(&s->plain, &r->param, 4);
	bbuf_put(&s->plain, r->payload, r->payload_len);
}

/* Bytes of the file without symbols: strings, frames, and what frames are. */
struct parts {
	uint64_t records, stacks, rest;
};

static struct parts parts_of(const char *path)
{
	struct chunk_head h;
	uint8_t bytes[CHUNK_HEAD_MAX];
	struct parts sum = {.rest = sizeof(struct disk_header)};
	uint64_t at = sum.rest, size;
	FILE *f = fopen(path, "r");
	if (!f)
		die("cannot read what was written");
	for (; !fseek(f, (long)at, SEEK_SET); at += size) {
		size_t n = fread(bytes, 1, sizeof(bytes), f);
		if (!chunk_head_read(bytes, n, &h))
			break;
		size = h.size + h.stored_size;
		if (h.type == CHUNK_RECORDS)
			sum.records += size;
		else if (h.type == CHUNK_STACKS)
			sum.stacks += size;
		else if (h.type != CHUNK_STRINGS && h.type != CHUNK_FRAMES &&
			 h.type != CHUNK_NAMES)
			sum.rest += size;
	}
	fclose(f);
	return sum;
}

static void show(const char *name, struct sums *s, const char *path)
{
	size_t bound = ZSTD_compressBound(s->plain.len);
	void *to = malloc(bound);
	double n = s->nr ? (double)s->nr : 1;
	size_t zstd = ZSTD_compress(to, bound, s->plain.data, s->plain.len, 3);
	struct parts parts = parts_of(path);
	double ours = (double)(parts.records + parts.stacks + parts.rest) / n;
	double logical = 24 + (double)s->payload / n;
	double ctf = CTF_HEADER + (double)s->payload / n;
	printf("%-16s %9llu  %7.1f  %7.2f  %7.2f  %7.2f  %7.2f  %7.2f  %7.2f"
	       "  %5.1f %%\n",
	       name, (unsigned long long)s->nr, logical, ctf, (double)zstd / n,
	       ours, (double)parts.records / n, (double)parts.stacks / n,
	       (double)parts.rest / n, 100 * ours / logical);
	free(to);
	bbuf_free(&s->plain);
}

static void size_of_trace(const char *path)
{
	struct trace_reader *r;
	struct record record;
	struct sums s = {0};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	if (trace_reader_open(path, &r, NULL))
		die("not a trace");
	while (trace_next(r, &record, NULL) > 0)
		count(&s, &record);
	trace_reader_close(r);
	show(name, &s, path);
}

static void size_of_plain(const char *path)
{
	struct trace_writer *w;
	uint8_t b[24];
	struct sums s = {0};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	FILE *f = fopen(path, "r");
	if (!f || trace_writer_create(trace_path, 0, &w, NULL))
		die("cannot open");
	while (fread(b, sizeof(b), 1, f) == 1) {
		struct record r = {0};
		memcpy(&r.event, b, 4);
		memcpy(&r.time_ns, b + 4, 8);
		memcpy(&r.cpu, b + 12, 4);
		memcpy(&r.tid, b + 16, 4);
		memcpy(&r.param, b + 20, 4);
		count(&s, &r);
		put(w, &r);
	}
	fclose(f);
	trace_writer_close(w, NULL);
	show(name, &s, trace_path);
}

static int sizes(int nr, char **path)
{
	printf("bytes an event    events  logical    CTF>=   zstd-3     here  "
	       "records   stacks     rest  of logical\n");
	for (int i = 0; i < nr; i++) {
		size_t n = strlen(path[i]);
		if (n > 6 && !strcmp(path[i] + n - 6, ".plain"))
			size_of_plain(path[i]);
		else
			size_of_trace(path[i]);
	}
	return 0;
}

/* ----------------------------------------------------------------- speed ---
 */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Events as monitors see them: four threads on two processors, in turns of
 * some hundred events; twenty kinds in loops; parameters that stay, count, go
 * in circles or jump; 50 ns to 2 us between them. */
static void make(struct record *r, uint64_t i, uint64_t *state, uint64_t *now)
{
	uint64_t x = next_random(state);
	uint32_t turn = (uint32_t)(i >> 8);
	*now += 50 + (x & (x >> 32 & 1023) & 2047);
	r->time_ns = *now;
	r->tid = 4711 + turn % 4;
	r->cpu = turn % 2;
	r->event = 100 + (uint32_t)(i % 7 + turn % 3);
	switch (i % 7) {
	case 0:
		r->param = 8192;
		break;
	case 1:
		r->param = (uint32_t)(i / 7);
		break;
	case 2:
		r->param = (uint32_t)(i / 7 % 13) * 4096;
		break;
	case 3:
		r->param = (uint32_t)(x >> 40 & 0xff);
		break;
	default:
		r->param = 3;
	}
}

#define RING 2048 /* events made up in advance; they stay in the cache */

static void write_events(uint64_t nr)
{
	static struct record ring[RING];
	struct trace_writer *w;
	struct trace_stats stats;
	uint64_t state = 88172645463325252u, now = 0, waits = 0;
	uint64_t calls_ns = 0, make_ns = 0;
	if (trace_writer_create(trace_path, 0, &w, NULL))
		die("cannot write");
	double cpu = cpu_seconds();
	uint64_t start = smco_now_ns();
	for (uint64_t done = 0; done < nr;) {
		/* Making them up is not what is measured. */
		uint64_t n = nr - done < RING ? nr - done : RING;
		uint64_t t0 = smco_clock_ns(OWN_CLOCK);
		for (uint64_t i = 0; i < n; i++)
			make(&ring[i], done + i, &state, &now);
		uint64_t t1 = smco_clock_ns(OWN_CLOCK);
		for (uint64_t i = 0; i < n; i++)
			waits += put(w, &ring[i]);
		make_ns += t1 - t0;
		calls_ns += smco_clock_ns(OWN_CLOCK) - t1;
		done += n;
	}
	trace_sync(w, NULL);
	cpu = cpu_seconds() - cpu - (double)make_ns / 1e9;
	double wall = (double)(smco_now_ns() - start) / 1e9;
	trace_writer_stats(w, &stats);
	if (trace_writer_close(w, NULL))
		die("cannot write");
	printf("writing  %.1f M events/s of CPU time, both threads; a call "
	       "%.1f ns; %.1f s as it went, waited %llu times\n",
	       (double)nr / cpu / 1e6, (double)calls_ns / (double)nr, wall,
	       (unsigned long long)waits);
	printf("         %.2f bytes an event coded, %.2f in the file\n",
	       (double)stats.record_raw_bytes / (double)nr,
	       (double)stats.record_stored_bytes / (double)nr);
}

static void read_events(uint64_t nr)
{
	struct trace_reader *r;
	struct record got, want = {0};
	struct rusage u;
	uint64_t state = 88172645463325252u, now = 0, wrong = 0, n = 0;
	double cpu = cpu_seconds();
	if (trace_reader_open(trace_path, &r, NULL))
		die("cannot read");
	while (trace_next(r, &got, NULL) > 0)
		n++;
	cpu = cpu_seconds() - cpu;
	trace_reader_close(r);
	printf("reading  %.1f M events/s\n", (double)n / cpu / 1e6);
	if (trace_reader_open(trace_path, &r, NULL))
		die("cannot read");
	for (uint64_t i = 0; trace_next(r, &got, NULL) > 0; i++) {
		make(&want, i, &state, &now);
		wrong += got.event != want.event ||
			 got.time_ns != want.time_ns || got.cpu != want.cpu ||
			 got.tid != want.tid || got.param != want.param;
	}
	trace_reader_close(r);
	getrusage(RUSAGE_SELF, &u);
	printf("         %llu of %llu, %llu not as written; %ld MiB of memory "
	       "at most\n",
	       (unsigned long long)n, (unsigned long long)nr,
	       (unsigned long long)wrong, u.ru_maxrss >> 10);
	if (n != nr || wrong)
		die("what was read is not what was written");
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "size"))
		return sizes(argc - 2, argv + 2);
	if (argc < 3 || strcmp(argv[1], "speed"))
		die("usage: codec-bench size FILE... | speed N [FILE]");
	if (argc > 3)
		trace_path = argv[3];
	uint64_t nr = strtoull(argv[2], NULL, 10);
	write_events(nr);
	read_events(nr);
	return 0;
}
