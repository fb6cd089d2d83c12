/*
 * sieve-bpf.h - what sieve.bpf.c and sieve.c share.
 */
#ifndef SMCO_SIEVE_BPF_H
#define SMCO_SIEVE_BPF_H

#include <linux/types.h>

#define SIEVE_MAX_THREADS 16384
#define SIEVE_MAX_CPUS	  4096

/* What a stop leaves behind, to be met on the way back to the program. */
#define SIEVE_RSEQ 1 /* its rseq area is written anew */
#define SIEVE_FPU  2 /* its registers are loaded, if somebody used the CPU's */

/* Of a thread that has stopped. */
struct sieve_thread {
	/* SIEVE_*: not yet met since it left its CPU in a stop, and before that
	 * by itself. */
	__u32 left, own;
	/* Where it is, and where it would be without stops: they may move it,
	 * and it may go back later by itself. */
	__u32 cpu, home;
	/* It came back from a stop on another one, or went home: so often. */
	__u64 nr_moves;
	/* We took its CPU, while it ran: so often, and just now. */
	__u64 nr_taken;
	__u32 is_taken;
	__u32 is_held;	/* it left its CPU for us, in a stop or taken */
	__u64 fpu;	/* as x86_fpu's tracepoints name it; 0: not met yet */
	__u32 fpu_cpu;	/* where its registers were loaded last */
	__u32 has_kept; /* them, when it last came back by itself */
};

/* Whose registers were loaded last on a CPU: by anybody, and but for us. */
struct sieve_loaded {
	__u64 any, theirs;
};

/* A function call that we sent to a CPU, by an interrupt. */
enum sieve_call {
	SIEVE_NO_CALL,
	SIEVE_SENT,
	SIEVE_IN_CALL,
	SIEVE_CALLED, /* its last event may be to come */
};

#endif
