/* unfollowed-bpf.h - shared by unfollowed.c and its BPF programs. */
#ifndef SMCO_UNFOLLOWED_BPF_H
#define SMCO_UNFOLLOWED_BPF_H

#include <linux/types.h>

/* So many at a time. */
#define UNFOLLOWED_MAX 4096

/* A process that was born unfollowed and lives, by its number; or a thread of a
 * followed process, by that one's. */
struct unfollowed_one {
	__u64 born_ns;
	__u32 owner; /* the process in whose memory it runs; 0 = its own */
	__u32 pad;
};

struct unfollowed_setup {
	int counts; /* what they have done is wanted */
};

struct unfollowed_sums {
	__u64 nr_born;
	__u64 nr_sharing; /* of those that live: in another's memory */
	__u64 nr_lost;	  /* there was no room for them */
	__u64 nr_ending;  /* threads that are about to leave their last CPU */
	/* What the kernel has kept of those threads that have ended. */
	__u64 run_ns, minor_faults, major_faults, switches, migrations;
};

#endif
