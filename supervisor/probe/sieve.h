/*
 * sieve.h - counts without what our stops are to the kernel: the wake-ups,
 * interrupts, and work of RCU, rseq and registers that perf's events would
 * count with the thread that stops, and its moves to other CPUs meanwhile.
 *
 * What is left out at a tracepoint is so for all of perf's events there,
 * others' too: of threads that we trace, in our stops.
 */
#ifndef SMCO_SIEVE_H
#define SMCO_SIEVE_H

#include <sys/types.h>

#include "reports/base.h"

struct sieve;

/* SMCO_PERM or SMCO_UNSUPPORTED say what is missing, also that we are in a
 * container, whose numbers of threads are not the kernel's. */
int sieve_open(struct sieve **ret, struct smco_err *err);
void sieve_close(struct sieve *s); /* NULL is fine */

/*
 * From now on also without the interrupts of CPUs that we have the kernel send,
 * to one CPU each: to read counters of a thread that runs there, to tell it
 * what we unmapped. SMCO_UNSUPPORTED, with nothing changed: before Linux 6.4.
 */
int sieve_heed_calls(struct sieve *s, struct smco_err *err);

enum sieve_kind {
	SIEVE_ANY,	  /* what is in a stop is left out */
	SIEVE_AFTER_RSEQ, /* and the first after one: rseq:rseq_update */
	SIEVE_AFTER_FPU,  /* the same: x86_fpu:x86_fpu_regs_activated */
	SIEVE_WAKING,	  /* and what wakes us: sched_waking, sched_wakeup */
	SIEVE_SIGNAL,	  /* or signals us: signal_generate */
	/* Begin and end of such interrupts: call_function_single_* */
	SIEVE_ENTRY,
	SIEVE_EXIT,
};
/*
 * Tracepoint @id has such a sieve as long as the descriptor that is returned is
 * open; the caller closes it, before @s. SMCO_SYS.
 */
int sieve_put(struct sieve *s, uint64_t id, enum sieve_kind kind,
	      struct smco_err *err);

/* So often it came back from a stop on another CPU than it stopped on. */
uint64_t sieve_nr_moves(const struct sieve *s, pid_t tid);
/* So often we took the CPU on which it ran. */
uint64_t sieve_nr_taken(const struct sieve *s, pid_t tid);
/* The thread has ended: its number may be another's soon. */
void sieve_forget(const struct sieve *s, pid_t tid);

#endif
