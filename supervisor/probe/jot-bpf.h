/* jot-bpf.h - shared by jot.c and its BPF programs. */
#ifndef SMCO_JOT_BPF_H
#define SMCO_JOT_BPF_H

#include <linux/types.h>

#include "supervisor/probe/tally-bpf.h"

#define JOT_MAX_THREADS 4096
#define JOT_MAX_GROUPS	4  /* of a thread */
#define JOT_MAX_DIRECT	40 /* events of it that are read where they count */

/* The grid of intervals. */
struct jot_grid {
	__u64 start_ns, interval_ns; /* 0 = not yet told */
};

/* When the interval of @ns began. */
static inline __attribute__((always_inline)) __u64
jot_edge(const struct jot_grid *g, __u64 ns)
{
	return ns < g->start_ns ? 0 : ns - (ns - g->start_ns) % g->interval_ns;
}

/* One thread. Monotonic ns; 0 = not yet. */
struct jot_slot {
	__u64 arrived_ns; /* on a CPU, last */
	__u64 left_ns;	  /* and off it */
	/* On a CPU for the first time since its counts were written down. */
	__u64 first_ns;
	__u64 written_ns; /* they were */
	__u64 cost_ns;	  /* of all this so far */
	__u64 nr_written; /* in the interval of written_ns */
};

/* Goes along with the counts. */
struct jot_note {
	__u64 at_ns, first_ns; /* first_ns: of its slot until then */
	__u64 leaves;	       /* it is leaving its CPU, which is a switch */
	__u64 arrived_ns;      /* of its slot */
};

/*
 * Events that no ring may have, for new tasks inherit them: the kernel's
 * addresses of them; until these are found, our descriptors.
 */
struct jot_direct {
	__u64 beside; /* who leads the group of the first ring */
	__u64 nr;     /* of event[]; 0 = not yet found, or none */
	__u64 nr_wanted, nr_groups;
	__u64 tallied;		      /* its place there + 1; 0 = not */
	__u64 leader[JOT_MAX_GROUPS]; /* those of event[] that lead groups */
	__u64 event[JOT_MAX_DIRECT];
};

/* Behind the note that goes to the first of the slot's rings stands of each
 * group of such events by how much its time is ahead of that ring's group, what
 * is tallied of the thread, and what such events have counted. */
struct jot_long_note {
	struct jot_note note;
	__u64 ahead_ns[JOT_MAX_GROUPS];
	__u64 tally[TALLY_COLUMNS];
	__u64 count[JOT_MAX_DIRECT];
};

/* Whose events are to be found. */
struct jot_ask {
	__u32 slot;
};

#endif
