/*
 * range-stub.h - machine code of range sensors: for each window of a function
 * a stub that compares the variables of its sites with their smallest and
 * largest value in shared memory, widens those when they are exceeded, runs
 * the window's own instructions and goes back. Pure.
 *
 * A stub leaves registers, flags and the red zone as they were wherever the
 * function may still need them. It traps never, calls nobody, and works
 * without a supervisor.
 */
#ifndef SMCO_RANGE_STUB_H
#define SMCO_RANGE_STUB_H

#include "supervisor/probe/code.h"
#include "supervisor/probe/range-window.h"

/*
 * What is shared: for each variable this, then a counter of hits per window.
 * Both values have the compare width of the variable (range_compare_width) in
 * their lowest bytes; at first smallest is the type's largest and the other
 * way round. One of an enum with numbers that name nothing has another behind
 * it: range-hole.h.
 */
struct range_cell {
	uint64_t smallest;
	uint64_t largest;
};

/* Cells have owners: the variables by number, then subscripts, whose cells are
 * of what a register holds, 64 bits with a sign. */
static inline uint32_t range_cell_owner(const struct variables *v,
					uint32_t subscript)
{
	return (uint32_t)v->nr_vars + subscript;
}
const struct var_type *range_cell_type(const struct variables *v,
				       uint32_t owner);

/* Where a thread in a stub is, as the program would have it. */
struct range_step {
	uint32_t offset; /* in the stubs' code: from here on */
	uint32_t insn;	 /* instruction of the function that comes next */
	uint16_t pushed; /* bytes the stack pointer is lower by */
	/* A thread can be moved home: if it is at this very offset, for that
	 * instruction comes next, displaced; or wherever it is in this step,
	 * for nothing that counts was changed yet. */
	bool at_insn, clean;
};

struct range_stub_place {
	uint64_t bias;	  /* added to the file's addresses */
	taddr_t cells;	  /* of variable 0 */
	taddr_t counters; /* of the function's first window, 8 bytes each */
	const uint32_t *cell_of; /* owner -> cell */
	/* By instruction: somebody else's code is there, which a stub that
	 * comes to it leads to. NULL: nowhere. */
	const bool *others;
};

/* What one pass of a window's stub does beside the window's instructions, when
 * nothing widens. */
struct range_shape {
	uint16_t regs;	 /* values in registers, or constant */
	uint16_t memory; /* values loaded */
	uint16_t exprs;	 /* values computed */
	uint16_t flags;	 /* times that flags are kept */
	uint16_t saved;	 /* registers put on the stack, and back */
	bool call;	 /* at its end: the return is not predicted */
};

/* The instruction that the stub of @w goes back to: the first behind it, or of
 * @others (range_stub_place) in it, but for its own first one. */
uint32_t range_stub_end(const struct range_window *w, const bool *others);

struct range_stubs {
	struct code_buf code;	   /* buf is malloc'ed */
	uint32_t *start;	   /* of each window's stub, offset in code */
	struct range_shape *shape; /* of each window's stub */
	struct range_step *step;   /* by offset */
	size_t nr_steps, cap_steps;
	/* Offsets in code, rising: words that are addresses of the module. All
	 * else is distances. */
	uint32_t *back;
	size_t nr_back, cap_back;
	size_t nr_windows;
};

/*
 * The stubs of all windows of a function, to lie at @base. SMCO_UNSUPPORTED:
 * too far away, or an instruction that cannot be moved after all.
 */
int range_stubs_build(struct range_stubs *ret, taddr_t base,
		      const struct range_code *code,
		      const struct range_image *img, const struct variables *v,
		      const struct range_windows *w,
		      const struct range_stub_place *at, struct smco_err *err);
void range_stubs_deinit(struct range_stubs *s);

/* Step that offset @off of the code belongs to; NULL if there are none. */
const struct range_step *range_stubs_step(const struct range_stubs *s,
					  uint32_t off);
/* Where displaced instruction @insn of window @w begins, its sensors first;
 * UINT32_MAX if it is not in the window. */
uint32_t range_stubs_moved(const struct range_stubs *s,
			   const struct range_windows *w, size_t window,
			   uint32_t insn);

/* Bytes compared: the width of the variable, or of a bit-field's register. */
unsigned range_compare_width(const struct var_type *t);
/* A cell that nothing was seen of. */
struct range_cell range_cell_empty(const struct var_type *t);
/* False if nothing was seen. Values as the variable's type has them. */
bool range_cell_read(const struct range_cell *cell, const struct var_type *t,
		     int64_t *smallest_ret, int64_t *largest_ret);
/*
 * The values in it, none to two, into @ret; it is empty afterwards. None is
 * lost: a sensor that stores at the same time has stored before, or its value
 * is there the next time. It may have stored one bound only.
 */
unsigned range_cell_take(struct range_cell *cell, const struct var_type *t,
			 int64_t ret[2]);

#endif
