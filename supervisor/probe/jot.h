/*
 * jot.h - the kernel writes down what threads have counted, so that nobody has
 * to wake up for it at each interval's end: a BPF program does it when a thread
 * leaves its CPU, and when it runs on from one interval into the next, then
 * late by up to a quarter of an interval and a tick of the scheduler's. What is
 * written is exact at the time that is written with it, and lies in the ring
 * that counter_thread_next reads.
 *
 * Counts that are not written down (too often in an interval, no room) are part
 * of what is written next, for they are sums.
 */
#ifndef SMCO_JOT_H
#define SMCO_JOT_H

#include <sys/types.h>

#include "reports/base.h"
#include "supervisor/probe/jot-bpf.h"
#include "supervisor/probe/tally.h"

struct jot;

/*
 * Intervals of @interval_ns, the first of which begins at @start_ns
 * (monotonic). @tally, or NULL: what it counts is written down, too, and it is
 * closed after this. SMCO_PERM or SMCO_UNSUPPORTED say what is missing, also
 * that we are in a container, whose numbers of threads are not the kernel's.
 */
int jot_open(uint64_t start_ns, uint64_t interval_ns, const struct tally *tally,
	     struct jot **ret, struct smco_err *err);
/*
 * A thread's events. Rings get the counts of their own groups. Other events
 * need no ring, for what they count is read where the kernel keeps it: each
 * must count at once whatever it counts. It stands behind the notes that go to
 * the first ring (jot_long_note).
 */
struct jot_events {
	const int *ring; /* those that lead their groups */
	size_t nr_rings;
	const int *direct;	  /* group by group */
	const int *direct_leader; /* those of them that lead theirs */
	size_t nr_direct, nr_direct_groups;
	int place; /* where its calls are tallied; -1: they are not */
};

/*
 * Thread @tid from now on. Returns its slot; SMCO_UNSUPPORTED: there are too
 * many, of threads, groups or events, or the kernel keeps the times of two
 * groups apart; SMCO_SYS.
 */
int jot_add(struct jot *j, pid_t tid, const struct jot_events *ev,
	    struct smco_err *err);
/* The thread of @slot, which must be on no CPU, has others now that are read
 * where they count. Errors as jot_add; then nothing of these is told. */
int jot_renew(const struct jot *j, int slot, const struct jot_events *ev,
	      struct smco_err *err);
/* No more, and before its events are closed. */
void jot_remove(struct jot *j, int slot, pid_t tid);
/* What is known of the thread now; costs no system call. */
struct jot_slot jot_look(const struct jot *j, int slot);
void jot_close(struct jot *j); /* NULL is fine */

#endif
