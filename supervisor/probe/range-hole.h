/*
 * range-hole.h - numbers that lie between two enumerators and name none. A
 * variable of such an enum has a second cell: for each hole how far into it the
 * smallest value was that was seen there. Pure.
 */
#ifndef SMCO_RANGE_HOLE_H
#define SMCO_RANGE_HOLE_H

#include "supervisor/probe/range-stub.h"
#include "supervisor/probe/range.h"

/* What those of a site take of its stub, at most. */
#define RANGE_HOLE_BYTES (RANGE_HOLES * 112)

struct range_hole {
	int64_t first;
	uint32_t nr; /* of numbers */
};

/* The widest of @t, the widest first; how many. None of what is no enum, of
 * bits that are or'ed together, and of more than some thousand names. */
unsigned range_holes(const struct variables *v, const struct var_type *t,
		     struct range_hole ret[RANGE_HOLES]);
/* The same of an owner of cells: does it have a second one? */
bool range_has_holes(const struct variables *v, uint32_t owner);
/* The enumerators are bits that are or'ed together. */
bool range_are_bits(const struct var_enumerator *e, size_t nr);

/* A second cell that nothing was seen of. */
struct range_cell range_hole_empty(const struct variables *v,
				   const struct var_type *t);
/* The values in it, one for each hole at most, into @ret; how many. */
unsigned range_hole_read(const struct range_cell *cell,
			 const struct variables *v, const struct var_type *t,
			 int64_t ret[RANGE_HOLES]);

#endif
