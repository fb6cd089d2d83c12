/*
 * range-edge.h - from where control comes to an instruction of a function, and
 * whether a variable has been in its place there already. Pure.
 */
#ifndef SMCO_RANGE_EDGE_H
#define SMCO_RANGE_EDGE_H

#include "supervisor/probe/range-site.h"

struct range_edge {
	uint64_t to;
	uint32_t from; /* instruction */
};
struct range_edges {
	struct range_edge *edge; /* direct branches, by to */
	size_t nr;
	uint32_t *wild; /* jumps through a register or memory */
	size_t nr_wild;
};

/* False: no memory; deinit does no harm then. */
bool range_edges_init(struct range_edges *e, const struct range_code *code);
void range_edges_deinit(struct range_edges *e);
/* The first edge to @addr, or behind; e->nr: there is none. */
size_t range_edges_first(const struct range_edges *e, uint64_t addr);

/* Does a jump lead to instruction @i, or may one? */
bool range_is_led_to(const struct range_edges *e, const struct range_code *code,
		     size_t i);

/*
 * Place @p of a variable begins at instruction @i. Was the variable in the same
 * place already, and left alone, wherever control comes from? Then it is given
 * no value here. @own are its places in this function, @nr of them, of
 * v->places.
 */
bool range_goes_on(const struct range_edges *e, const struct range_code *code,
		   const struct variables *v,
		   const struct range_index_entry *own, size_t nr,
		   const struct var_place *p, uint32_t i);

/*
 * Does a branch lead to instruction @i, inside of place @p, which is read from
 * @regs, from where the variable was not in the same place, or was changed?
 * Then it gets its place there, as at the beginning of a loop of which the
 * compiler only says where the variable is once it has begun.
 */
bool range_is_entered(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, uint32_t regs, uint32_t i);

/*
 * Does a jump lead to instruction @i, inside of place @p, a register, from
 * where another variable is in that, up to the jump, and not this one?
 * Compilers make one of the ends of blocks that are alike: it was the other
 * one's. @all are the places in the function, @own the variable's.
 */
bool range_is_others(const struct range_edges *e, const struct range_code *code,
		     const struct variables *v,
		     const struct range_index_entry *all, size_t nr,
		     const struct range_index_entry *own, size_t nr_own,
		     const struct var_place *p, uint32_t i);

/*
 * Of each instruction: whether on every way there the variable of @site was
 * given a value in the site's place, and has stayed in it. @state has room for
 * code->nr; @sites are all of the function's: where values are given.
 */
void range_settled(const struct range_edges *e, const struct range_code *code,
		   const struct variables *v, const struct range_sites *sites,
		   const struct range_site *site, uint8_t *state);
static inline bool range_is_settled(const uint8_t *state, uint32_t i)
{
	return state[i] & 1;
}

#endif
