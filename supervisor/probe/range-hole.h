/*
 * range-hole.h - numbers that lie between two enumerators and name none. From
 * the first to the last of them they are the enum's hole; names may lie in it.
 * A variable of such an enum has a second cell: in smallest is how far into the
 * hole the smallest such value was that was seen. Pure.
 */
#ifndef SMCO_RANGE_HOLE_H
#define SMCO_RANGE_HOLE_H

#include "supervisor/probe/range-stub.h"

struct range_hole {
	int64_t first;
	uint64_t nr; /* of numbers, names among them too; 0: there is none */
};

/* None of what is no enum, of bits that are or'ed together, and of more than
 * some thousand names. */
struct range_hole range_hole_of(const struct variables *v,
				const struct var_type *t);
/* The same of an owner of cells: does it have a second one? */
bool range_has_hole(const struct variables *v, uint32_t owner);
/* What the enumerators can be or'ed to, where they are bits for that; else 0.
 * Other names may be sums of them, or all ones, as masks are. */
int64_t range_bits_of(const struct var_enumerator *e, size_t nr);

/* A part of a hole, up to the next one's first number or the hole's end. */
enum range_hole_kind {
	RANGE_UNNAMED,
	RANGE_NAMED, /* or taken to be: too small where there are too many */
	RANGE_SOME,  /* of its numbers are named */
};
struct range_hole_part {
	uint64_t from; /* how far into the hole */
	enum range_hole_kind kind;
};
#define RANGE_HOLE_GAPS	 64 /* that are parts, at most */
#define RANGE_HOLE_PARTS (2 * RANGE_HOLE_GAPS + 1)
#define RANGE_HOLE_BITS	 8192 /* in parts of which some are named, at most */
/* The parts, rising, to @part, which has room for RANGE_HOLE_PARTS; how many. A
 * hole without names is one. */
size_t range_hole_parts(const struct variables *v, const struct var_type *t,
			struct range_hole_part *part);
/* A bit for each number from @from to @end in the hole of @t, 1: it is named;
 * to @bits, whole bytes. */
void range_hole_names(const struct variables *v, const struct var_type *t,
		      uint64_t from, uint64_t end, uint8_t *bits);
/* Is it a number in the hole, and unnamed? */
bool range_hole_has(const struct variables *v, const struct var_type *t,
		    uint64_t in);
/* What a pass of a stub may cost for it, in values in registers. */
unsigned range_hole_price(const struct variables *v, uint32_t owner);
/* What it takes of a site's stub, at most. */
size_t range_hole_bytes(const struct variables *v, uint32_t owner);

/* A second cell that nothing was seen of. Its largest is constant: what a stub
 * adds to a value to have how far into the hole it is. */
struct range_cell range_hole_empty(const struct variables *v,
				   const struct var_type *t);
/* False: nothing was seen. */
bool range_hole_read(const struct range_cell *cell, const struct variables *v,
		     const struct var_type *t, int64_t *ret);

#endif
