/* stopclock-bpf.h - shared by stopclock.c and its BPF programs. */
#ifndef SMCO_STOPCLOCK_BPF_H
#define SMCO_STOPCLOCK_BPF_H

#include <linux/types.h>

/* One per CPU. */
struct stopclock_sum {
	__u64 stop_ns;
	__u64 nr_stops;
	__u64 longest_ns;
};

#endif
