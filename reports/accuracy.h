/*
 * accuracy.h - how much of the ranges of variables a limited run found, by a
 * reference run of the same program that had no limit. After Huang, Seyster,
 * Callanan et al.: the accuracy of a variable is the size of the range found as
 * a share of the reference's, 0 if no value was seen, never above 1; of several
 * variables it is their mean. Of a variable that never changes it is 1 if it
 * was seen. Variables are grouped by how often the reference saw them assigned.
 */
#ifndef SMCO_ACCURACY_H
#define SMCO_ACCURACY_H

#include "reports/line.h"
#include "reports/model.h"

/* Decade k: 10^k to 10^(k + 1) - 1 assignments; 64 bits hold no more. */
#define ACCURACY_DECADES 20

struct accuracy_variable {
	const struct model_range *reference; /* it has a value */
	const struct model_range *run;	     /* NULL = not found */
	double accuracy;		     /* 0 to 1 */
	bool is_outside; /* had values that the reference had not */
	unsigned decade;
};

struct accuracy_group {
	uint64_t nr, nr_found;
	double accuracy; /* NAN = no variables */
};

struct accuracy {
	struct accuracy_variable *variable; /* owned; rarely assigned first */
	size_t nr;
	struct accuracy_group decade[ACCURACY_DECADES];
	/* The decade and those before it; [nr_decades - 1] is all. */
	struct accuracy_group up_to[ACCURACY_DECADES];
	unsigned nr_decades; /* up to the last one with a variable */
	uint64_t nr_outside;
	/* Of the reference, left out: looked at now and then only, so that
	 * nobody knows how often they were assigned. */
	uint64_t nr_polled;
	/* Sensors of the reference's that came late, or had to pause: less than
	 * 99 % of the time. The true range may be larger. */
	uint64_t nr_partly;
};

/* What both arguments have must outlive @ret, which accuracy_free ends.
 * SMCO_NOMEM. */
int accuracy_measure(const struct model_ranges *run,
		     const struct model_ranges *reference, struct accuracy *ret,
		     struct smco_err *err);
void accuracy_free(struct accuracy *a);

/* What the table is of. */
struct accuracy_traces {
	const struct summary *run, *reference;
	const char *run_path, *reference_path;
};
void accuracy_print_text(const struct accuracy *a,
			 const struct accuracy_traces *traces,
			 const struct page *page);
/* One JSON document; schema in reports/JSON.md. SMCO_NOMEM, SMCO_SYS. */
int accuracy_print_json(const struct accuracy *a,
			const struct accuracy_traces *traces, FILE *out,
			struct smco_err *err);

#endif
