/*
 * bits.h - the accessed bits of a puppet's pages (pages.h), read and reset.
 */
#ifndef BITS_H
#define BITS_H

#include "t/unit/pages.h"
#include "t/unit/pidproc.h"

static struct access *a;

static inline void set_pages(struct page_range *r, size_t n, const char *base,
			     size_t stride)
{
	for (size_t i = 0; i < n; i++)
		r[i] = (struct page_range){
			.start = (uintptr_t)base + i * stride * PAGE,
			.end = (uintptr_t)base + (i * stride + 1) * PAGE};
}

/*
 * Arm until everything is quiet: new pages can take a moment until they are
 * resettable (lrudrain.h). False if that never happens.
 */
static inline bool settle(struct page_range *r, size_t n)
{
	for (int k = 0; k < 1000; k++) {
		size_t touched = 0;
		if (a->ops->arm(a, r, n) || a->ops->collect(a, r, n))
			return false;
		for (size_t i = 0; i < n; i++)
			touched += r[i].nr_touched;
		if (!touched)
			return true;
		usleep(20000);
	}
	return false;
}

/*
 * The kernel clears accessed bits too (reclaim, khugepaged, DAMON where it is
 * on, a page in ten thousand here), so a trial may miss a page. What is wrong
 * with our code is wrong every time: one perfect trial is asked for. A page
 * seen touched that was not is an error at once.
 */
#define TRIALS 40

/* Opens @a for the puppet. False, and said: there is nothing to be tested. */
static inline bool bits_open(struct tproc *proc)
{
	struct smco_err err = {0};
	int r = access_bits.open(proc, &a, &err);
	if (r)
		printf("# %s\n", err.msg);
	if (r != SMCO_PERM && r != SMCO_UNSUPPORTED)
		return check_int(r, 0);
	tap_skip("accessed bits are not available here");
	return false;
}

#endif
