/*
 * unfollowed.h - processes that are born to what we trace while its births are
 * not followed (tracer_follow_births()), and what they give birth to. The
 * kernel keeps the list, by BPF programs at fork, exec and exit: nobody stops.
 */
#ifndef SMCO_UNFOLLOWED_H
#define SMCO_UNFOLLOWED_H

#include <sys/types.h>

#include "reports/base.h"

struct unfollowed;

/* The tracees of this process, from now on. Some milliseconds. SMCO_PERM,
 * SMCO_UNSUPPORTED: no BPF here, or the kernel's numbers are not ours.
 * @counts: what they do will be asked for. */
int unfollowed_open(bool counts, struct unfollowed **ret, struct smco_err *err);
void unfollowed_close(struct unfollowed *u); /* NULL is fine */
/* Those that were born so far, ended ones too. */
uint64_t unfollowed_nr_born(const struct unfollowed *u);
/* There were more at a time than the kernel keeps in mind, so that not all are
 * known. */
bool unfollowed_is_full(const struct unfollowed *u);
/*
 * Does one of them run in the memory of process @pid, as after vfork? While
 * that one's threads stand, or wait for such a child, none comes; it goes by
 * itself. Where not all are known: yes.
 */
bool unfollowed_shares(const struct unfollowed *u, pid_t pid);
/* Up to @max of those that live, have memory of their own and were born before
 * @before_ns (CLOCK_MONOTONIC). Returns how many. */
size_t unfollowed_list(const struct unfollowed *u, uint64_t before_ns,
		       pid_t *ret, size_t max);
/* It is followed from now on, or cannot be. False: it has ended by now. */
bool unfollowed_forget(struct unfollowed *u, pid_t pid);

/* What the kernel has kept of all threads of theirs that have ended while they
 * were on the list. */
struct unfollowed_counts {
	uint64_t minor_faults, major_faults, switches, migrations, run_ns;
};
struct unfollowed_counts unfollowed_counts(const struct unfollowed *u);
/* Are there threads which do so at this moment, and are not yet in them? It is
 * a matter of microseconds, once they have a CPU. */
bool unfollowed_some_end(const struct unfollowed *u);

#endif
