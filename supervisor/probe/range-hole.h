/*
 * range-hole.h - numbers that lie between two enumerators and name none: of an
 * enum's such gaps the widest, its hole. A variable of it has a second cell: in
 * smallest is how far into the hole the smallest value was that was seen there.
 * Pure.
 */
#ifndef SMCO_RANGE_HOLE_H
#define SMCO_RANGE_HOLE_H

#include "supervisor/probe/range-stub.h"

struct range_hole {
	int64_t first;
	uint32_t nr; /* of numbers; 0: there is none */
};

/* What it takes of a site's stub, at most. */
#define RANGE_HOLE_BYTES 112

/* None of what is no enum, of bits that are or'ed together, and of more than
 * some thousand names. */
struct range_hole range_hole_of(const struct variables *v,
				const struct var_type *t);
/* The same of an owner of cells: does it have a second one? */
bool range_has_hole(const struct variables *v, uint32_t owner);
/* The enumerators are bits that are or'ed together. */
bool range_are_bits(const struct var_enumerator *e, size_t nr);

/* A second cell that nothing was seen of. */
struct range_cell range_hole_empty(const struct variables *v,
				   const struct var_type *t);
/* False: nothing was seen. */
bool range_hole_read(const struct range_cell *cell, const struct variables *v,
		     const struct var_type *t, int64_t *ret);

#endif
