/*
 * top-naps.h - which of a summary's naps weigh most, where not all of them
 * can be shown one by one.
 */
#ifndef SMCO_TOP_NAPS_H
#define SMCO_TOP_NAPS_H

#include "reports/model.h"

struct top_nap {
	uint64_t index; /* in s->naps */
	double weight;
};

struct top_naps {
	struct top_nap *nap; /* owned; ascending by index; NULL: all naps */
	uint64_t nr;
};

/* The @max naps with most byte seconds, all of them if @max is 0. SMCO_NOMEM
 * and SMCO_SYS (a temporary file cannot be read) leave *ret empty. */
int top_naps(const struct summary *s, size_t max, struct top_naps *ret);
void top_naps_free(struct top_naps *top);

/* Index in s->naps of the @i-th. */
static inline uint64_t top_naps_at(const struct top_naps *top, uint64_t i)
{
	return top->nap ? top->nap[i].index : i;
}

#endif
