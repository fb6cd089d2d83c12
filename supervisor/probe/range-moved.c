/* Places that the variable is said to have moved to, and has not, see
 * range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* Is @p, a constant, said from the instruction on that puts that where the
 * variable was until then, and by no statement? */
static bool is_stored(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p)
{
	size_t i = range_code_find(code, p->lo);
	if (p->kind != VAR_CONST || !(p->flags & VAR_MOVED) || !i ||
	    i == code->nr || code->insns[i].addr != p->lo ||
	    !range_falls(code, i - 1) || range_is_led_to(e, code, i))
		return false;
	const struct range_insn *in = &code->insns[i], *last = in - 1;
	for (size_t k = 0; k < nr; k++) {
		const struct var_place *q = &v->places[own[k].place];
		if (q->kind == VAR_MEM && q->hi == p->lo && q->lo < q->hi &&
		    q->flags & VAR_ENDS && in->bits & RB_WRITES &&
		    in->bits & RB_IMM && in->imm == p->offset &&
		    in->base == range_reg_of_dwarf(q->reg) &&
		    in->index == RANGE_NO_REG && in->disp == q->offset &&
		    last->kind == RK_PLAIN && !(last->bits & RB_STORES) &&
		    !(last->wrote >> in->base & 1))
			return true;
	}
	return false;
}

/* Is @p computed, and is the variable of another copy of its function, which
 * was met later, from there on computed, too? */
static bool is_outer(const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p)
{
	for (size_t k = 0; p->kind == VAR_EXPR && k < nr; k++) {
		const struct var_place *q = &v->places[own[k].place];
		if (q->kind == VAR_EXPR && q->lo == p->lo &&
		    q->first_op > p->first_op)
			return true;
	}
	return false;
}

bool range_doubt_moved(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p)
{
	return is_outer(v, own, nr, p) || is_stored(e, code, v, own, nr, p);
}
