/*
 * access.h - was this memory touched? One interface, several mechanisms:
 *
 *	bits	 accessed bits of the page table by BPF, reset by MADV_COLD
 *	pagescan PAGEMAP_SCAN with async write-protect: writes only
 *	uffd	 userfaultfd write-protect: writes only, tells who, at once
 *	mprotect PROT_NONE guards: reads and writes, tells who, at once
 *
 * Polled mechanisms (bits, pagescan) answer in access_collect(); guards
 * (uffd, mprotect) also deliver hits as they happen. A guard covers its range
 * until the first hit or access_disarm(), then is open again as a whole.
 */
#ifndef SMCO_ACCESS_H
#define SMCO_ACCESS_H

#include "reports/base.h"
#include "supervisor/tracee/tracee.h"

struct access; /* one mechanism in one tproc */

enum access_sees {
	ACCESS_READS = 1 << 0,
	ACCESS_WRITES = 1 << 1,
	ACCESS_KERNEL = 1 << 2, /* accesses by system calls are seen too */
};

/* A page range to arm, or to ask about. Page-aligned. */
struct page_range {
	taddr_t start;
	taddr_t end; /* exclusive */
	void *user;  /* the caller's, handed back in hits */
	/* out of arm, in of collect: keep it between the two; 0 = not known.
	 * CLOCK_MONOTONIC. */
	uint64_t armed_ns;
	/* in of collect: fill nr_aged and nr_pinned, some 100 ns for each quiet
	 * page of a range that was not touched. */
	bool want_aged;
	/* in of arm: some of it is aged, which arm ends; else it may leave
	 * alone what was not touched. */
	bool was_aged;
	/* out of arm: */
	/* Pages whose bit was set and is now clear; one that several ranges
	 * have in common counts for one of them. */
	uint32_t nr_reset;
	/* Pages that arm could not reset: shared with another process since a
	 * fork, never written (zero page), locked, hugetlb. They look touched
	 * for ever: where nr_stuck > 0, what collect says of the range is no
	 * evidence of use (coverage "shared"). */
	uint32_t nr_stuck;
	/* Pages that arm could not reset yet, because they are new: they look
	 * touched, which is no evidence either; arm again in some ms. Not all
	 * are counted; 0 where it cannot be known. */
	uint32_t nr_waiting;
	/* out of collect; out of arm of a polled mechanism: just before it */
	uint32_t nr_present; /* pages with memory behind them */
	uint32_t nr_touched; /* touched since they were armed */
	/* out of collect: */
	uint32_t nr_huge;      /* 2 MiB mappings overlapping the range */
	taddr_t first_touched; /* a touched page; 0 if none */
	/* Pages that were accessed since they were armed (with was_aged), but
	 * somebody else (DAMON) cleared the bit, without telling the
	 * processors: what was accessed later may not have been seen either.
	 * Or by the kernel for a device, which sets none.
	 * Not counted in nr_touched. 0 where it cannot be known; need not be
	 * all of them where others are touched. */
	uint32_t nr_aged;
	/* Pages that the kernel has pinned for a device, or that are registered
	 * with a ring: their use leaves no mark at all, so that they are quiet
	 * is no evidence. Not all of them, as above. arm leaves it alone. Also
	 * where nothing can be watched any more. */
	uint32_t nr_pinned;
};

struct access_hit { /* guards only */
	struct page_range range;
	uint64_t time_ns;
	struct task *task; /* may be NULL; if stopped is set it is stopped and
			    * must be resumed by access_resume() */
	bool stopped;
	bool is_write;
	bool in_kernel; /* by a system call; syscall_nr says which */
	bool is_gap;	/* nobody touched it, the guard had to go (fork, a call
			 * whose memory cannot be known, mapping changed): time
			 * from here on was not watched, arm it again */
	long syscall_nr;
	taddr_t addr;
	uint64_t cost_ns; /* what this hit cost the thread so far */
};

struct access_ops {
	const char *name;
	unsigned sees; /* enum access_sees */
	bool is_guard; /* delivers hits */
	/* Can it work on this machine, with these rights? No process needed.
	 * 0, or SMCO_PERM or SMCO_UNSUPPORTED with cause, present value and
	 * remedy. NULL: only open() can tell. */
	int (*probe)(struct smco_err *err);
	/* Once, before any program is under control: what takes long (loading,
	 * calibration) and does not depend on the process. NULL = nothing. On
	 * failure open() will fail for the same reason and say so. */
	int (*prepare)(struct smco_err *err);
	/* After a prepare that succeeded; NULL = nothing is to be undone. */
	void (*unprepare)(void);
	/* Try it for real in @p (all tasks stopped or inside TEV_PROC_NEW);
	 * error message says what is missing. */
	int (*open)(struct tproc *p, struct access **ret, struct smco_err *err);
	/* Opens every guard, releases everything; registered for undo. */
	void (*close)(struct access *a);
	/* Supervisor's side only (process gone, exec). */
	void (*forget)(struct access *a);
	/* Watch from now on. Ranges may be in any order, must not overlap
	 * others that are armed as guards. Each range on its own: one that
	 * cannot be armed gets nr_reset = UINT32_MAX. */
	int (*arm)(struct access *a, struct page_range *r, size_t n);
	int (*disarm)(struct access *a, struct page_range *r, size_t n);
	/* What was touched since arm. Does not reset. Guards: a range that
	 * does not stand as it was armed gets nr_reset = UINT32_MAX. */
	int (*collect)(struct access *a, struct page_range *r, size_t n);
	/* A TEV_FAULT, TEV_SYSCALL_* event: true if it was ours. *hit.range is
	 * filled (range.user = the armed range's); the guard is open by then.
	 * range.user == NULL: ours, but nothing to report. In either case the
	 * task is resumed with tracer_resume(task, 0). False: the program's own
	 * business; a fault must be delivered, a syscall-stop resumed. More
	 * hits of the same event, and gaps, wait in next_hit. */
	bool (*on_event)(struct access *a, struct tevent *ev,
			 struct access_hit *hit);
	/* Guards with a queue of their own: next hit without waiting; false if
	 * none. To be called after each event and whenever tracer_wake() ended
	 * the wait. A task handed out stopped goes on with resume(). */
	bool (*next_hit)(struct access *a, struct access_hit *hit);
	/* The range is about to vanish (free, munmap) or did: forget it
	 * without touching memory that may be someone else's now. */
	void (*drop)(struct access *a, taddr_t start, taddr_t end);
	/* ns the tracee pays: per first touch of a reset page (polled), or per
	 * hit (guards), by calibration at open. */
	uint64_t (*touch_cost_ns)(const struct access *a);
	/* ns the tracee has paid for arming so far beyond touches (shootdowns,
	 * calls run in it) and beyond the stop clock; monotonic. */
	uint64_t (*side_cost_ns)(const struct access *a);
	/* ns that the tracee has waited for arming on its CPU, roughly; they
	 * are in no account yet when arm returns, and come to the waits for
	 * our thread's CPU time later. Monotonic. NULL = none. */
	uint64_t (*wait_cost_ns)(const struct access *a);
	/* Let the thread of a hit that next_hit delivered stopped run on. May
	 * be NULL: no such hits. */
	void (*resume)(struct access *a, const struct access_hit *hit);
	/* There is no room in the budget: let go of what costs the program
	 * while nothing is touched (stops at each system call while mprotect
	 * guards are armed). Guards end as gaps. May be NULL. */
	void (*relax)(struct access *a);
	/* The program is about to use userfaultfd itself: let go of all that
	 * is registered with ours, for good, and say so (refusal). Guards end
	 * as gaps; of a polled mechanism all is pinned from then on. NULL: it
	 * uses none. */
	void (*yield)(struct access *a);
	/* Why this process cannot be guarded (any more), for the report; NULL
	 * if it can. The operation itself may be NULL. */
	const char *(*refusal)(const struct access *a);
};

struct access {
	const struct access_ops *ops;
	struct tproc *proc;
};

extern const struct access_ops access_bits;
extern const struct access_ops access_pagescan;
extern const struct access_ops access_uffd;
extern const struct access_ops access_mprotect;

/* One line of the report on what could have been used. */
struct access_status {
	const struct access_ops *ops;
	bool is_untold; /* only open() can tell */
	int code;	/* 0 = works here, or enum smco_code; err says why */
	struct smco_err err;
};

#define ACCESS_NR 4 /* mechanisms there are */
/* Probe them all, in order of preference; takes some 100 ms. */
void access_probe_all(struct access_status ret[ACCESS_NR]);

#endif
