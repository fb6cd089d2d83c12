/*
 * site.h - totals by allocation site (the stack of the allocation). A growing
 * array by stack id; ids are small and dense.
 */
#ifndef SMCO_SITE_H
#define SMCO_SITE_H

#include "reports/record.h"

struct sites {
	struct ev_site *site; /* index = stack id */
	bool *dirty;	      /* changed since last emitted */
	uint32_t nr;
};

void sites_deinit(struct sites *s);
/* The site of @stack, marked dirty; NULL when out of memory. */
struct ev_site *sites_get(struct sites *s, uint32_t stack);
/* Emit dirty ones. @time_ns: session time. */
void sites_emit(struct sites *s, uint64_t time_ns,
		void (*emit)(void *ctx, const struct record *r), void *ctx);

#endif
