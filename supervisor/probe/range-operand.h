/*
 * range-operand.h - memory at a register plus a constant, as instructions and
 * the places of variables have it. Pure; what is given may be hostile.
 */
#ifndef SMCO_RANGE_OPERAND_H
#define SMCO_RANGE_OPERAND_H

#include "supervisor/probe/range-site.h"

/* Have [@a, @a + @a_bytes) and [@b, @b + @b_bytes) a byte in common? */
bool range_overlap(int64_t a, uint64_t a_bytes, int64_t b, uint64_t b_bytes);

/* Is some of the memory at @base + @offset, @bytes of it, an operand? @base is
 * the processor's number of a register. */
bool range_is_operand(const struct range_insn *in, uint8_t base, int64_t offset,
		      uint64_t bytes);

/* Control that has come to instruction @i goes on to the next, and comes there
 * from nowhere else; register @reg, if it is one, is what it was. */
bool range_goes_straight(const struct range_code *code, size_t i, uint8_t reg);

/* Memory that an expression reads, at a register plus a constant. */
struct range_load {
	uint32_t at; /* the next operation to look at; 0 at first */
	uint8_t reg; /* DWARF's */
	int64_t disp;
	uint64_t bytes;
};
/* The next one of VAR_EXPR @p in *@l; false: there is none. */
bool range_next_load(const struct variables *v, const struct var_place *p,
		     struct range_load *l);

/* Are @a and @b members of one struct, or union? */
bool range_same_object(const struct variable *a, const struct variable *b);

#endif
