/* tally-bpf.h - shared by tally.c, its BPF program and the one of jot.c. */
#ifndef SMCO_TALLY_BPF_H
#define SMCO_TALLY_BPF_H

#include <linux/types.h>

#define TALLY_MAX_THREADS 32768
#define TALLY_CLASSES	  7
#define TALLY_CALLS	  512 /* numbers below that have a class each */

/* What one thread has called so far, by class. */
struct tally_counts {
	__u64 nr[TALLY_CLASSES];
};

/* The class of each number; behind them that of all others. */
struct tally_classes {
	__u8 of[TALLY_CALLS + 1];
};

#endif
