/* What hits, and being watched, cost on this machine: by watchpoints of this
 * thread's own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "reports/median.h"
#include "supervisor/control/fixed.h"
#include "supervisor/probe/watch-private.h"

/* Hits for measuring, in processor time: the median of so many. */
#define MEASURE_HITS 33
#define PROBE_HITS   2 /* how the kernel counts */
#define AGAIN_NS     (2 * NSEC_PER_SEC)
/* What a hit drives out of the caches the program has to bring in again: that
 * of a program which goes through so much in no order. */
#define WALK_LINES 2048
#define LINE_WORDS (64 / sizeof(uint32_t))

static int make_walk(struct watchpoints *ws, struct smco_err *err)
{
	ws->walk = calloc(WALK_LINES, LINE_WORDS * sizeof(*ws->walk));
	if (!ws->walk)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	/* A generator of full period: one ring through all lines. */
	for (uint32_t i = 0; i < WALK_LINES; i++)
		ws->walk[i * LINE_WORDS] = (i * 1229 + 4567) % WALK_LINES;
	return 0;
}

/* A write to @word and a walk, in this thread's processor time. */
static int64_t write_and_walk(const struct watchpoints *ws,
			      volatile uint64_t *word, uint64_t value)
{
	uint64_t start_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	*word = value;
	volatile uint32_t at = 0;
	for (int i = 0; i < WALK_LINES; i++)
		at = ws->walk[at * LINE_WORDS];
	return (int64_t)(smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
}

static uint64_t measure_hits(struct watchpoints *ws, uint32_t nr,
			     struct smco_err *err)
{
	volatile uint64_t here = 0, elsewhere = 0;
	const struct watch_what what = {
		.addr = (taddr_t)(uintptr_t)&here,
		.bytes = sizeof(here),
		.field = {{.bits = 64}},
		.nr_fields = 1,
	};
	uint32_t index = watch_find_word(ws);
	int64_t more_ns[MEASURE_HITS];
	struct watch_task t;
	if (index == WATCH_WORDS) {
		smco_fail(err, SMCO_BUSY, 0, "%d watchpoints are armed already",
			  WATCH_WORDS);
		return 0;
	}
	watch_fill(&ws->word[index], &what, INT64_MAX);
	if (watch_open_task(ws, index, 0, INT64_MAX, &t, err))
		return 0;
	for (uint32_t i = 0; i < nr; i++) {
		int64_t without = write_and_walk(ws, &elsewhere, i);
		more_ns[i] = write_and_walk(ws, &here, i) - without;
	}
	if (!ws->obj)
		watch_take_told(&ws->word[index], &t, NULL);
	watch_close_task(&t);
	uint64_t hits = ws->word[index].nr_hits;
	if (!hits) {
		smco_fail(err, SMCO_UNSUPPORTED, 0,
			  "watchpoints: this machine's debug registers do not "
			  "fire");
		return 0;
	}
	ws->counts_all |= hits < nr;
	int64_t ns = clamp_i64(median_i64(more_ns, nr), 1, INT64_MAX / 2);
	return (uint64_t)(ns + ns / WATCH_COLD_SHARE);
}

static void go_on(int sig)
{
	(void)sig;
}

/* What a write that is watched takes longer than one that is not: the exception
 * and what comes after it, ns; 0 on errors. @nr are at most MEASURE_HITS. A hit
 * that gets lost on its way is a SIGTRAP, ours as well (signal_is_stray). */
static uint64_t measure(struct watchpoints *ws, uint32_t nr,
			struct smco_err *err)
{
	const struct sigaction survive = {.sa_handler = go_on,
					  .sa_flags = SA_RESTART};
	struct sigaction before;
	sigaction(SIGTRAP, &survive, &before);
	uint64_t ret = measure_hits(ws, nr, err);
	sigaction(SIGTRAP, &before, NULL);
	return ret;
}

#define COPY_BYTES  (64u << 10)
#define COPY_ROUNDS 9
#define PAGE_BYTES  4096

/* The kernel writes to @buf, ns. */
static int64_t copy_ns(int fd, void *buf)
{
	uint64_t start_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (read(fd, buf, COPY_BYTES) != COPY_BYTES)
		return 0;
	return (int64_t)(smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
}

/* What a byte takes longer while a register is armed, of the same copy in turn
 * with it and without; 0 where that cannot be told. */
static void measure_copies(struct watchpoints *ws)
{
	uint64_t elsewhere = 0;
	const struct watch_what what = {
		.addr = (taddr_t)(uintptr_t)&elsewhere,
		.bytes = sizeof(elsewhere),
		.field = {{.bits = 64}},
		.nr_fields = 1,
	};
	_cleanup_free_ void *buf = calloc(1, COPY_BYTES);
	_cleanup_close_ int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	uint32_t index = watch_find_word(ws);
	int64_t more_ns[COPY_ROUNDS];
	struct watch_task t;
	if (!buf || fd < 0 || index == WATCH_WORDS)
		return;
	copy_ns(fd, buf);
	for (int i = 0; i < COPY_ROUNDS; i++) {
		int64_t without = copy_ns(fd, buf);
		watch_fill(&ws->word[index], &what, INT64_MAX);
		if (watch_open_task(ws, index, 0, INT64_MAX, &t, NULL))
			return;
		more_ns[i] = copy_ns(fd, buf) - without;
		watch_close_task(&t);
	}
	int64_t ns =
		clamp_i64(median_i64(more_ns, COPY_ROUNDS), 0, NSEC_PER_SEC);
	ws->byte_ps = (uint64_t)ns * 1000 / COPY_BYTES;
}

uint64_t watchpoints_standing_ns(const struct watchpoints *ws, uint64_t bytes,
				 uint64_t faults)
{
	return sat_u64(((u128)bytes + (u128)faults * PAGE_BYTES) * ws->byte_ps /
		       1000);
}

int watch_calibrate(struct watchpoints *ws, struct smco_err *err)
{
	int rc = make_walk(ws, err);
	/* The first one finds out how the kernel counts, and is cold. */
	if (!rc && measure(ws, PROBE_HITS, err))
		ws->hit_ns = measure(ws, MEASURE_HITS, err);
	if (ws->hit_ns)
		measure_copies(ws);
	ws->measured_ns = smco_now_ns();
	if (rc || ws->hit_ns)
		return rc;
	return err && err->code ? err->code : SMCO_UNSUPPORTED;
}

void watchpoints_measure_again(struct watchpoints *ws, uint64_t now_ns)
{
	if (now_ns < ws->measured_ns + AGAIN_NS)
		return;
	uint64_t ns = measure(ws, MEASURE_HITS, NULL);
	ws->measured_ns = now_ns;
	/* One that was disturbed by others does not count in full. */
	if (ns)
		ws->hit_ns = (ws->hit_ns + min_u64(ns, 2 * ws->hit_ns) + 1) / 2;
}

uint64_t watchpoints_hit_ns(const struct watchpoints *ws)
{
	return ws->hit_ns;
}
