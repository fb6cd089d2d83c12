/*
 * bits-cost.h - what the monitored program pays for accessed bits on this
 * machine, measured once per supervisor in a child that does nothing else.
 */
#ifndef SMCO_BITS_COST_H
#define SMCO_BITS_COST_H

#include "reports/base.h"

struct bits_cost {
	uint64_t touch_ns;     /* first touch of a page after its reset */
	uint64_t shootdown_ns; /* interrupt to another CPU per range reset */
};

/* Measured at the first call (20 to 60 ms), remembered afterwards. Where other
 * CPUs are too busy for that, shootdown_ns is on the high side; with one CPU it
 * is 0. */
int bits_cost_get(struct bits_cost *ret, struct smco_err *err);

#endif
