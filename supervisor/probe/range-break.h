/*
 * range-break.h - sites where no jump has room: a breakpoint at an instruction
 * (watch.h) finds there what a sensor would. Pure.
 */
#ifndef SMCO_RANGE_BREAK_H
#define SMCO_RANGE_BREAK_H

#include "supervisor/probe/range-site.h"

struct range_windows;

struct range_break {
	uint64_t addr; /* the file's, of the instruction at the gap */
	struct range_site site;
};

/* Does it say the value of a variable? */
bool range_break_can_read(const struct range_site *s);
/* Those whose instruction runs where it is: none that a window moves away. */
void range_breaks_settle(struct range_windows *w);
/* The registers that they read are needed there: no sensor may take them. */
void range_breaks_need(const struct range_windows *w, const struct variables *v,
		       struct range_code *code);
/* Are they at instructions of this code? */
bool range_breaks_fit(const struct range_windows *w,
		      const struct range_code *code);

#endif
