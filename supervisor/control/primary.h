/*
 * primary.h - the three laws that share the budget out, as plain state and
 * pure steps. Private to control/; control.c feeds them.
 */
#ifndef SMCO_CONTROL_PRIMARY_H
#define SMCO_CONTROL_PRIMARY_H

#include "supervisor/control/fixed.h"

struct primary {
	enum controller_kind kind;
	bool is_unlimited;
	bool is_off;	      /* target 0: nothing is ever due */
	int64_t m_gt_fine;    /* global target */
	int64_t m_lt_fine;    /* local target, the output */
	int64_t offset_fine;  /* cascade: sum of K_I e */
	int64_t inv_gain_ppb; /* 1 / K_I */
	int64_t active_fine; /* cascade: what the plants use, its recent peak */
	uint64_t interval_ns;
	/* Whole run, for the ad hoc and the global law. */
	uint64_t total_run_ns, total_p_ns;
};

/* What happened in one interval. */
struct primary_sample {
	uint64_t elapsed_ns; /* wall time it took */
	uint64_t run_ns;     /* the program's time in it */
	uint64_t p_ns;	     /* processing in it */
	/* What p would have been had every plant been armed when it was due;
	 * at least p_ns. More means that somebody else limits us. */
	uint64_t demand_ns;
	/* Plants waiting for the next turn after an event, at this moment:
	 * sum of p / (tau + p + d) of their last cycles, and sum of p. What
	 * they will use, even if in this interval none of them was due. */
	uint64_t active_ppb;
	uint64_t active_p_ns;
};

void primary_init(struct primary *p, const struct control_params *params);
/* The number of plants is now @n. */
void primary_resize(struct primary *p, uint32_t n);
/* End of an interval with @n plants. */
void primary_step(struct primary *p, uint32_t n,
		  const struct primary_sample *sample);
/* Global law: may anything be armed? True for the other laws, if not off. */
bool primary_is_on(const struct primary *p);
/* Secondary: d = max(0, p / m_lt - (tau + p)), rounded up; of m_lt @part of
 * CONTROL_WHOLE. */
uint64_t primary_delay_ns(const struct primary *p, uint64_t tau_ns,
			  uint64_t p_ns, uint32_t part);

#endif
