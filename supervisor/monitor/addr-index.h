/*
 * addr-index.h - numbers by address, in order. Two steps of search, each in a
 * short sorted table: a tree of single nodes takes twenty, each of which waits
 * for memory.
 */
#ifndef SMCO_ADDR_INDEX_H
#define SMCO_ADDR_INDEX_H

#include "reports/base.h"

#define ADDR_INDEX_NONE 0 /* not a number that can be kept */

struct addr_leaf;

/* All zero is an empty one. */
struct addr_index {
	taddr_t *first; /* of each leaf; that of the first one is not used */
	struct addr_leaf **leaf;
	uint32_t nr, cap; /* leaves */
};

void addr_index_deinit(struct addr_index *ix);
/* @value belongs to @addr, which has none. False: memory is out. */
bool addr_index_add(struct addr_index *ix, taddr_t addr, uint32_t value);
/* @addr has one no more. */
void addr_index_remove(struct addr_index *ix, taddr_t addr);
/*
 * The value of the last address that is @addr or below it; *next_ret, of the
 * first above it. ADDR_INDEX_NONE if there is none.
 */
uint32_t addr_index_search(const struct addr_index *ix, taddr_t addr,
			   uint32_t *next_ret);
/* That of @addr itself. */
uint32_t addr_index_get(const struct addr_index *ix, taddr_t addr);
/* Bytes that it takes. */
uint64_t addr_index_bytes(const struct addr_index *ix);

#endif
