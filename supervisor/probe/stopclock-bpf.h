/* stopclock-bpf.h - shared by stopclock.c and its BPF programs. */
#ifndef SMCO_STOPCLOCK_BPF_H
#define SMCO_STOPCLOCK_BPF_H

#include <linux/types.h>

#define STOPCLOCK_IDLE	    0xffffffffU
#define STOPCLOCK_STOP_CPUS 240 /* of which stops are told */
#define STOPCLOCK_MAX_TASKS 16384

/* By the supervisor, once. */
struct stopclock_setup {
	__u64 max_with_others; /* tasks of which something is kept, with which
				  those that it does not trace may be */
};

/* One per CPU. */
struct stopclock_sum {
	__u64 stop_ns;
	__u64 nr_stops;
	__u64 nr_unseen; /* stops of which only that is known */
	__u64 longest_ns;
	__u64 displaced_ns; /* they or partners waited while we had a CPU */
	__u64 nr_displaced; /* how often one had to go */
	__s64 waited_ns;    /* they waited for CPUs, whoever used those */
	__u64 strange_ns;   /* strangers ran: who woke none, nor was woken */
	/* Threads, as the kernel counts them; 0 = none, or none is known. */
	__u32 runs; /* who has this CPU now; STOPCLOCK_IDLE = nobody */
	__u32 took; /* who could have gone on when the supervisor came last */
};

/* By the supervisor, and for it. A page has room for it. */
struct stopclock_told {
	__u32 is_lent; /* whom it lets go now, it does for a call of its own */
	__u32 own_ns;  /* CPU time that a task needs to stop and to go on */
	__u32 nr_cpus; /* 0 = not known */
	/* Of each CPU: who stopped there last, as the kernel counts threads,
	 * and when. */
	__u32 stopped[STOPCLOCK_STOP_CPUS];
	__u64 stopped_ns[STOPCLOCK_STOP_CPUS];
};

/* What one CPU did lately. */
struct stopclock_cpu {
	/* of the supervisor or a traced task, if one runs here; else 0 */
	__u64 arrived_ns;
	__u64 used_ns; /* the CPU time that it had had by then */
	/* the supervisor did, since the CPU was idle or theirs */
	__u64 ran_ns;
	__u64 clock_offset; /* from the run queue's clock to ours */
	__u64 is_theirs;    /* a traced task runs here */
	/* A host had this CPU while the supervisor was on it, so far. */
	__u64 stolen_ns;
};

#endif
