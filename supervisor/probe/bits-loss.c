#include "supervisor/probe/bits-loss.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "reports/base.h"
#include "supervisor/tracee/tracee.h"

/* Page tables that are full: what a host pays for one that has changed depends
 * on how many pages it has. */
#define NR_TABLES   8
#define TABLE_PAGES (TPAGE_SIZE / sizeof(uint64_t))
#define NR_PAGES    (NR_TABLES * TABLE_PAGES)
#define SPELL_NS    NSEC_PER_MSEC
#define MOST_SLEEPS 4 /* others may want the CPU, too */
#define FEW_ROUNDS  4
#define MOST_ROUNDS 16
_Static_assert(NR_PAGES *TPAGE_SIZE <= LOSS_MEM_BYTES, "room to walk in");

void loss_walk(struct loss_walk *w, volatile char *mem)
{
	for (size_t i = 0; i < NR_PAGES; i++)
		mem[i * TPAGE_SIZE] = 1;
	w->pid = getpid();
	uint64_t x = 88172645463325252;
	while (!w->over) {
		for (int i = 0; i < 8; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			(void)mem[(x >> 20) % NR_PAGES * TPAGE_SIZE];
		}
		w->steps++;
	}
}

static uint64_t cpu_time_ns(const struct loss_walk *w)
{
	clockid_t clock;
	return clock_getcpuclockid(w->pid, &clock) ? 0 : smco_clock_ns(clock);
}

/* The steps of a spell, for each ns of CPU time that the one who walks had:
 * *ns_ret. 0: it had too little. */
static double spell(struct loss_walk *w, int pidfd, const struct iovec *v,
		    size_t n, double *ns_ret)
{
	struct timespec ts = {.tv_nsec = SPELL_NS};
	if (n && syscall(SYS_process_madvise, pidfd, v, n, MADV_COLD, 0) < 0)
		return 0;
	uint64_t steps = w->steps, start = cpu_time_ns(w), ns = 0;
	for (int i = 0; i < MOST_SLEEPS && ns < SPELL_NS * 3 / 4; i++) {
		nanosleep(&ts, NULL);
		ns = cpu_time_ns(w) - start;
	}
	*ns_ret = (double)ns;
	return ns < SPELL_NS / 2 ? 0 : (double)(w->steps - steps) / *ns_ret;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Spells with a reset of @pages in a row of each table and without in turn; ns
 * that were lost for one page. Rather too much where rounds differ, for what
 * is charged is to bound what a program loses; 0 where a quarter of the rounds
 * lost nothing. */
static double lost_ns(struct loss_walk *w, int pidfd, char *mem, size_t pages,
		      double enough_ns)
{
	struct iovec v[NR_TABLES];
	double lost[MOST_ROUNDS], nr = (double)(NR_TABLES * pages);
	double ns, unused, before = spell(w, pidfd, NULL, 0, &unused);
	size_t k = 0;
	for (size_t i = 0; i < MOST_ROUNDS; i++) {
		for (size_t t = 0; t < NR_TABLES; t++)
			v[t] = (struct iovec){
				mem + (t * TABLE_PAGES + i * LOSS_RANGE_PAGES) *
						TPAGE_SIZE,
				pages * TPAGE_SIZE};
		double with = spell(w, pidfd, v, NR_TABLES, &ns);
		double after = spell(w, pidfd, NULL, 0, &unused);
		double whole = (before + after) / 2;
		/* Without a step it was not on its CPU. */
		if (with > 0 && before > 0 && after > 0)
			lost[k++] = (1 - with / whole) * ns;
		before = after;
		if (i + 1 == FEW_ROUNDS || i + 1 == MOST_ROUNDS)
			qsort(lost, k, sizeof(*lost), by_value);
		if (i + 1 == FEW_ROUNDS && (!k || lost[k / 2] / nr < enough_ns))
			return 0;
	}
	return lost[k / 4] > 0 ? lost[k * 3 / 4] / nr : 0;
}

void bits_loss_split(double single_ns, double in_range_ns,
		     struct bits_loss *ret)
{
	double flush = (single_ns - in_range_ns) * LOSS_RANGE_PAGES /
		       (LOSS_RANGE_PAGES - 1);
	if (flush < 0)
		flush = 0;
	double touch = in_range_ns - flush / LOSS_RANGE_PAGES;
	ret->range_ns = (uint64_t)flush;
	ret->touch_ns = touch > 0 ? (uint64_t)touch : 0;
}

void bits_loss_lessen(struct bits_loss *loss, const struct bits_loss *again)
{
	if (again->range_ns < loss->range_ns)
		loss->range_ns = again->range_ns;
	if (again->touch_ns < loss->touch_ns)
		loss->touch_ns = again->touch_ns;
}

static bool measure(struct loss_walk *w, int pidfd, char *mem, double enough,
		    struct bits_loss *ret)
{
	double page = lost_ns(w, pidfd, mem, 1, enough);
	double in_range =
		lost_ns(w, pidfd, mem, LOSS_RANGE_PAGES, page > 0 ? 0 : enough);
	if (page <= 0 && in_range <= 0)
		return false;
	bits_loss_split(page, in_range, ret);
	return true;
}

bool loss_measure(struct loss_walk *w, int pidfd, char *mem, uint64_t enough_ns,
		  struct bits_loss *ret)
{
	double enough = (double)enough_ns;
	struct bits_loss again;
	bool is_told = measure(w, pidfd, mem, enough, ret);
	if (is_told && ret->range_ns) {
		is_told = measure(w, pidfd, mem, enough, &again);
		if (is_told)
			bits_loss_lessen(ret, &again);
	}
	w->over = 1;
	return is_told;
}
