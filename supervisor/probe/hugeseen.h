/*
 * hugeseen.h - when was a 2 MiB mapping last found touched by somebody who
 * then reset its accessed bit? A small hash from 2 MiB-aligned address to
 * time, for those who share the mapping. Forgetting is safe only by drop.
 */
#ifndef SMCO_HUGESEEN_H
#define SMCO_HUGESEEN_H

#include "reports/base.h"

struct hugeseen { /* all private; zero-initialised is empty */
	struct hugeseen_entry *entries;
	size_t nr_slots; /* 0 or a power of two */
	size_t nr_used;	 /* slots that are or were in use */
	/* Out of memory once: every mapping counts as touched at this time,
	 * so that nothing untrue is called unused. 0 = never. */
	uint64_t lost_ns;
};

void hugeseen_deinit(struct hugeseen *h);
/* The mapping at @addr (2 MiB-aligned) was found touched at @now_ns. */
void hugeseen_note(struct hugeseen *h, taddr_t addr, uint64_t now_ns);
/* The latest such time, 0 if none. */
uint64_t hugeseen_last(const struct hugeseen *h, taddr_t addr);
/* Forget mappings that lie entirely in [start, end). */
void hugeseen_drop(struct hugeseen *h, taddr_t start, taddr_t end);

#endif
