/*
 * window.h - what was spent in the last 10 s along some axis (wall time or the
 * program's own time), in bounded memory. Private to control/.
 *
 * Time is cut into slots of at least a fortieth of a second; a window is a row
 * of whole slots that is at least 10 s long and would not be without its
 * oldest. So its ends are exact to one slot, or to the caller's tick where that
 * is longer, and what was spent is in it to the last nanosecond.
 */
#ifndef SMCO_CONTROL_WINDOW_H
#define SMCO_CONTROL_WINDOW_H

#include "reports/base.h"

#define WINDOW_NS      (10 * NSEC_PER_SEC)
#define WINDOW_SLOT_NS (NSEC_PER_SEC / 40)
#define WINDOW_SLOTS   512 /* > WINDOW_NS / WINDOW_SLOT_NS + 1, power of two */

/* Overheads saturate here: a million per cent. */
#define OVERHEAD_MAX_PPB (10000LL * 1000000000LL)

struct window_slot {
	uint64_t len_ns;   /* along the axis */
	uint64_t base_ns;  /* time the program had, monitoring included */
	uint64_t spent_ns; /* of that, on monitoring */
};

struct window {
	struct window_slot slots[WINDOW_SLOTS];
	uint32_t first;		    /* index of the oldest closed slot */
	uint32_t nr;		    /* closed slots */
	struct window_slot sum;	    /* of the closed slots */
	struct window_slot current; /* not closed yet */
	int64_t worst_ppb; /* worst whole window so far; -1: none yet */
};

void window_init(struct window *w);
/* @len_ns passed along the axis, in which the program had @base_ns. */
void window_advance(struct window *w, uint64_t len_ns, uint64_t base_ns);
void window_charge(struct window *w, uint64_t spent_ns);
/* The last window as it was before the last advance, and what came since: 10 s,
 * a slot and a tick at most, or all there was. Cheap. */
static inline uint64_t window_base_ns(const struct window *w)
{
	return w->sum.base_ns + w->current.base_ns;
}
static inline uint64_t window_spent_ns(const struct window *w)
{
	return w->sum.spent_ns + w->current.spent_ns;
}
/* The last window, up to this moment, shorter if less than 10 s passed. What
 * was charged since the last advance is not in it: its time is not known yet.
 */
struct window_slot window_last(const struct window *w);
/* Worst whole window so far, up to this moment; -1 if there was none yet. */
int64_t window_worst_ppb(const struct window *w);

/* spent / (base - spent), ppb, saturating at OVERHEAD_MAX_PPB. */
int64_t overhead_ppb(uint64_t base_ns, uint64_t spent_ns);

#endif
