/*
 * record.h - the logical record (JUWEL: EventID 32, Timestamp 64, ProcessorID
 * 32, ThreadID 32, Parameter 32 bits) and the typed payloads of the events
 * this product writes. What a reader returns is exactly what was written; how
 * it is stored is FORMAT.md's and trace.c's business.
 */
#ifndef SMCO_RECORD_H
#define SMCO_RECORD_H

#include "reports/base.h"

struct record {
	uint32_t event;	  /* enum event_id */
	uint64_t time_ns; /* since the session's start */
	uint32_t cpu;	  /* UINT32_MAX = unknown */
	uint32_t tid;	  /* 0 = the supervisor */
	uint32_t param;	  /* meaning per event */
	uint32_t payload_len;
	const void *payload; /* one of the structs below, by event */
};

/*
 * What times are told to, by the monitors that write them: no finer than they
 * are known, or than anybody can make use of. Finer ones cost bytes, and each
 * monitor says when it writes them. The schema has these units.
 */
#define NAP_UNIT_NS	    1000000u /* with naps of a second and more */
#define FLUSH_UNIT_NS	    1000000u /* records of what was so far */
#define LEDGER_UNIT_NS	    1000u
#define LEDGER_UNIT_PPB	    100000u  /* 0.01 % */
#define LOCAL_UNIT_PPB	    1000u    /* or a thousandth of it, if it is less */
#define COUNTS_TIME_UNIT_NS 100000u  /* with intervals of 100 ms and more */
#define COUNTS_UNIT_NS	    1000u    /* also cycles of the time stamp counter */
#define RANGE_UNIT_NS	    1000000u /* of processes of 100 ms and more */
#define SAMPLE_UNIT_NS	    250000u  /* with 1000 a second and less */

static inline uint64_t in_units(uint64_t v, uint64_t unit)
{
	return v - v % unit;
}

/* A unit of time for what is known to @ns: a thousandth of it or less, in a
 * power of ten, at most @most and at least 1. */
static inline uint64_t unit_for(uint64_t ns, uint64_t most)
{
	uint64_t unit = 1;
	while (unit < most && unit * 10 <= ns / 1000)
		unit *= 10;
	return unit;
}

enum event_id {
	EV_NAP = 1,	 /* a nap ended or is still on; param = object id */
	EV_SITE = 2,	 /* totals of one allocation site; param = stack id */
	EV_LEDGER = 3,	 /* overhead so far; param = live plants */
	EV_COVERAGE = 4, /* what was not watched; param = enum coverage_why */
	EV_PROCESS = 5,	 /* a process came or went; param = pid */
	EV_COUNTS = 6,	 /* counters of one thread in one interval; param =
			  * group; tid 0 = of the machine */
	EV_VARIABLE =
		7,     /* an integer variable of the program; param = its id */
	EV_RANGE = 8,  /* what values it had so far; param = its id */
	EV_SAMPLE = 9, /* where a thread was; param = stack id */
	EV_PHASE = 10, /* a phase was seen to end; param = its number */
	EV_PHASE_TOTAL = 11, /* all of a phase so far; param = its number */
	EV_PHASE_SPAN = 12,  /* those of an interval that have no record of
			      * their own; param = its number */
	EV_PHASE_RANGE = 13, /* what values a variable had in a phase so far;
			      * param = its id */
	EV_CONTROL = 14,     /* a controller's state has changed; param = the
			      * ledger's number of the monitor */
	EV_NR,
};

enum nap_flags {
	NAP_ONGOING = 1 << 0,	     /* had not ended when written */
	NAP_NEVER_ACCESSED = 1 << 1, /* not once since allocated */
	NAP_FREED = 1 << 2,	     /* ended by being freed */
	NAP_WRITES_ONLY = 1 << 3,    /* mechanism sees writes only */
	NAP_ENDED_READ = 1 << 4,     /* ended by a load */
	NAP_ENDED_WRITE = 1 << 5,    /* ended by a store */
	NAP_ENDED_SYSCALL = 1 << 6,  /* ended in the kernel; ended_syscall */
	NAP_END_NEARBY = 1 << 7,     /* ended_stack: seen running at that time,
				      * not proven */
	NAP_AT_EXIT = 1 << 8,	     /* program ended */
	NAP_UNWATCHED = 1 << 9,	     /* not the nap ended but its watching: it
				      * lasted at least that long */
	NAP_HEAD_UNSEEN = 1 << 10,   /* its first pages could not be watched:
				      * sampled stacks are copied past their
				      * end, which is below the block */
};

struct ev_nap {
	uint64_t addr;
	uint64_t size;	    /* bytes */
	uint64_t start_ns;  /* best estimate; session time */
	uint64_t length_ns; /* best estimate */
	uint64_t error_ns;  /* the true length is within +- this */
	uint64_t alloc_ns; /* when the block was allocated; 0 = before attach */
	uint32_t pid;
	uint32_t alloc_stack;  /* 0 = unknown */
	uint32_t ended_stack;  /* 0 = unknown */
	uint32_t last_stack;   /* who accessed it before; 0 = unknown */
	int32_t ended_syscall; /* -1 = none */
	uint32_t flags;	       /* enum nap_flags */
};

struct ev_site { /* cumulative; the last one of a site counts */
	uint64_t nr_allocs;
	uint64_t bytes; /* allocated in all */
	uint64_t live_bytes;
	uint64_t nr_live;
	uint64_t nr_watched; /* objects that were watched at least once */
	uint64_t nr_naps;
	uint32_t stack;
	uint32_t pad; /* zero */
};

struct ev_ledger { /* cumulative since the start */
	uint64_t run_ns;
	uint64_t spent_ns;
	uint64_t mech_ns[6]; /* enum ledger_mech order */
	uint64_t nr_known;   /* objects alive */
	uint64_t nr_armed;
	uint64_t nr_naps;
	int64_t recent_ppb;
	int64_t worst_window_ppb;
	uint64_t nr_stops;
	uint64_t longest_stop_ns;
};

/* Before the ledger's record of that moment; holds until the next one. */
struct ev_control {
	int64_t local_target_ppb; /* of the program's time, for each plant */
};

enum coverage_why {
	COVER_WATCHED = 0,	/* bytes and objects that were watched */
	COVER_BELOW_CUTOFF = 1, /* known only as a rule, not counted */
	COVER_NOT_ADMITTED =
		2, /* allocation rate above what the budget allows */
	COVER_NEVER_ARMED = 3, /* known, but never got a turn */
	COVER_NO_STACK = 4,  /* allocated before attach, or unwinding failed */
	COVER_SHARED = 5,    /* shared, locked, pinned, huge, device pages;
			      * copied with sampled stacks */
	COVER_MECHANISM = 6, /* mechanism missing; text says which and why */
	COVER_LOST = 7,	     /* events lost */
	COVER_SHORT_LIVED = 8, /* gone sooner than the shortest nap is long */
	COVER_NR,
};

struct ev_coverage {
	uint64_t nr_objects;
	uint64_t bytes;
};

struct ev_process {
	uint32_t pid;
	uint32_t ppid;
	int32_t exit_status; /* wait status; -1 while alive */
	uint32_t why;	     /* 0 launched 1 attached 2 forked 3 execed 4 ended
			      * 5 detached */
};

#define EV_COUNTS_MAX 16

struct ev_counts { /* since the thread's record before of this group */
	uint32_t pid;
	uint32_t nr;	     /* values used; the rest is 0 */
	uint64_t length_ns;  /* of the interval, which ends at record.time_ns */
	uint64_t enabled_ns; /* of that, it ran and was to be counted */
	uint64_t missed_ns;  /* of that, nothing was counted: others had the
			      * counters, or the budget was used up */
	/* As counted; to be scaled by enabled / (enabled - missed). What they
	 * are stands in the keys counter.GROUP.INDEX (FORMAT.md). */
	uint64_t value[EV_COUNTS_MAX];
};

enum variable_class {
	VARIABLE_INT,
	VARIABLE_CHAR,
	VARIABLE_BOOL,
	VARIABLE_ENUM
};

enum variable_flags {
	VARIABLE_SIGNED = 1 << 0,
	VARIABLE_PARAMETER = 1 << 1,
	VARIABLE_GLOBAL = 1 << 2, /* outside functions */
	VARIABLE_STATIC = 1 << 3, /* in memory for good */
	VARIABLE_ARRAY = 1 << 4,  /* its range is that of all elements */
	/*
	 * Not the variable itself, but what it was, plus offset, wherever it
	 * was the subscript of an array: declared at frame 2 of decl, with so
	 * many elements. Its range has a sign.
	 */
	VARIABLE_SUBSCRIPT = 1 << 5,
	/* It is this array whatever the subscript was; otherwise only if some
	 * were inside of it. */
	VARIABLE_SURE_ARRAY = 1 << 6,
};

struct ev_variable {
	uint64_t elements; /* of an array; 0 = unknown, or none */
	/* Stack id. Frame 0: its qualified name, where it is declared, and the
	 * module; frame 1: the name of its type. */
	uint32_t decl;
	uint32_t bits;	 /* of its type, or of the bit-field */
	uint32_t class_; /* enum variable_class */
	uint32_t flags;	 /* enum variable_flags */
	/* 0, or stack id whose frame 0 names why it cannot be watched. */
	uint32_t unwatched;
	int32_t offset; /* VARIABLE_SUBSCRIPT, else 0 */
};

enum range_flags {
	RANGE_POLLED = 1 << 0, /* looked at now and then */
	RANGE_SENSED = 1 << 1, /* seen at assignments */
	/* The enum has no such enumerator, and no sum of flags is it. */
	RANGE_ODD_SMALLEST = 1 << 2,
	RANGE_ODD_LARGEST = 1 << 3,
	RANGE_WATCHPOINT = 1 << 4, /* seen when written, by whomever */
	RANGE_BREAKPOINT = 1 << 5, /* seen where no sensor has room */
	/* It was not seen assigned: what it had when the watch began. */
	RANGE_INITIAL = 1 << 6,
	/* It had the value odd, too, which names no enumerator, either. */
	RANGE_ODD_BETWEEN = 1 << 7,
};

struct ev_range { /* cumulative; the last of a variable and process counts */
	int64_t smallest; /* as 64 bits; unsigned ones as they are */
	int64_t largest;
	uint64_t hits;	     /* values seen: at assignments, and looks */
	uint64_t watched_ns; /* how long every assignment was seen */
	uint64_t alive_ns;   /* how long the process was there to be watched */
	uint32_t pid;
	uint32_t flags; /* enum range_flags */
	int64_t odd;	/* RANGE_ODD_BETWEEN, else 0 */
};

enum phase_range_flags {
	PHASE_RANGE_SURE = 1 << 0, /* the sure ones are there */
};

struct ev_phase_range {	  /* cumulative, of one process */
	int64_t smallest; /* as 64 bits; unsigned ones as they are */
	int64_t largest;
	/* Of values that were seen while it was surely in the phase; those
	 * above may be of moments before and behind. 0 without. */
	int64_t sure_smallest, sure_largest;
	uint32_t phase; /* its number */
	uint32_t pid;
	uint32_t flags; /* enum phase_range_flags */
	uint32_t pad;	/* zero */
};

enum sample_flags {
	SAMPLE_KERNEL = 1 << 0, /* it ran in the kernel; so do the stack's first
				 * frames, where they may be seen */
	SAMPLE_CUT = 1 << 1, /* the stack does not reach its outermost frame */
};

struct ev_sample {	 /* the thread is the record's, and so is the CPU */
	uint64_t weight; /* what it stands for: ns on a CPU, or events */
	uint64_t addr;	 /* of the data; 0 = not known */
	uint32_t pid;
	uint32_t flags; /* enum sample_flags */
};

enum phase_flags {
	PHASE_ONGOING = 1 << 0, /* had not ended when its process was left */
};

struct ev_phase { /* of the record's thread, until the record's time */
	uint64_t length_ns;
	uint32_t pid;	/* 0 = not known */
	uint32_t depth; /* how many phases the thread was in when it began */
	uint32_t flags; /* enum phase_flags */
	uint32_t pad;	/* zero */
};

struct ev_phase_span {	    /* of the record's thread; 0 = not known */
	uint64_t length_ns; /* of the interval, which ends at the record's
			     * time */
	uint64_t count;	    /* how often it was entered: of several threads
			     * together exact, of each by its share of those
			     * timed */
	uint64_t nr_seen;   /* how often that was timed */
	uint64_t seen_ns;   /* how long those lasted */
	uint32_t pid;	    /* 0 = not known */
	uint32_t pad;	    /* zero */
	uint64_t in_ns; /* how long the thread was in it, about, and one more;
			 * without what has records of its own; 0: as long
			 * as @count of the mean */
};

struct ev_phase_total {	  /* cumulative; the last one of each phase counts */
	uint64_t count;	  /* how often it began: exact */
	uint64_t nr_seen; /* how often that was timed */
	uint64_t seen_ns; /* how long those lasted */
	uint64_t longest_ns;
};

#endif
