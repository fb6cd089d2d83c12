/*
 * Pages that a reset leaves out though nothing is the matter with them a moment
 * later, as when reclaim has them in its hands: they are reset once more.
 */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "t/fixtures/own-syscall.h" /* its names first */

#define PAGES 600
#include "t/unit/bits.h"

static int to_leave_out; /* calls */
static int nr_resets;

/* The C library's, as the code that resets calls it. A call that is left out
 * says that it did all. */
long syscall(long nr, ...)
{
	long n[6], bytes = 0;
	va_list ap;
	va_start(ap, nr);
	own_syscall_args(ap, n);
	va_end(ap);
	if (nr != SYS_process_madvise || !n[2])
		return own_syscall(nr, n);
	nr_resets++;
	if (to_leave_out <= 0)
		return own_syscall(nr, n);
	to_leave_out--;
	for (long i = 0; i < n[2]; i++)
		bytes += (long)((const struct iovec *)n[1])[i].iov_len;
	return bytes;
}

/* All was touched. With @left_out calls that do nothing, how many are made and
 * how many pages look touched behind them? False: others interfered. */
static bool arm_all(int left_out, uint32_t want, int want_resets)
{
	struct page_range all = range_at(mem, PAGES);
	if (!settle(&all, 1) || puppet_do(&pup, act_load, 0, 1) < 0)
		return false;
	nr_resets = 0;
	to_leave_out = left_out;
	int err = a->ops->arm(a, &all, 1);
	if (err || all.nr_stuck || a->ops->collect(a, &all, 1))
		return false;
	printf("# %d left out: %d calls, %u of %u touched\n", left_out,
	       nr_resets, all.nr_touched, PAGES);
	return all.nr_touched == want && nr_resets == want_resets;
}

static bool arms(int left_out, uint32_t want, int want_resets)
{
	for (int k = 0; k < TRIALS; k++)
		if (arm_all(left_out, want, want_resets))
			return true;
	return false;
}

int main(void)
{
	start_with_pages();
	struct tproc proc = {pup.pid};
	if (bits_open(&proc)) {
		check(arms(0, 0, 1));
		check(arms(1, 0, 2));
		/* Hot ones: it ends. */
		check(arms(2, PAGES, 2));
	}
	puppet_end(&pup);
	return tap_done();
}
