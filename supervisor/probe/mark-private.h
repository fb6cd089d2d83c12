/* mark-private.h - what sensors at marks share with us; mark*.c only. */
#ifndef SMCO_MARK_PRIVATE_H
#define SMCO_MARK_PRIVATE_H

#include "supervisor/probe/code.h"
#include "supervisor/probe/mark.h"

/* The tracee writes to it: hostile. */
struct mark_slot {
	uint64_t tsc;
	uint32_t tid;
	uint32_t what;
	uint32_t run;
	uint32_t seq; /* position + 1, written last */
	uint64_t sp;
};
_Static_assert(sizeof(struct mark_slot) == 32, "the stub shifts by five");

struct mark_channel {
	uint32_t run;	/* 0 = no records wanted */
	int32_t tokens; /* below 0: run out */
};

struct mark_data {
	uint32_t head; /* of the ring; wraps */
	uint32_t pad[15];
	struct mark_channel channel[MARK_MAX_CHANNELS];
	uint64_t count[MARK_MAX_COUNTERS];
	struct mark_slot ring[MARK_RING];
};

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
