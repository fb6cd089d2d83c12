/*
 * diff-align.h - which line of a function in one build is which line of it in
 * another. Lines move when something above them is edited; calls keep their
 * order and what they call.
 */
#ifndef SMCO_DIFF_ALIGN_H
#define SMCO_DIFF_ALIGN_H

#include "reports/diff-run.h"

/* For the frames of a list of items, in order: equal places are the same
 * place in the source. 0 = only in its own list. */
struct diff_places {
	uint32_t **of; /* [item][frame], owned */
	size_t nr;
};

/*
 * Places of the frames of @nr_a items @a and @nr_b items @b. Frames of one
 * build are the same place if their line (or offset) is. Of two builds, the
 * lines of a function that call the same are laid against each other in order:
 * as many as possible, and so that few edits explain how they moved.
 * SMCO_NOMEM. Both results are freed with diff_places_free, also on failure.
 */
int diff_align(const struct diff_item *const *a, size_t nr_a,
	       const struct diff_item *const *b, size_t nr_b,
	       struct diff_places *ret_a, struct diff_places *ret_b);
void diff_places_free(struct diff_places *p);

/*
 * The core, for one function: positions @a and @b ascend, calls are what is
 * called there. match[i] becomes the index in @b of a's i-th, or UINT32_MAX.
 * @prior is how far lines have probably moved, from what stands above.
 * Too many positions to try (their product is above a million): only those
 * moved by @prior exactly. SMCO_NOMEM.
 */
struct diff_line {
	uint64_t pos;
	const char *call; /* in the pool; "" innermost */
};
int diff_align_lines(const struct diff_line *a, size_t nr_a,
		     const struct diff_line *b, size_t nr_b, int64_t prior,
		     uint32_t *match);

#endif
