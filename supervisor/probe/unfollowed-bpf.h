/* unfollowed-bpf.h - shared by unfollowed.c and its BPF programs. */
#ifndef SMCO_UNFOLLOWED_BPF_H
#define SMCO_UNFOLLOWED_BPF_H

#include <linux/types.h>

/* So many at a time. */
#define UNFOLLOWED_MAX 4096
/* So many sums of what they have done: the first of all that were born so, each
 * other one of a process that was let go. */
#define UNFOLLOWED_SLOTS 64

/* A process that was born unfollowed and lives, by its number; or a thread of a
 * followed process, by that one's; or a process that was let go. */
struct unfollowed_one {
	__u64 born_ns;
	__u32 owner; /* the process in whose memory it runs; 0 = its own */
	__u32 slot;  /* of a process that was let go; 0 = born unfollowed */
	__u32 nr_execs;
	__u32 has_ended;   /* let go; it stays until somebody takes it out */
	__u32 exit_status; /* as wait(2) has it */
	__u32 pad;
};

struct unfollowed_setup {
	int counts; /* what they have done is wanted */
};

/* A thread that stands: what it has done up to now was counted; or what it has
 * done since then is to be. */
struct unfollowed_thread {
	int tid;
	int is_back;
	__u32 slot;
};

struct unfollowed_sums {
	__u64 nr_born;
	__u64 nr_sharing; /* of those that live: in another's memory */
	__u64 nr_lost;	  /* there was no room for them */
	__u64 nr_ending;  /* threads that are about to leave their last CPU */
};

/* What the kernel has kept of threads that have ended, or are followed again.
 */
struct unfollowed_counted {
	__u64 run_ns, minor_faults, major_faults, switches, migrations;
};

#endif
