/*
 * heapwalk.h - blocks that glibc's malloc has given out already, found by
 * their headers in tracee memory. Reads only. Every word is hostile input: a
 * walk ends at the first header that cannot be.
 */
#ifndef SMCO_HEAPWALK_H
#define SMCO_HEAPWALK_H

#include "supervisor/tracee/tracee.h"

struct heap_block {
	taddr_t addr;  /* as the program knows it */
	uint64_t size; /* usable bytes; what was asked for is not kept */
	bool mmapped;  /* a mapping of its own */
};

/* Smaller blocks look the same in use and in a thread's cache. */
#define HEAPWALK_MIN_BYTES 2048

/*
 * All tasks stopped. *@skip_start to *@skip_end is not looked at (the agent's
 * own area). After @budget_ns of CPU time it
 * gives up, *complete_ret false. Blocks come in no
 * particular order, each once.
 */
int heapwalk(struct tproc *p, uint64_t min_bytes, taddr_t skip_start,
	     taddr_t skip_end, uint64_t budget_ns,
	     void (*fn)(void *ctx, const struct heap_block *b), void *ctx,
	     bool *complete_ret, struct smco_err *err);

#endif
