/* Loads of more than a variable, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-operand.h"

/* Is a variable in memory @offset from the register of @p at @addr, @bytes of
 * it? */
static bool is_somebodys(const struct variables *v,
			 const struct range_index_entry *all, size_t nr,
			 const struct var_place *p, uint64_t addr,
			 int64_t offset, uint64_t bytes)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		uint64_t has = var_type_bytes(&v->vars[all[i].var].type);
		if (q->kind == VAR_MEM && q->reg == p->reg && addr >= q->lo &&
		    addr < q->hi &&
		    range_overlap(q->offset, has, offset, bytes))
			return true;
	}
	return false;
}

/* Is all of the register that @i loads put somewhere else, or given to a call,
 * straight on from there? */
static bool is_copied(const struct range_code *code, size_t i)
{
	const struct range_insn *load = &code->insns[i];
	for (size_t k = i; range_goes_straight(code, k, RANGE_NO_REG); k++) {
		const struct range_insn *in = &code->insns[k + 1];
		if (in->kind == RK_CALL || in->kind == RK_CALL_TO ||
		    (in->reg == load->reg && in->bits & RB_WRITES))
			return true;
		if (in->wrote >> load->reg & 1)
			return false;
	}
	return false;
}

/* Is what instruction @i loads somewhere in the function no copy? */
static bool is_pointer(const struct range_code *code, size_t i)
{
	const struct range_insn *load = &code->insns[i];
	for (size_t k = 0; k < code->nr; k++) {
		const struct range_insn *in = &code->insns[k];
		if (in->bits & RB_READS && !(in->bits & RB_WRITES) &&
		    in->reg != RANGE_NO_REG && in->base == load->base &&
		    in->index == RANGE_NO_REG && in->disp == load->disp &&
		    in->mem_size == load->mem_size && !is_copied(code, k))
			return true;
	}
	return false;
}

bool range_doubt_wide(const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      const struct variable *var, const struct var_place *p,
		      size_t i)
{
	const struct range_insn *in = &code->insns[i];
	uint64_t bytes = var_type_bytes(&var->type);
	return in->bits & RB_READS && !(in->bits & RB_WRITES) &&
	       p->kind == VAR_MEM && p->flags & VAR_SCOPE &&
	       in->reg != RANGE_NO_REG && in->mem_size == 8 && bytes < 8 &&
	       !var->type.bit_size && in->disp == p->offset &&
	       !is_somebodys(v, all, nr, p, in->addr, in->disp + (int64_t)bytes,
			     8 - bytes) &&
	       is_pointer(code, i);
}
