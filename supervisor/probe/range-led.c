/* Places that are led into by jumps, behind a store, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* Does a variable lie in memory that @in changes, where that is behind it? */
static bool is_anyones(const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct range_insn *in)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		uint64_t bytes = var_type_bytes(&v->vars[all[i].var].type);
		if (q->kind != VAR_MEM ||
		    range_reg_of_dwarf(q->reg) != in->base ||
		    in->addr + in->len < q->lo || in->addr >= q->hi)
			continue;
		/* Offsets are hostile: no sums of them. */
		if (q->offset <= in->disp
			    ? (uint64_t)in->disp - (uint64_t)q->offset < bytes
			    : (uint64_t)q->offset - (uint64_t)in->disp <
				      in->mem_size)
			return true;
	}
	return false;
}

/* Does instruction @in put as many bytes as @type has to where @p is? */
static bool puts_there(const struct range_insn *in, const struct var_place *p,
		       const struct var_type *type)
{
	return in->kind == RK_PLAIN && in->bits & RB_WRITES &&
	       !(in->bits & (RB_READS | RB_LEA)) &&
	       in->base == range_reg_of_dwarf(p->reg) &&
	       in->index == RANGE_NO_REG && in->disp == p->offset &&
	       in->mem_size == type->width && !type->bit_size;
}

size_t range_led_by(const struct range_edges *e, const struct range_code *code,
		    const struct variables *v,
		    const struct range_index_entry *all, size_t nr,
		    uint32_t var, const struct var_place *p,
		    uint32_t store[RANGE_DOUBT_LATE])
{
	const struct variable *variable = &v->vars[var];
	size_t found = 0;
	if (p->kind != VAR_MEM || !(p->flags & VAR_FRAME) ||
	    p->flags & VAR_SCOPE || variable->type.nr_dims ||
	    variable->flags & VAR_IN_UNION ||
	    range_reg_of_dwarf(p->reg) == RANGE_NO_REG)
		return 0;
	for (size_t a = range_edges_first(e, p->lo + 1);
	     a < e->nr && e->edge[a].to < p->hi && found < RANGE_DOUBT_LATE;
	     a++) {
		uint32_t from = e->edge[a].from;
		const struct range_insn *jump = &code->insns[from];
		if (jump->kind != RK_JUMP || !from ||
		    (jump->addr >= p->lo && jump->addr < p->hi) ||
		    jump->bits & RB_LEADER || !range_falls(code, from - 1))
			continue;
		const struct range_insn *in = &code->insns[from - 1];
		if (puts_there(in, p, &variable->type) &&
		    !is_anyones(v, all, nr, in))
			store[found++] = from - 1;
	}
	return found;
}
