#include "supervisor/probe/bits-loss.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "reports/base.h"
#include "supervisor/tracee/tracee.h"

/* Half of the pages are far apart, half of them beside each other. */
#define NR_FAR	    256
#define FAR_AT	    (16ul << 20)
#define FAR_STRIDE  (16 * TPAGE_SIZE)
#define NR_NEAR	    2048
#define NR_RESET    8
#define SPELL_NS    (500 * NSEC_PER_USEC)
#define FEW_ROUNDS  4
#define MOST_ROUNDS 12

static size_t far_page(size_t i)
{
	return FAR_AT + i % NR_FAR * FAR_STRIDE;
}

static size_t near_page(size_t i)
{
	return i % NR_NEAR * TPAGE_SIZE;
}

void loss_walk(struct loss_walk *w, volatile char *mem)
{
	for (size_t i = 0; i < NR_FAR; i++)
		mem[far_page(i)] = 1;
	for (size_t i = 0; i < NR_NEAR; i++)
		mem[near_page(i)] = 1;
	uint64_t x = 88172645463325252;
	while (!w->over) {
		for (int i = 0; i < 8; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			size_t k = x >> 20;
			(void)mem[x & 1 ? far_page(k) : near_page(k)];
		}
		w->steps++;
	}
}

/* The steps of a spell, a second. */
static double spell(struct loss_walk *w, int pidfd, const struct iovec *v,
		    size_t n)
{
	uint64_t steps = w->steps, start = smco_now_ns(), now;
	if (n && syscall(SYS_process_madvise, pidfd, v, n, MADV_COLD, 0) < 0)
		return 0;
	while ((now = smco_now_ns()) - start < SPELL_NS)
		;
	return (double)(w->steps - steps) / (double)(now - start);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Spells with a reset of [0..n) of @v and without in turn; ns that were lost
 * for one of @nr. Rather too little where rounds differ. */
static double lost_ns(struct loss_walk *w, int pidfd, const struct iovec *v,
		      size_t n, double enough_ns)
{
	double lost[MOST_ROUNDS];
	double before = spell(w, pidfd, NULL, 0);
	size_t k = 0;
	for (int i = 0; i < MOST_ROUNDS; i++) {
		double with = spell(w, pidfd, v, n);
		double after = spell(w, pidfd, NULL, 0);
		double whole = (before + after) / 2;
		/* Without a step it was not on its CPU. */
		if (with > 0 && before > 0 && after > 0)
			lost[k++] = (1 - with / whole) * (double)SPELL_NS;
		before = after;
		if (i + 1 == FEW_ROUNDS || i + 1 == MOST_ROUNDS)
			qsort(lost, k, sizeof(*lost), by_value);
		if (i + 1 == FEW_ROUNDS &&
		    (!k || lost[k / 2] / NR_RESET < enough_ns))
			return 0;
	}
	return lost[k / 4] > 0 ? lost[k / 2] / NR_RESET : 0;
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

bool loss_measure(struct loss_walk *w, int pidfd, char *mem, uint64_t enough_ns,
		  struct bits_loss *ret)
{
	struct iovec single[NR_RESET], range[NR_RESET / LOSS_RANGE_PAGES];
	for (size_t i = 0; i < NR_RESET; i++)
		single[i] = (struct iovec){
			mem + far_page(i * NR_FAR / NR_RESET), TPAGE_SIZE};
	for (size_t i = 0; i < NR_RESET / LOSS_RANGE_PAGES; i++)
		range[i] = (struct iovec){mem + near_page(i * NR_NEAR / 2),
					  LOSS_RANGE_PAGES * TPAGE_SIZE};
	double enough = (double)enough_ns;
	double page = lost_ns(w, pidfd, single, NR_RESET, enough);
	double in_range = lost_ns(w, pidfd, range, NR_RESET / LOSS_RANGE_PAGES,
				  page > 0 ? 0 : enough);
	w->over = 1;
	if (page <= 0 && in_range <= 0)
		return false;
	bits_loss_split(page, in_range, ret);
	return true;
}
