#include "supervisor/probe/wakecost.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/control/fixed.h"

#define NR_WAKES    64
#define SLEEP_NS    (40 * NSEC_PER_USEC)
#define MOST_PIECES 16384
/* A piece of work, some microseconds, all over a part of the core's second
 * cache, as programs have it; and what we go through when we wake up. */
#define PIECE_STEPS 2048
#define WORDS	    65536
#define OWN_WORDS   16384
#define LINE_WORDS  16

/* Measured on a virtual machine: 15 to 18 us. */
#define USUAL_NS (8 * NSEC_PER_USEC)
#define LEAST_NS NSEC_PER_USEC
#define MOST_NS	 (40 * NSEC_PER_USEC)

/*
 * Measured on random touches of a gigabyte, which are slower for some two
 * milliseconds after each time, by this part of it: a tenth of 100 us, 13 to
 * 30 % of 250, a third and more of 600. That is so also where we did nothing
 * but count: others on the machine use the caches meanwhile.
 */
#define COLD_WHOLE_NS (NSEC_PER_MSEC)
#define COLD_MOST_NS  (350 * NSEC_PER_USEC)

struct shared {
	volatile int is_ready, is_over;
	unsigned nr;
	uint64_t piece_ns[MOST_PIECES]; /* of the child's CPU time */
	uint32_t word[WORDS];
	uint32_t own[OWN_WORDS];
};

uint64_t wakecost_of(uint64_t more_ns, unsigned nr)
{
	return nr ? max_u64(min_u64(more_ns / nr, MOST_NS), LEAST_NS)
		  : USUAL_NS;
}

uint64_t wakecost_displaced(uint64_t displaced_ns, uint64_t nr,
			    uint64_t wake_ns)
{
	uint64_t each_ns = nr ? displaced_ns / nr : 0;
	uint64_t cold_ns = min_u64(each_ns, COLD_MOST_NS);
	return displaced_ns +
	       (uint64_t)((double)displaced_ns * (double)cold_ns /
			  (double)COLD_WHOLE_NS) +
	       nr * wake_ns;
}

static void __attribute__((noreturn)) child(struct shared *s, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	uint64_t last_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint32_t at = 1;
	while (!s->is_over && s->nr < MOST_PIECES && getppid() == parent) {
		for (int i = 0; i < PIECE_STEPS; i++) {
			at = at * 1664525 + 1013904223;
			s->word[(at >> 8) % WORDS] += at;
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

/* What all pieces together took longer than as many of the usual ones. */
static uint64_t more_ns(struct shared *s)
{
	uint64_t sum = 0;
	qsort(s->piece_ns, s->nr, sizeof(*s->piece_ns), by_size);
	for (unsigned i = 0; i < s->nr; i++)
		sum += s->piece_ns[i];
	return sat_sub_u64(sum, s->piece_ns[s->nr / 2] * s->nr);
}

static uint64_t measure(struct shared *s)
{
	const struct timespec some = {.tv_nsec = SLEEP_NS};
	pid_t parent = getpid(), pid = fork();
	int status;
	bool is_gone = false;
	if (!pid)
		child(s, parent);
	if (pid < 0)
		return USUAL_NS;
	while (!s->is_ready && !is_gone) {
		nanosleep(&some, NULL);
		is_gone = waitpid(pid, &status, WNOHANG) != 0;
	}
	if (is_gone)
		return USUAL_NS;
	for (unsigned i = 0; i < NR_WAKES * OWN_WORDS; i += LINE_WORDS) {
		if (i % OWN_WORDS == 0)
			nanosleep(&some, NULL);
		s->own[i % OWN_WORDS]++;
	}
	s->is_over = 1;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return s->nr > NR_WAKES ? wakecost_of(more_ns(s), NR_WAKES) : USUAL_NS;
}

uint64_t wakecost_measure(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cpu_set_t was, one;
	int cpu = sched_getcpu();
	uint64_t ns = USUAL_NS;
	if (s == MAP_FAILED)
		return ns;
	if (cpu >= 0 && !sched_getaffinity(0, sizeof(was), &was)) {
		CPU_ZERO(&one);
		CPU_SET((unsigned)cpu, &one);
		if (!sched_setaffinity(0, sizeof(one), &one)) {
			ns = measure(s);
			sched_setaffinity(0, sizeof(was), &was);
		}
	}
	munmap(s, sizeof(*s));
	return ns;
}
