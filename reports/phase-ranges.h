/*
 * phase-ranges.h - the values that variables had in each phase, joined over
 * processes and files as variables are (ranges.h). Part of the model (model.h).
 *
 * What sensors saw in a piece of time is a phase's if the process was in it all
 * of that time, in any of its threads; if it was in it for a part, it may be.
 */
#ifndef SMCO_PHASE_RANGES_H
#define SMCO_PHASE_RANGES_H

#include "reports/hindex.h"
#include "reports/trace.h"

struct model_phases;
struct model_ranges;

struct model_phase_range {
	uint32_t phase;			/* index of the model's */
	const struct trace_frame *decl; /* as in model_range; never NULL */
	const char *type;
	bool is_signed;
	/* Of all that was or may have been in it; as enum range says. */
	int64_t smallest, largest;
	bool has_sure; /* the rest is 0 without */
	int64_t sure_smallest, sure_largest;
	uint32_t range; /* private: of model_ranges before it is sorted */
};

/* Zero-initialise, model_phase_ranges_free at the end. */
struct model_phase_ranges {
	struct model_phase_range *range; /* by phase, then by declaration */
	size_t nr, cap;
	/* private: */
	struct hindex index;
};

/* Take in an EV_PHASE_RANGE record of @file, whose variable is in @ranges. 0 or
 * SMCO_NOMEM. */
int model_phase_ranges_take(struct model_phase_ranges *m,
			    struct model_phases *phases,
			    const struct model_ranges *ranges,
			    struct trace_reader *reader, uint32_t file,
			    const struct record *r);
/* After the last record, and before model_ranges_finish. */
void model_phase_ranges_finish(struct model_phase_ranges *m,
			       const struct model_ranges *ranges);
void model_phase_ranges_free(struct model_phase_ranges *m);

/* A bound as a number: exact for unsigned ones, too. */
long double phase_range_number(const struct model_phase_range *r,
			       int64_t bound);

#endif
