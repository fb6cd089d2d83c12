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

struct jot;

/*
 * Intervals of @interval_ns, the first of which begins at @start_ns
 * (monotonic). SMCO_PERM or SMCO_UNSUPPORTED say what is missing, also that we
 * are in a container, whose numbers of threads are not the kernel's.
 */
int jot_open(uint64_t start_ns, uint64_t interval_ns, struct jot **ret,
	     struct smco_err *err);
/*
 * Thread @tid from now on; @fd: the @nr events that lead its groups, whose
 * rings get the counts. Returns its slot; SMCO_UNSUPPORTED: there are too many,
 * of threads or groups; SMCO_SYS.
 */
int jot_add(struct jot *j, pid_t tid, const int *fd, size_t nr,
	    struct smco_err *err);
/* No more, and before its events are closed. */
void jot_remove(struct jot *j, int slot, pid_t tid);
/* What is known of the thread now; costs no system call. */
struct jot_slot jot_look(const struct jot *j, int slot);
void jot_close(struct jot *j); /* NULL is fine */

#endif
