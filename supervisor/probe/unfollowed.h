/*
 * unfollowed.h - processes that are born to what we trace while its births are
 * not followed (tracer_follow_births()), those that were let go for a while,
 * and what they give birth to. The kernel keeps the list, by BPF programs at
 * fork, exec and exit: nobody stops.
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
 * @before_ns (CLOCK_MONOTONIC); none that was let go. Returns how many. */
size_t unfollowed_list(const struct unfollowed *u, uint64_t before_ns,
		       pid_t *ret, size_t max);
/* It is followed from now on, or cannot be. False: it has ended by now. */
bool unfollowed_forget(struct unfollowed *u, pid_t pid);
/* Process @pid, whose threads all stand, is about to be let go, and has @slot
 * from now on (1 to UNFOLLOWED_LET_GO). SMCO_BUSY: there is no room for it on
 * the list. */
#define UNFOLLOWED_LET_GO 63
int unfollowed_let_go(struct unfollowed *u, pid_t pid, unsigned slot,
		      struct smco_err *err);
/* Is @pid, which was let go, still there? Then *@nr_execs is how often it has
 * begun another program since; else *@exit_status how it has ended, as wait(2)
 * has it, or -1, and it is to be taken from the list. */
bool unfollowed_lives(const struct unfollowed *u, pid_t pid, unsigned *nr_execs,
		      int *exit_status);

/* Of thread @tid, which stands, somebody else has counted all up to now, and
 * what it does from now on is counted here. */
void unfollowed_count_from(struct unfollowed *u, pid_t tid);
/* The other way round; what it has done in between is in its process's sum
 * now. */
void unfollowed_count_to(struct unfollowed *u, pid_t tid, unsigned slot);
/* What the kernel has kept of all threads of those in @slot that have ended
 * while they were on the list, or have left it; 0: of all that were born so. */
struct unfollowed_counts {
	uint64_t minor_faults, major_faults, switches, migrations, run_ns;
};
struct unfollowed_counts unfollowed_counts(const struct unfollowed *u,
					   unsigned slot);
/* Are there threads which do so at this moment, and are not yet in them? It is
 * a matter of microseconds, once they have a CPU. */
bool unfollowed_some_end(const struct unfollowed *u);

#endif
