/*
 * stopclock.h - what ptrace stops cost the monitored program, measured by the
 * kernel's scheduler through BPF: for every task traced by this process, from
 * the moment it leaves the CPU in a stop until it is let go, and on until it is
 * on a CPU again as far as that was idle or ours; but no more of it than other
 * traced tasks left of the CPUs meanwhile, for these are early by as much.
 * Those of tasks that sleep, and go back to that, do not count, and of many
 * that had something else to do no more at once than there are CPUs. Exact
 * where the supervisor can only guess: it neither sees when a task stopped nor
 * when a resumed one really ran. What the task itself computes in the kernel to
 * stop and to go on has to be told (stopclock_set_own). About 0.1 us per stop.
 *
 * A stop counts when it has ended. Stops of job control (PTRACE_LISTEN) do
 * not count.
 *
 * Where the kernel knows what a host took of its CPUs, and it took one while
 * this process was on it, that is neither in a stop that began and ended there
 * nor in waits for this process: whoever were there would have lost it.
 */
#ifndef SMCO_STOPCLOCK_H
#define SMCO_STOPCLOCK_H

#include <sched.h>

#include "reports/base.h"

struct stopclock;

struct stopclock_reading {
	uint64_t stop_ns;  /* sum over tasks */
	uint64_t nr_stops; /* that ended */
	/* Stops of which the kernel did not tell the end (of one in some ten
	 * thousand), or of threads for which there was no room. They
	 * are in no other number here. */
	uint64_t nr_unseen;
	uint64_t longest_ns;
	/* Tasks were ready to run and waited for a CPU while this process ran,
	 * there or on another one: its CPU time that the program missed, each
	 * ns once, however many waited. Not of stopped tasks, but of those as
	 * well that woke one of the program's lately, traced or not: it waits
	 * for what they do. */
	uint64_t displaced_ns;
	/* How often somebody had to go for us: not who woke up meanwhile. */
	uint64_t nr_displaced;
	/* They were ready to run and waited for CPUs, whoever ran there, sum
	 * over tasks; what of it is in stop_ns is not in here. It may go down a
	 * little. */
	int64_t waited_ns;
	/* Strangers ran: neither those nor this process, nor who woke one of
	 * those, or was woken by one, in the last second. Told when they leave
	 * their CPU, sum over CPUs. */
	uint64_t strange_ns;
};

/* stopclock_open() in two steps: what takes long, by any thread, and then, by
 * the one that would call that, what makes it count; it is closed on errors. */
int stopclock_load(struct stopclock **ret, struct smco_err *err);
int stopclock_begin(struct stopclock *c, struct smco_err *err);
/* From now on. SMCO_PERM or SMCO_UNSUPPORTED say what is missing. */
int stopclock_open(struct stopclock **ret, struct smco_err *err);
/* The same for at most @nr_tasks at a time, not 0: the traced ones, and, while
 * these and those are no more than half of it, those that woke them or were
 * woken by them. Stops of others are in nr_unseen, nothing else of theirs is
 * anywhere. stopclock_open(): 16 384, 3.6 MB of the kernel's memory. */
int stopclock_open_sized(struct stopclock **ret, uint32_t nr_tasks,
			 struct smco_err *err);
/* Sums since open; about 1 us. */
int stopclock_read(struct stopclock *c, struct stopclock_reading *ret);
/*
 * As of the last reading, which CPU is for this process on @here to use, so
 * that nobody waits for it: @here, if nobody had to go for it there, or has
 * another one by now; else one of @may that is idle; -1 = none.
 */
int stopclock_idle_cpu(const struct stopclock *c, int here,
		       const cpu_set_t *may);
struct stopclock_sum;
/* The same of @nr CPUs' @sums. */
int stopclock_choose(const struct stopclock_sum *sums, int nr, int here,
		     const cpu_set_t *may);
/*
 * As of the last reading, taken by this thread, which is on CPU @here: does
 * thread @tid compute, or would, but that we have its CPU? -1: not known, for
 * threads have other numbers outside of our PID namespace.
 */
int stopclock_computes(const struct stopclock *c, int here, pid_t tid);
/* The same of @nr CPUs' @sums, read by thread @own. */
int stopclock_has_cpu(const struct stopclock_sum *sums, int nr, int here,
		      pid_t own, pid_t tid);
/* Set it to 1 while a task is let go to make a call of ours, in which its stop
 * goes on; else 0. NULL: each such call ends one stop and begins another. */
uint32_t *stopclock_lending(struct stopclock *c);
/* On which CPU thread @tid stopped last, of the first 240; -1: not known, for
 * one of others, or if another has stopped there since. @clock: the stop clock.
 * A thread that has only just stopped may be told of where it did before; in a
 * PID namespace it is not known, or of another thread that is traced and has
 * this number outside: good enough for where to wait, for nothing else. */
int stopclock_where(const void *clock, pid_t tid);
/* Each stop that counts from now on costs @ns more: what its task needs to stop
 * and to go on is its own CPU time, which is not seen. 0 at first. */
void stopclock_set_own(struct stopclock *c, uint64_t ns);
void stopclock_close(struct stopclock *c); /* NULL is fine */

#endif
