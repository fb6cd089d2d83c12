#include "supervisor/probe/wakecost.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/control/fixed.h"

#define NR_WAKES      64
#define SLEEP_NS      (40 * NSEC_PER_USEC)
#define NR_STAYS      24
#define STAY_SLEEP_NS (400 * NSEC_PER_USEC) /* it is warm again by then */
#define MOST_PIECES   16384
/* A piece of work, some microseconds, all over much of the core's second
 * cache, each place told by what was at the last one, as programs have it; and
 * what we go through when we wake up, and when we stay. */
#define PIECE_STEPS   2048
#define WORDS	      (1u << 18)
#define WAKE_WORDS    16384
#define STAY_WORDS    (1u << 18)
#define LINE_WORDS    16
#define LINES_AT_ONCE 64

/* Measured on two virtual machines: 15 to 40 us, and 0 to 70 more. */
#define USUAL_WAKE_NS (20 * NSEC_PER_USEC)
#define USUAL_COLD_NS (40 * NSEC_PER_USEC)
#define LEAST_NS      NSEC_PER_USEC
#define MOST_WAKE_NS  (60 * NSEC_PER_USEC)
#define MOST_STAY_NS  (200 * NSEC_PER_USEC)

struct shared {
	volatile int is_ready, is_over;
	volatile unsigned nr;
	uint64_t piece_ns[MOST_PIECES]; /* of the child's CPU time */
	uint32_t word[WORDS];
	uint32_t own[STAY_WORDS];
};

uint64_t wakecost_of(uint64_t more_ns, unsigned nr, uint64_t most_ns)
{
	return nr ? max_u64(min_u64(more_ns / nr, most_ns), LEAST_NS)
		  : USUAL_WAKE_NS;
}

uint64_t wakecost_displaced(uint64_t displaced_ns, uint64_t nr,
			    const struct wakecost *one)
{
	uint64_t each_ns = nr ? displaced_ns / nr : 0;
	uint64_t cold_ns = min_u64(each_ns, WAKECOST_STAY_NS) * one->cold_ns /
			   WAKECOST_STAY_NS;
	return displaced_ns + nr * (one->wake_ns + cold_ns);
}

static void __attribute__((noreturn)) child(struct shared *s, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	uint32_t at = 1;
	for (unsigned i = 0; i < WORDS; i += LINE_WORDS)
		s->word[i] = 1;
	uint64_t last_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (!s->is_over && s->nr < MOST_PIECES && getppid() == parent) {
		for (int i = 0; i < PIECE_STEPS; i++) {
			at = at * 1664525 + 1013904223;
			at += s->word[(at >> 8) % WORDS]++;
		}
		uint64_t now_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		s->piece_ns[s->nr++] = now_ns - last_ns;
		last_ns = now_ns;
		s->is_ready = 1;
	}
	_exit(0);
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;
	return *a < *b ? -1 : *a > *b;
}

/* What the pieces from @from on together took longer than as many of the usual
 * ones. */
static uint64_t more_ns(struct shared *s, unsigned from)
{
	unsigned nr = s->nr - from;
	uint64_t sum = 0, *piece = s->piece_ns + from;
	if (!nr)
		return 0;
	/* Not the one that is being written meanwhile. */
	qsort(piece, nr, sizeof(*piece), by_size);
	for (unsigned i = 0; i < nr; i++)
		sum += piece[i];
	return sat_sub_u64(sum, piece[nr / 2] * nr);
}

/* Go through the first @words of our own, a line after the other, once and for
 * at least @stay_ns. */
static void stay(struct shared *s, unsigned words, uint64_t stay_ns)
{
	uint64_t end_ns = smco_now_ns() + stay_ns;
	unsigned i = 0, nr = 0;
	while (nr < words || smco_now_ns() < end_ns)
		for (unsigned k = 0; k < LINES_AT_ONCE; k++) {
			s->own[i]++;
			i = (i + LINE_WORDS) % words;
			nr += LINE_WORDS;
		}
}

/* What one of @nr stays costs, each after @sleep_ns. */
static uint64_t measure_stays(struct shared *s, unsigned nr, uint64_t sleep_ns,
			      unsigned words, uint64_t stay_ns,
			      uint64_t most_ns)
{
	const struct timespec some = {.tv_nsec = (long)sleep_ns};
	unsigned from = s->nr;
	for (unsigned i = 0; i < nr; i++) {
		nanosleep(&some, NULL);
		stay(s, words, stay_ns);
	}
	nanosleep(&some, NULL);
	return s->nr < MOST_PIECES ? wakecost_of(more_ns(s, from), nr, most_ns)
				   : 0;
}

static bool measure(struct shared *s, struct wakecost *ret)
{
	const struct timespec some = {.tv_nsec = SLEEP_NS};
	pid_t parent = getpid();
	int status;
	bool is_gone = false;
	memset(s->own, 1, sizeof(s->own));
	pid_t pid = fork();
	if (!pid)
		child(s, parent);
	if (pid < 0)
		return false;
	while (!s->is_ready && !is_gone) {
		nanosleep(&some, NULL);
		is_gone = waitpid(pid, &status, WNOHANG) != 0;
	}
	if (is_gone)
		return false;
	uint64_t wake_ns = measure_stays(s, NR_WAKES, SLEEP_NS, WAKE_WORDS, 0,
					 MOST_WAKE_NS);
	uint64_t stay_ns = measure_stays(s, NR_STAYS, STAY_SLEEP_NS, STAY_WORDS,
					 WAKECOST_STAY_NS, MOST_STAY_NS);
	s->is_over = 1;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (!wake_ns || !stay_ns)
		return false;
	*ret = (struct wakecost){wake_ns, sat_sub_u64(stay_ns, wake_ns)};
	return true;
}

bool wakecost_measure(struct wakecost *ret)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t was, one;
	int cpu = sched_getcpu();
	bool is_told = false;
	*ret = (struct wakecost){USUAL_WAKE_NS, USUAL_COLD_NS};
	if (s == MAP_FAILED)
		return false;
	if (cpu >= 0 && !sched_getaffinity(0, sizeof(was), &was)) {
		CPU_ZERO(&one);
		CPU_SET((unsigned)cpu, &one);
		if (!sched_setaffinity(0, sizeof(one), &one)) {
			is_told = measure(s, ret);
			sched_setaffinity(0, sizeof(was), &was);
		}
	}
	munmap(s, sizeof(*s));
	return is_told;
}
