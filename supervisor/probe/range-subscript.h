/*
 * range-subscript.h - where a function uses an integer variable as a subscript
 * of an array of known length, and in which register it is there. Pure.
 *
 * Said only where both are sure: the address that is read or written is
 * that of the array's first element, by the code, plus the variable times the
 * array's stride. A compiler that optimises may fold a constant part of the
 * subscript into the address, which then is another object's; see sure.
 */
#ifndef SMCO_RANGE_SUBSCRIPT_H
#define SMCO_RANGE_SUBSCRIPT_H

#include "supervisor/probe/range-site.h"

struct range_subscript {
	uint32_t var;	/* index into variables->vars */
	uint32_t array; /* the same; only its first dimension is meant */
	int64_t offset; /* the subscript is var + offset */
	/* The register's value less minus, by times, is the subscript. */
	int64_t times, minus;
	/* The code is not optimised: it is this array whatever the subscript.
	 * Otherwise it is only if some were inside of it. */
	bool sure;
};

struct range_subscript_use {
	struct range_subscript what;
	uint32_t gap; /* before this instruction the register has the value */
	uint8_t reg;
};

struct range_subscript_uses {
	struct range_subscript_use *use; /* by gap */
	size_t nr, cap;
};

/* Those of function @f, whose code is @code, that could be outside. An empty
 * list where there is too much to look at. SMCO_NOMEM. */
int range_subscripts_find(struct range_subscript_uses *ret,
			  const struct range_code *code,
			  const struct range_image *img,
			  const struct variables *v,
			  const struct range_index *ix, uint32_t f,
			  struct smco_err *err);
void range_subscripts_deinit(struct range_subscript_uses *u);

#endif
