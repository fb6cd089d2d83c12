/* range-cover.h - what of a variable in memory an instruction accesses. Pure.
 */
#ifndef SMCO_RANGE_COVER_H
#define SMCO_RANGE_COVER_H

#include "supervisor/probe/range-site.h"

/* The variable's place in memory, or what counts of it, lies wholly in the
 * instruction's operand, which begins @delta bytes before it. */
struct range_cover {
	bool yes;
	bool whole;	/* nothing is missing of the place */
	int64_t delta;	/* negative: the operand begins inside the place */
	int64_t offset; /* of the element */
	int64_t next;	/* bytes of the operand up to the end of it */
};

/* What @in, whose address has no index, covers of what is of @t at @offset from
 * the same base: of an array the first element that begins @from bytes into the
 * operand, or behind that. */
struct range_cover range_covers(const struct range_insn *in,
				const struct var_type *t, int64_t offset,
				int64_t from);
/* How many elements of @t instruction @in stores at most: 1 if it is no vector,
 * for a longer number is another variable's in the same memory, or if they are
 * more than sensors are to look at. */
unsigned range_cover_most(const struct range_insn *in,
			  const struct var_type *t);

/* @in, whose address has an index, accesses one element of what is of @t at
 * @offset from the same base, if that is in the array: *ret tells. */
bool range_covers_one(const struct range_insn *in, const struct var_type *t,
		      int64_t offset, struct range_within *ret);
/* The same for @in that reaches memory by another register than @frame, whose
 * value @offset is from: if that is a pointer to an element. */
bool range_covers_through(const struct range_insn *in, const struct var_type *t,
			  uint8_t frame, int64_t offset,
			  struct range_within *ret);
/* Is the element that instruction @i stores to changed at once, where it lies?
 * See range_doubt_half. */
bool range_cover_half(const struct range_code *code, size_t i);

#endif
