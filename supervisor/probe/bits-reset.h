/*
 * bits-reset.h - clear accessed bits of another process by MADV_COLD, in the
 * way that costs the program least: beside it, on its CPU, or while it stands.
 */
#ifndef SMCO_BITS_RESET_H
#define SMCO_BITS_RESET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "supervisor/probe/bits-cost.h"
#include "supervisor/probe/ptread.h"
#include "supervisor/tracee/tracee.h"

/* Who runs now (want_running)? 0, or what ptread_scan returns. */
typedef int bits_who_runs(void *arg, struct ptread_mm *mm);

struct bits_reset {
	struct tproc *proc;
	int pidfd;
	bits_who_runs *who_runs;
	void *who_arg;
	bool by_injection;     /* process_madvise is not permitted, or finds no
				* memory any more: the first thread has ended */
	uint64_t shootdown_ns; /* struct bits_cost */
	uint64_t flush_ns;
	uint64_t stopped_most_ns; /* a stop for a reset lasts no longer */
	uint64_t side_ns;	  /* cost that no clock of ours has, so far */
	uint64_t waited_ns;	  /* for us, on its CPU, so far; roughly */
};

/* What is to be reset: [0..n) of @iov, whose addresses are the tracee's, in
 * which @nr_pages bits are set. error[] (n) gets each one's errno or 0. */
struct reset_work {
	const struct iovec *iov;
	int *error;
	size_t n;
	uint64_t nr_pages;
};

/* Ready for @p, of which it keeps a descriptor. @cost: what each range
 * costs every other CPU that runs @p, by the interrupt, and each page table
 * @p besides. @who_runs is asked with @arg. Cannot fail: without the permission
 * to do it from here, and when @p's first thread has ended, calls are run in
 * @p. */
void bits_reset_init(struct bits_reset *br, struct tproc *p,
		     const struct bits_cost *cost, bits_who_runs *who_runs,
		     void *arg);
void bits_reset_deinit(struct bits_reset *br);

/*
 * Do @w. @mm: who ran a moment ago. Who waits for our CPU is taken to another
 * one before long, so that is asked anew after each hundred ranges or so. A
 * stop for it ends after stopped_most_ns, and what is left is done while the
 * program runs; that does not hold where calls must be run in it. Returns 0
 * also where single iovecs failed, or SMCO_GONE, SMCO_BUSY.
 */
int bits_reset(struct bits_reset *br, const struct reset_work *w,
	       const struct ptread_mm *mm);

#endif
