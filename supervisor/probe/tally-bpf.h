/* tally-bpf.h - shared by tally.c, its BPF program and the one of jot.c. */
#ifndef SMCO_TALLY_BPF_H
#define SMCO_TALLY_BPF_H

#include <linux/types.h>

#define TALLY_MAX_THREADS  32768
#define TALLY_CALL_COLUMNS 16
#define TALLY_HITS	   8 /* other tracepoints: the columns behind these */
#define TALLY_COLUMNS	   (TALLY_CALL_COLUMNS + TALLY_HITS)
#define TALLY_ABIS	   2 /* 64 bits, and calls as a program of 32 has them */
#define TALLY_CALLS	   512 /* numbers below that have a column each */

/* What one thread has called, and hit, so far, by column. */
struct tally_counts {
	__u64 nr[TALLY_COLUMNS];
};

/* The column of each number; behind them that of all others. */
struct tally_columns {
	__u8 of[TALLY_ABIS][TALLY_CALLS + 1];
};

#endif
