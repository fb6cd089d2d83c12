/*
 * stacks.h - stacks by small dense ids. A frame is a place (module, offset)
 * in a sym_space, so that a stack stays nameable after dlclose and the end of
 * the process; equal stacks of one process get one id. Names are looked up
 * only when asked for, after the program has ended.
 */
#ifndef SMCO_STACKS_H
#define SMCO_STACKS_H

#include "reports/trace.h"
#include "symbols/symbols.h"

struct stacks;

struct stacks *stacks_create(void);
void stacks_destroy(struct stacks *s);

/* Id of the stack frames[0..nr) (innermost first; all but the first are
 * return addresses; @first_is_return: so is the first). 0 when out of memory
 * or @nr is 0. */
uint32_t stacks_intern(struct stacks *s, struct sym_space *space,
		       const taddr_t *frames, size_t nr, bool first_is_return);

/* The same with what the kernel did for it: frames[0] is where the program
 * itself was interrupted or called. kernel[0..nr_kernel) is innermost, all but
 * the first return addresses. */
uint32_t stacks_intern_kernel(struct stacks *s, struct sym_space *space,
			      const taddr_t *kernel, size_t nr_kernel,
			      const taddr_t *frames, size_t nr);

/* Put the definitions of every stack marked with stacks_want() and not put yet
 * into the trace, module and offset only, which is fast. @named: and what the
 * frames of all wanted ones are, functions and lines, with those inlined. */
void stacks_want(struct stacks *s, uint32_t id);
int stacks_put(struct stacks *s, struct trace_writer *w, bool named);

#endif
