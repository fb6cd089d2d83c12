/*
 * range-taken.h - whose address does the code hand out? What others may write
 * to changes out of sight. Pure.
 */
#ifndef SMCO_RANGE_TAKEN_H
#define SMCO_RANGE_TAKEN_H

#include "supervisor/probe/range-text.h"
#include "symbols/variable.h"

/* The instructions of a function that make addresses of registers. */
struct range_givers {
	const struct range_code *code;
	uint32_t *insn; /* by index */
	size_t nr;
};
/* @code is used until deinit. False: out of memory. */
bool range_givers_init(struct range_givers *g, const struct range_code *code);
void range_givers_deinit(struct range_givers *g);

/*
 * Does the function hand out the address of @p (VAR_MEM), or of what it is part
 * of? It may do so before the place is said to begin: what it is part of may be
 * something else there. Or behind it, with the stack pointer lower by a call's
 * arguments.
 */
bool range_frame_taken(const struct range_givers *g, const struct var_place *p,
		       const struct variable *var);
/* Does anybody hand out that of @p, in the file's data? */
bool range_data_taken(const struct range_image *img, const struct var_place *p,
		      const struct variable *var);

/* The address of the first integer of the struct that @var, in the file's data,
 * is a member of; its own if it is none. */
uint64_t range_first_member(const struct variables *v, uint32_t var);

#endif
