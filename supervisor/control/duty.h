/*
 * duty.h - when guards may stand that cost the program for as long as they do
 * (each of its system calls is caught), whether or not anything is touched.
 * Pure.
 *
 * What they cost can be more than the budget. Taken away whenever the budget
 * is used up they would never stand for the length of a nap, cost all of it,
 * and find nothing. So they stand for spells a little longer than that
 * length, on credit, and a spell begins only when the window has room for all
 * that it will cost, by what the last ones did; the debt is then worked off
 * before the next. Where standing costs less than the budget a spell does not
 * end. Where even a window does not pay for one, a short one now and then
 * shows whether that is still so.
 */
#ifndef SMCO_DUTY_H
#define SMCO_DUTY_H

#include "reports/base.h"

struct duty {
	uint64_t hold_ns; /* a spell, if it is not cut short */
	/* private: */
	bool is_on;
	bool is_probe;	   /* cut short to learn the rate */
	bool has_rate;	   /* a spell has ended */
	uint64_t since_ns; /* of the spell, or of its end */
	uint64_t probe_ns; /* from the end of one to the next probe */
	uint64_t spent_ns; /* the ledger's sum when it began */
	uint64_t rate_ppb; /* of the time that one takes */
};

/* What the ledger says now. */
struct duty_state {
	uint64_t now_ns;
	uint64_t spent_ns; /* so far, by everything */
	int64_t room_ns;   /* ledger_quiet_room_ns */
	/* What the window of 10 s still has room for, and at most. */
	int64_t window_room_ns;
	int64_t window_most_ns;
};

void duty_init(struct duty *d, uint64_t nap_ns, uint64_t now_ns);
/* Once a tick. True: guards may stand until the next; when it was true before
 * and is false now, those that cost by standing must go. */
bool duty_step(struct duty *d, const struct duty_state *s);

#endif
