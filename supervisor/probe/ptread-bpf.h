/*
 * ptread-bpf.h - what ptread.c and its BPF program say to each other. Included
 * by both, so only fixed-size types (__u32, __u64 of <linux/types.h>).
 */
#ifndef SMCO_PTREAD_BPF_H
#define SMCO_PTREAD_BPF_H

#include <linux/types.h>

#define PTREAD_MAX_SLOTS  512 /* ranges per call */
#define PTREAD_PT_ENTRIES 512
#define PTREAD_GROUP	  32 /* entries counted at a time */

enum ptread_status {
	PTREAD_OK = 0,
	PTREAD_NO_FILE = 1, /* no such descriptor in the calling process */
	PTREAD_NO_MM = 2,   /* the address space is gone */
	PTREAD_NO_BASE = 3, /* locate: no candidate fits */
};

enum ptread_flags {
	PTREAD_FIRST_HUGE = 1 << 0,  /* a 2 MiB mapping covers start */
	PTREAD_FIRST_YOUNG = 1 << 1, /* and its accessed bit is set */
	PTREAD_LAST_HUGE = 1 << 2,   /* the same for end - 1 */
	PTREAD_LAST_YOUNG = 1 << 3,
	PTREAD_GIGANTIC = 1 << 4, /* a 1 GiB mapping is among them */
};

/* One range: question and answer. */
struct ptread_slot {
	__u64 start;
	__u64 end; /* exclusive */
	__u64 first_touched;
	__u64 touched_end; /* all touched pages end before, to a group */
	__u32 nr_present;
	__u32 nr_touched;
	__u32 nr_huge;
	__u32 flags;
	__u32 want_aged; /* in; a scan takes it back */
	/* Pages whose set bit somebody else cleared; not all of them where
	 * pages are touched. */
	__u32 nr_aged;
	/* Of those that were asked: pinned for a device or a ring. */
	__u32 nr_pinned;
};

/* The one value of the shared array map. */
struct ptread_io {
	struct ptread_slot slots[PTREAD_MAX_SLOTS];
	__u64 pt[PTREAD_PT_ENTRIES +
		 PTREAD_GROUP]; /* scratch: one page table */
	__u8 content[64];	/* peek: first bytes of the page */
	__u64 vmemmap;		/* the array of struct page; 0 = not known */
	__u64 phys_mask;	/* as in ptread_arg */
};

/* Context of every program. */
struct ptread_arg {
	__s32 fd;   /* an open /proc/PID/pagemap of the calling process; piped:
		     * a pipe */
	__u32 nr;   /* scan: slots; locate: candidates */
	__u64 base; /* where the direct map begins; locate: first candidate */
	__u64 phys_mask; /* physical address bits of an entry */
	__u64 va;	 /* peek: which page */
	__u32 nr_levels; /* 4 or 5 */
	/* out: */
	__u32 status;	  /* enum ptread_status */
	__u64 task_size;  /* first address that is not user space */
	__u64 pte;	  /* peek: the leaf entry */
	__u64 leaf_bytes; /* peek: how much the leaf maps; 0 = none */
	__u32 nr_running; /* threads running on other CPUs now, if asked */
	__u32 want_running;
	__s32 running_cpu;  /* of one of them; -1 = not known */
	__s32 running_prio; /* its priority: below 100 real time */
	__s32 running_tid;  /* its number, as the kernel counts threads */
	__s32 displaced;    /* in, if want_running: such a number; 0 = none */
	__u32 is_displaced; /* that one waits for this CPU */
	__u32 first;	    /* scan: of the slots */
	__u64 cpu_mask;	    /* CPUs 0-63 that may have it loaded or had it */
	__u64 page[2];	    /* piped: struct page of a pipe's first buffers */
	__u64 page_bytes;   /* piped: size of one; 0 = without PG_young */
};

#endif
