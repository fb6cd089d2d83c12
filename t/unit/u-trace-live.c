/*
 * A trace while it is written: what a reader finds is at any time the first so
 * many records, whole; and a disk that does not keep up makes the writer drop
 * and count, but never wait.
 */
#include "t/unit/tap.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/bytes.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-random.h"

#define NR	   20000
#define NR_SEVENTY (70 * 100)

static const char *path;
static struct record want[NR];
static uint8_t *payloads;

/* How many of the first records it has; -1 if there is anything else. */
static int prefix(struct trace_reader *r)
{
	struct record got;
	int n = 0, rc;
	while ((rc = trace_next(r, &got, NULL)) > 0) {
		if (n >= NR || !same_record(&got, &want[n]))
			return -1;
		n++;
	}
	return rc || trace_nr_damaged(r) ? -1 : n;
}

static void growing(void)
{
	struct trace_writer *w = NULL;
	struct trace_reader *r;
	int last = 0, wrong = 0, steps = 0, ended = 0;
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	for (int i = 0; i < NR; i++) {
		put_surely(w, &want[i]);
		if (i % 300)
			continue;
		trace_flush(w, NULL);
		/* In the middle of a write, most likely. */
		if (trace_reader_open(path, &r, NULL)) {
			wrong++;
			continue;
		}
		int n = prefix(r);
		wrong += n < last || n > i + 1;
		steps += n > last;
		ended += !trace_is_truncated(r);
		last = n;
		trace_reader_close(r);
	}
	check_int(wrong, 0);
	check_int(ended, 0);
	check(steps > 5);
	check_int(trace_writer_close(w, NULL), 0);
	check_int(trace_reader_open(path, &r, NULL), 0);
	check_int(prefix(r), NR);
	check(!trace_is_truncated(r));
	trace_reader_close(r);
	unlink(path);
}

struct sucker {
	int fd;
	struct bbuf all;
};

static void *suck(void *arg)
{
	struct sucker *s = arg;
	ssize_t n;
	do {
		uint8_t *to = bbuf_reserve(&s->all, 65536);
		n = read(s->fd, to, 65536);
		if (n > 0)
			s->all.len += (size_t)n;
	} while (n > 0);
	return NULL;
}

/* A pipe that nobody reads stands for the slow disk. */
static void slow_disk(void)
{
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	struct trace_stats stats;
	struct sucker sucker = {0};
	struct record got;
	pthread_t thread;
	uint64_t put = 0, dropped = 0, wrong = 0;
	check_int(mkfifo(path, 0600), 0);
	sucker.fd = open(path, O_RDONLY | O_NONBLOCK);
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	for (size_t round = 0; dropped < 1000; round++)
		for (size_t i = 0; i < NR && dropped < 1000; i++) {
			int rc = trace_put(w, &want[i]);
			wrong += rc && rc != SMCO_BUSY;
			put += !rc;
			dropped += rc == SMCO_BUSY;
		}
	check_int(wrong, 0);
	trace_writer_stats(w, &stats);
	check_int(stats.nr_records, put);
	check_int(stats.nr_dropped, dropped);
	fcntl(sucker.fd, F_SETFL, 0);
	pthread_create(&thread, NULL, suck, &sucker);
	trace_sync(w, NULL);
	check_int(trace_put(w, &want[0]), 0); /* there is room again */
	check_int(trace_writer_close(w, NULL), 0);
	pthread_join(thread, NULL);
	check_int(trace_reader_open_mem(sucker.all.data, sucker.all.len, &r,
					NULL),
		  0);
	uint64_t n = 0;
	for (; trace_next(r, &got, NULL) > 0; n++)
		wrong += n < put && !same_record(&got, &want[n % NR]);
	check_int(n, put + 1);
	check_int(wrong, 0);
	check_int(trace_nr_dropped(r), dropped);
	check_int(trace_nr_lost(r), 0);
	trace_reader_close(r);
	/* Without its end, the trace says it all the same. */
	check_int(trace_reader_open_mem(sucker.all.data, sucker.all.len - 1, &r,
					NULL),
		  0);
	while (trace_next(r, &got, NULL) > 0)
		;
	check(trace_is_truncated(r));
	check_int(trace_nr_dropped(r), dropped);
	trace_reader_close(r);
	bbuf_free(&sucker.all);
	close(sucker.fd);
	unlink(path);
}

static void make_noise(char *text, size_t size)
{
	for (size_t i = 0; i + 1 < size; i++)
		text[i] = (char)('!' + random_below(90));
	text[size - 1] = '\0';
}

/* The same with what is never dropped: more than there are places for waits in
 * memory, and the writer for nothing. */
static void slow_disk_tables(void)
{
	static char value[60000], key[32], file[32];
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	struct sucker sucker = {0};
	struct trace_frame f = {.function = "f", .module = "/bin/f"};
	const unsigned nr = 150; /* 9 MB that nothing makes smaller */
	const uint64_t seed = random_state;
	unsigned nr_meta = 0, nr_stacks = 0;
	pthread_t thread;
	size_t depth;
	check_int(mkfifo(path, 0600), 0);
	sucker.fd = open(path, O_RDONLY | O_NONBLOCK);
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	for (unsigned i = 0; i < nr; i++) {
		make_noise(value, sizeof(value));
		snprintf(key, sizeof(key), "key.%u", i);
		nr_meta += !trace_put_meta(w, key, value);
		snprintf(file, sizeof(file), "file %u", i);
		f.file = file;
		nr_stacks += !trace_put_stack(w, i + 1, &f, 1);
	}
	check_int(nr_meta, nr);
	check_int(nr_stacks, nr);
	fcntl(sucker.fd, F_SETFL, 0);
	pthread_create(&thread, NULL, suck, &sucker);
	check_int(trace_writer_close(w, NULL), 0);
	pthread_join(thread, NULL);
	check_int(trace_reader_open_mem(sucker.all.data, sucker.all.len, &r,
					NULL),
		  0);
	random_state = seed;
	for (unsigned i = 0; i < nr; i++) {
		snprintf(key, sizeof(key), "key.%u", i);
		const char *got = trace_meta(r, key);
		make_noise(value, sizeof(value));
		nr_meta -= got && !strcmp(got, value);
		snprintf(file, sizeof(file), "file %u", i);
		const struct trace_frame *frame = trace_stack(r, i + 1, &depth);
		nr_stacks -= frame && depth == 1 && !strcmp(frame->file, file);
	}
	check_int(nr_meta, 0);
	check_int(nr_stacks, 0);
	check(!trace_is_truncated(r));
	check_int(trace_nr_damaged(r), 0);
	trace_reader_close(r);
	bbuf_free(&sucker.all);
	close(sucker.fd);
	unlink(path);
}

/* A trace that is worth an index; @event says whether chunks are modelled. */
static void write_seventy(uint32_t event)
{
	struct trace_writer *w = NULL;
	uint64_t noise[sizeof(struct ev_counts) / 8];
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	for (uint64_t i = 0; i < NR_SEVENTY; i++) {
		/* Seventy chunks, more than one index chunk describes, and
		 * too large to do without. */
		for (size_t j = 0; j < ARRAY_SIZE(noise); j++)
			noise[j] = random_u64();
		struct record one = {.event = event,
				     .time_ns = i * 10,
				     .tid = (uint32_t)(i / 100),
				     .payload = noise,
				     .payload_len = sizeof(noise)};
		put_surely(w, &one);
		if (i % 100 == 99)
			trace_sync(w, NULL);
	}
	check_int(trace_writer_close(w, NULL), 0);
}

/* Seeking by the index finds all that reading everything finds. If chunks are
 * modelled more is read, as they continue others. */
static void narrowed(uint32_t event, uint64_t more)
{
	struct trace_reader *r = NULL;
	struct record got;
	uint64_t n, in;
	write_seventy(event);
	struct narrow {
		uint64_t from, to, min, max;
		uint32_t tid;
	} cases[] = {
		{0, 0, 7000, 7000, UINT32_MAX},
		{35000, 0, 3500, 3600, UINT32_MAX},
		{0, 10000, 1000, 1100, UINT32_MAX},
		{20500, 20600, 10, 100, UINT32_MAX},
		{0, 0, 100, 700, 33},
		{99000, 0, 0, 0, UINT32_MAX},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct narrow *c = &cases[i];
		check_int(trace_reader_open(path, &r, NULL), 0);
		trace_narrow(r, c->from, c->to,
			     c->tid == UINT32_MAX ? NULL : &c->tid);
		for (n = in = 0; trace_next(r, &got, NULL) > 0; n++)
			in += got.time_ns >= c->from &&
			      (!c->to || got.time_ns < c->to) &&
			      (c->tid == UINT32_MAX || got.tid == c->tid);
		check_int(in, c->min);
		check(n <= c->max + more);
		check(n < NR_SEVENTY || !c->from);
		check_int(trace_nr_lost(r), 0);
		trace_reader_close(r);
	}
	unlink(path);
}

int main(int argc, char **argv)
{
	if (argc == 3) {
		path = argv[1];
		write_seventy(50);
		path = argv[2];
		write_seventy(EV_COUNTS);
		return tap_done();
	}
	path = scratch_path("x.trace");
	payloads = malloc((size_t)NR * 600);
	for (size_t i = 0; i < NR; i++)
		random_record(&want[i], payloads + i * 600);
	growing();
	slow_disk();
	slow_disk_tables();
	narrowed(50, 0);
	narrowed(EV_COUNTS, 4000);
	free(payloads);
	return tap_done();
}
