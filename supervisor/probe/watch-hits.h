/*
 * watch-hits.h - the hits of one thread's debug register, as the kernel writes
 * them into memory shared with us: where no BPF program may read the variable
 * at each of them. Room is for so many; no more are asked for, so that none is
 * lost.
 */
#ifndef SMCO_WATCH_HITS_H
#define SMCO_WATCH_HITS_H

#include "pmu/ring.h"
#include "supervisor/probe/watch-store.h"

struct watch_hits {
	/* private: */
	struct ring ring;
	struct perf_event_mmap_page *page; /* NULL: none */
	size_t page_bytes;
};
struct watch_hit {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	/* The registers are known: the program itself wrote, in 64-bit code. */
	bool has_state;
	struct watch_state state;
};

/* What the event has to be opened with, beside what it is. */
void watch_hits_attr(struct perf_event_attr *attr);
/* With room for @most hits, or as many as are to be had. @fd stays the
 * caller's. SMCO_PERM: no more memory may be locked. */
int watch_hits_open(struct watch_hits *h, const struct perf_event_attr *attr,
		    int fd, int64_t most, struct smco_err *err);
/* Before @fd is closed, which the memory would keep armed. */
void watch_hits_close(struct watch_hits *h);
/* How many may be there unread. */
int64_t watch_hits_room(const struct watch_hits *h);
/* The next one; false: there is none now. */
bool watch_hits_next(struct watch_hits *h, struct watch_hit *ret);

#endif
