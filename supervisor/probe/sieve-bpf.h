/*
 * sieve-bpf.h - what sieve.bpf.c and sieve.c share.
 */
#ifndef SMCO_SIEVE_BPF_H
#define SMCO_SIEVE_BPF_H

#include <linux/types.h>

#define SIEVE_MAX_THREADS 16384

/* What a stop leaves behind, to be met on the way back to the program. */
#define SIEVE_RSEQ 1 /* its rseq area is written anew */
#define SIEVE_FPU  2 /* its registers are loaded, if somebody used the CPU's */

/* Of a thread that has stopped. */
struct sieve_thread {
	/* SIEVE_*: not yet met since it left its CPU in a stop, and before that
	 * by itself. */
	__u32 left, own;
	__u32 cpu; /* which it left in a stop */
	__u32 unused;
	/* It came back from a stop on another one: so often. */
	__u64 nr_moves;
};

#endif
