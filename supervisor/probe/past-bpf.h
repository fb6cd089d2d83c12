/* past-bpf.h - shared by tally.c and the BPF program of past.bpf.c. */
#ifndef SMCO_PAST_BPF_H
#define SMCO_PAST_BPF_H

#include <linux/types.h>

/* What the kernel has counted of thread @tid by itself since its birth. */
struct past {
	int tid; /* of the initial namespace */
	__u64 minor_faults, major_faults, switches;
	__u64 run_ns; /* on a CPU, as of the scheduler's last tick */
};

#endif
