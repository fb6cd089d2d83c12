/* mark-private.h - what sensors at marks share with us; mark*.c only. */
#ifndef SMCO_MARK_PRIVATE_H
#define SMCO_MARK_PRIVATE_H

#include "supervisor/probe/code.h"
#include "supervisor/probe/hook-shm.h"
#include "supervisor/probe/mark.h"

/* The tracee writes to it: hostile. */
struct mark_slot {
	uint64_t tsc;
	uint32_t tid;
	uint32_t seq; /* position + 1, written last */
	uint16_t run;
	uint8_t what;
	uint8_t pad;
	int32_t level;
	/* What writing it took, ticks, or more: bits that no stack pointer has.
	 */
	uint64_t sp : 48, took : 16;
};
_Static_assert(sizeof(struct mark_slot) == 32, "the stub shifts by five");

struct mark_channel {
	uint32_t run;	/* 16 bits; 0 = no records wanted */
	int32_t tokens; /* a passing takes one; below 0: run out */
	int32_t from;	/* who takes one of more than so many is not recorded */
	uint32_t pad;
};

/* The lowest byte of a thread's number says which owner it may be. */
#define MARK_OWN_STEP 10 /* bits: what an owner's counts take */

struct mark_data {
	uint32_t head; /* of the ring; wraps */
	uint32_t pad[15];
	struct mark_channel channel[MARK_MAX_CHANNELS];
	uint64_t count[MARK_MAX_COUNTERS]; /* of all that are no owners */
	/* The number of the thread that alone counts there; mark_owner_none:
	 * nobody. */
	uint32_t owner[MARK_OWNERS];
	uint64_t own[MARK_OWNERS][MARK_MAX_COUNTERS];
	struct mark_slot ring[MARK_RING];
};
_Static_assert(sizeof(uint64_t[MARK_MAX_COUNTERS]) == 1 << MARK_OWN_STEP,
	       "the stub shifts by it");
#define MARK_DATA_BYTES                                                        \
	((sizeof(struct mark_data) + TPAGE_SIZE - 1) & ~(TPAGE_SIZE - 1))

/* A number that leads no thread to owner @at. */
static inline uint32_t mark_owner_none(uint32_t at)
{
	return ~at;
}

struct mark_shm {
	unsigned nr_refs;
	struct mark_data *data;
	uint32_t tail;
	uint16_t last_run;
	uint64_t stuck_ns; /* since when the next one is awaited; 0 */
	struct tsc_map clock;
	uint32_t tid_offset;
	bool is_shared; /* nobody owns any more */
	/* What is true of owners; the tracee can write to mark_data's. */
	struct mark_owner {
		uint32_t number, pid; /* 0: free */
		bool was_used;	      /* there are counts */
	} owner[MARK_OWNERS];
	uint8_t used[MARK_OWNERS]; /* which were, one after the other */
	size_t nr_used;
};

/* Maps @fd, MARK_DATA_BYTES that are 0. */
struct mark_shm *mark_shm_create(int fd, struct smco_err *err);

struct mark_stub {
	struct code_buf code;
	/* Where each instruction of the window is in it, with its sensors. */
	uint32_t at[MARK_WINDOW_BYTES];
};
/*
 * The code that a window's jump leads to, into @ret->code. @bias is added to
 * the plan's addresses; @data is where the tracee has struct mark_data,
 * @tid_offset own_tid_offset's. Returns why it cannot be, or NULL.
 */
const char *mark_stub_build(struct mark_stub *ret, const struct mark_plan *plan,
			    const struct mark_window *w, uint64_t bias,
			    taddr_t data, uint32_t tid_offset);

#endif
