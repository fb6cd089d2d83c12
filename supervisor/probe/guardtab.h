/*
 * guardtab.h - the guarded ranges of one address space: disjoint, sorted,
 * each with a slot number in the table that the resident helper reads. Pure.
 */
#ifndef SMCO_GUARDTAB_H
#define SMCO_GUARDTAB_H

#include "reports/base.h"

/* Of a larger range it is the opening that a hit costs most: not what the next
 * hit of a small one will. Bytes. */
#define GUARD_SMALL (2u << 20)

struct guard_entry {
	taddr_t start;
	taddr_t end; /* exclusive */
	uint32_t prot;
	uint32_t slot;
	void *user;
};

struct guardtab {
	struct guard_entry *v; /* sorted by start */
	size_t nr;
	size_t cap;	      /* private */
	uint32_t *free_slots; /* private: a stack of slots given back */
	size_t nr_free;
	uint32_t next_slot; /* private */
	uint32_t max_slots;
};

void guardtab_init(struct guardtab *t, uint32_t max_slots);
void guardtab_deinit(struct guardtab *t);

/* Index of the first entry that ends after @addr; t->nr if none. It overlaps
 * [addr, end) if it starts before end. */
size_t guardtab_first(const struct guardtab *t, taddr_t addr);
/* An entry overlapping [start, end), or NULL. */
const struct guard_entry *guardtab_overlap(const struct guardtab *t,
					   taddr_t start, taddr_t end);
/* Adds [start, end) and gives it a slot. SMCO_BUSY when it overlaps another
 * or no slot is left, SMCO_FORMAT when empty, SMCO_NOMEM. */
int guardtab_add(struct guardtab *t, taddr_t start, taddr_t end, uint32_t prot,
		 void *user, uint32_t *slot_ret);
/* Removes the entry at @index; its slot may be given out again. */
void guardtab_remove(struct guardtab *t, size_t index);

#endif
