/*
 * sysargs.h - which memory of its caller an x86-64 system call touches, known
 * before it runs: buffers and their lengths, structures, strings, vectors and
 * message headers walked to their ends, mappings it changes, addresses the
 * kernel keeps for later. Pure but for a reader of the caller's memory.
 *
 * Ranges err on the large side: read(fd, buf, 4096) names 4096 bytes although
 * fewer may come. Where nothing sure can be said the class is not
 * SYSARGS_KNOWN, and a caller that must keep memory usable has to assume all
 * of it. What another thread changes after the walk (an iovec) is not seen.
 */
#ifndef SMCO_SYSARGS_H
#define SMCO_SYSARGS_H

#include "reports/base.h"

/* What lies at a thread pointer: the C library's thread descriptor with what
 * the kernel touches by itself (rseq, thread id, robust list). */
#define THREAD_AREA_BYTES 8192

enum sysarg_what {
	SYSARG_READ = 1 << 0,	/* the kernel reads it during the call */
	SYSARG_WRITE = 1 << 1,	/* the kernel writes it during the call */
	SYSARG_MAP = 1 << 2,	/* the mapping itself is changed */
	SYSARG_KEEP = 1 << 3,	/* the kernel may touch it after the call too */
	SYSARG_STACK = 1 << 5,	/* not touched: a new thread's stack begins
				 * below */
	SYSARG_STRING = 1 << 4, /* ends at the first NUL, or with the range */
};

struct sysrange {
	taddr_t start;
	taddr_t end;   /* exclusive; saturated, never wraps */
	unsigned what; /* enum sysarg_what */
};

/* Grows, is reused; zero-initialise, sysranges_deinit() at the end. */
struct sysranges {
	struct sysrange *v;
	size_t nr;
	size_t cap; /* private */
};
void sysranges_deinit(struct sysranges *r);

enum sysargs_class {
	SYSARGS_KNOWN,	 /* the ranges are all there is, possibly none */
	SYSARGS_UNKNOWN, /* may touch any memory until it has returned */
	SYSARGS_COPY,	 /* copies or replaces the address space or the signal
			  * handlers: fork, vfork, exec, spawn */
	SYSARGS_SIGNAL,	 /* sets or reads how SIGSEGV is handled */
	SYSARGS_ALONE,	 /* fails when anybody else uses this memory */
	SYSARGS_ASYNC,	 /* from now on memory is touched with no call at all:
			  * io_uring, kernel AIO */
	SYSARGS_SHOWN,	 /* another process is let into this memory */
	SYSARGS_DIVERT,	 /* from now on the thread's calls are sent to itself */
	SYSARGS_EXIT,	 /* ends the thread or all: robust lists are walked */
};

/* Reads up to @len bytes of the caller's memory; returns how many. */
typedef size_t (*sysargs_read_fn)(void *ctx, taddr_t addr, void *buf,
				  size_t len);

/*
 * What call @nr with @args, made with stack pointer @sp, is about to touch.
 * @ret is emptied first; ranges are in no order and may overlap. Memory that
 * cannot be read ends a walk: the kernel will not get further either.
 * SYSARGS_UNKNOWN when the walk gets too long or memory runs out.
 */
enum sysargs_class sysargs_get(long nr, const uint64_t args[6], taddr_t sp,
			       sysargs_read_fn read, void *ctx,
			       struct sysranges *ret);

/*
 * A call that was interrupted to be restarted, by its result register: the
 * kernel's private codes ERESTARTSYS and kin, or ENOSYS before it began.
 */
bool sysargs_in_flight(long nr, uint64_t result);

#endif
