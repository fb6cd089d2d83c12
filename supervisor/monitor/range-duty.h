/*
 * range-duty.h - which functions have their sensors in, and for how long. Pure:
 * time, costs and room come in as arguments.
 *
 * All are in at first. What a function costs is known as soon as it has run
 * with its sensors in. The cold ones, which together stay well below the
 * target, are in all the time; the hot ones are in for slices. A slice begins
 * when nothing is owed, on the credit of the window, and is worked off after.
 */
#ifndef SMCO_RANGE_DUTY_H
#define SMCO_RANGE_DUTY_H

#include "supervisor/control/control.h"

struct range_duty_function {
	bool is_in;
	bool want_in; /* as decided by the last step */
	bool is_hot;
	uint64_t rate_ppb;   /* cost while in, of the time; the last known */
	uint64_t watched_ns; /* how long it was in so far */
};

struct range_duty {
	enum controller_kind kind;
	int64_t m_t_ppb; /* INT64_MAX: no bound */
	/* private: */
	uint64_t slice_end_ns; /* 0: no slice is on */
	uint64_t last_ns;
	uint64_t pause_ns; /* until what is owed will have been worked off */
	uint64_t peak_ppb; /* the most that all together cost, of late */
};

struct range_duty_state {
	uint64_t now_ns;
	int64_t room_ns;	/* ledger_room_ns */
	int64_t window_room_ns; /* ledger_window_room_ns */
	uint64_t stop_ns;	/* what it costs to put some in, or out */
};

void range_duty_init(struct range_duty *d, enum controller_kind kind,
		     int64_t target_overhead_ppb, uint64_t now_ns);

/*
 * Decide. @cost_ns[i] is what function i cost since the last step, 0 where it
 * was out. Sets want_in of each; true if any differs from is_in. Whoever acts
 * upon it sets is_in.
 */
bool range_duty_step(struct range_duty *d, struct range_duty_function *fn,
		     const uint64_t *cost_ns, size_t nr,
		     const struct range_duty_state *s);
/* When the next step should be. */
uint64_t range_duty_due_ns(const struct range_duty *d,
			   const struct range_duty_function *fn, size_t nr);

#endif
