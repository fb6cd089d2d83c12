/*
 * top-naps.h - which of a summary's naps weigh most, where not all of them
 * can be shown one by one.
 */
#ifndef SMCO_TOP_NAPS_H
#define SMCO_TOP_NAPS_H

#include "reports/model.h"

struct top_naps {
	uint32_t *index; /* owned; in s->nap, ascending */
	size_t nr;
};

/* The @max naps with most byte seconds, all of them if @max is 0. SMCO_NOMEM
 * leaves *ret empty. */
int top_naps(const struct summary *s, size_t max, struct top_naps *ret);
void top_naps_free(struct top_naps *top);

#endif
