/*
 * diff-match.h - which thing of one run is which of another. Things with a
 * name go by the name; sites by their stacks, first exactly, then in looser
 * and looser ways, each thing at most once.
 */
#ifndef SMCO_DIFF_MATCH_H
#define SMCO_DIFF_MATCH_H

#include "reports/diff-run.h"

/* How a pair was found, strictest first. */
enum diff_how {
	MATCH_NONE,	 /* not at all: only one side is there */
	MATCH_EXACT,	 /* same functions, files and lines */
	MATCH_MOVED,	 /* lines moved, alike in all stacks */
	MATCH_CUT,	 /* one stack is the beginning of the other */
	MATCH_FUNCTIONS, /* same functions and files */
	MATCH_STEMS,	 /* but for files, template arguments, parameters */
	MATCH_INLINED,	 /* one stack lacks frames that the other has */
	MATCH_CALLERS,	 /* the same function allocates, callers differ */
	MATCH_NR,
};
const char *diff_how_name(enum diff_how how); /* "exact", "moved", ... */

struct diff_pair {
	uint32_t a, b; /* UINT32_MAX = not there */
	enum diff_how how;
	bool ambiguous; /* others would have fitted as well */
};

struct diff_pairs {
	struct diff_pair *pair; /* owned, freed with free() */
	size_t nr;
};

/*
 * Pair @nr_a items @a with @nr_b items @b. Every item is in exactly one of the
 * pairs: those of @a in their order, then those only in @b. What the loose
 * ways leave in doubt stays alone, and is called ambiguous; what has the same
 * functions is paired in the order of lines, and called ambiguous, too. Frames
 * of one build at different lines are never the same. SMCO_NOMEM.
 */
int diff_match(const struct diff_item *const *a, size_t nr_a,
	       const struct diff_item *const *b, size_t nr_b,
	       struct diff_pairs *ret);

#endif
