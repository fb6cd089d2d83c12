/* range-plan.h - what is behind struct range_plan. Private to range-*.c. */
#ifndef SMCO_RANGE_PLAN_H
#define SMCO_RANGE_PLAN_H

#include "supervisor/probe/range-stub.h"
#include "supervisor/probe/range-subscript.h"
#include "supervisor/probe/range.h"

struct range_plan_function {
	struct range_function_info info;
	struct range_windows windows; /* instructions by index, see below */
	uint32_t first_window;	      /* the plan's number of its first */
	struct range_code code;	      /* kept; no instructions: it is not */
};

struct range_plan {
	Elf *elf;
	struct range_image img;
	const struct variables *v;
	struct range_plan_function *function; /* one for each of v's */
	struct range_var_info *var;	      /* one for each of v's */
	struct range_subscript *subscript;    /* told apart by all that it is */
	size_t nr_subscripts;
	/* By owner (range_cell_owner), v's and then subscripts. UINT32_MAX: it
	 * has no cell. */
	uint32_t *cell_of;
	struct range_use *use; /* by variable, then window */
	size_t nr_uses, cap_uses, cap_subscripts;
	uint32_t *function_of; /* window -> function; UINT32_MAX: none */
	size_t nr_cells;
	size_t nr_windows;   /* numbers given, those of none included */
	uint64_t code_bytes; /* upper bound of all stubs */
	uint64_t kept_bytes; /* of the functions' code */
	uint64_t lo;	     /* of all that is patched */
	uint64_t hi;	     /* exclusive */
	/* From a file (range-store.h): all arrays but function are somebody
	 * else's, and windows may be of other code than there is. */
	bool is_taken;
};

/*
 * The instructions that the windows' indices are of. Those of a large program
 * are not all kept; decoding a function again gives the same. The program
 * stands when it is asked for them first. SMCO_UNSUPPORTED: the windows of a
 * plan that was taken from a file are none of this code.
 */
int range_plan_decode(const struct range_plan *plan, uint32_t function,
		      struct range_code *ret, struct smco_err *err);
/* Decode the first functions ahead of time, as many as take @bytes. */
int range_plan_keep(struct range_plan *plan, uint64_t bytes,
		    struct smco_err *err);
/* When done with them. */
void range_plan_release(const struct range_plan *plan, uint32_t function,
			struct range_code *code);
/* How much is kept at the most. */
#define RANGE_KEEP_BYTES (64ULL << 20)

#endif
