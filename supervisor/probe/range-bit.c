/* Numbers of which a variable is the lowest bit only, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

#define BYTE 255 /* what gcc makes of a bool: the lowest byte of a number */

/* Is @op, with the constant before it, what keeps the lowest bytes? */
static bool keeps_low(const struct var_op *op)
{
	return op->code == VAR_OP_AND && op[-1].code == VAR_OP_CONST &&
	       (op[-1].arg == BYTE || op[-1].arg == UINT32_MAX);
}

/* Is @q the lowest byte of something? */
static bool is_byte(const struct variables *v, const struct var_place *q)
{
	if (q->kind != VAR_EXPR || q->nr_ops <= 2 || q->first_op > v->nr_ops ||
	    q->nr_ops > v->nr_ops - q->first_op)
		return false;
	const struct var_op *last = &v->ops[q->first_op + q->nr_ops - 1];
	return keeps_low(last) && last[-1].arg == BYTE;
}

/* Is the first of @nr operations a constant, and left alone until the last, a
 * shift right, takes it? */
static bool shifts_constant(const struct var_op *ops, uint32_t nr)
{
	unsigned depth = 1;
	if (nr < 3 || ops[0].code != VAR_OP_CONST ||
	    (nr == 3 && ops[1].code == VAR_OP_CONST) ||
	    (ops[nr - 1].code != VAR_OP_SHR && ops[nr - 1].code != VAR_OP_SAR))
		return false;
	for (uint32_t i = 1; i + 1 < nr; i++) {
		unsigned pops = var_op_pops(ops[i].code);
		if (pops >= depth)
			return false;
		depth += 1 - pops;
	}
	return depth == 2;
}

/* Is @q a byte of a constant that is shifted right by something, or what that
 * is not (*@is_not)? */
static bool is_of_mask(const struct variables *v, const struct var_place *q,
		       bool *is_not)
{
	*is_not = false;
	if (!is_byte(v, q))
		return false;
	const struct var_op *ops = v->ops + q->first_op;
	uint32_t nr = q->nr_ops;
	while (nr > 3) {
		bool is_last_not = ops[nr - 1].code == VAR_OP_NOT;
		if (!is_last_not && !keeps_low(&ops[nr - 1]))
			break;
		*is_not |= is_last_not;
		nr -= is_last_not ? 1 : 2;
	}
	return shifts_constant(ops, nr);
}

/* Is any of the variable's @own places such a byte? */
static bool is_switch(const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      bool *is_not)
{
	for (size_t i = 0; i < nr; i++)
		if (is_of_mask(v, &v->places[own[i].place], is_not))
			return true;
	return false;
}

bool range_doubt_mask(const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct variable *var, const struct var_place *p)
{
	bool is_not, is_const = p->kind == VAR_CONST && p->offset <= BYTE &&
				p->offset >= BYTE - 1;
	return var->type.class_ == VAR_INT && !var->type.bit_size &&
	       var->type.width > 1 && (is_const || is_byte(v, p)) &&
	       is_switch(v, own, nr, &is_not) && (is_not || !is_const);
}

bool range_doubt_bit(const struct range_code *code, const struct variable *var,
		     const struct var_place *p, size_t i)
{
	if (var->type.class_ != VAR_BOOL || var->type.bit_size ||
	    p->kind != VAR_REG)
		return false;
	if (!i || i > code->nr || !range_falls(code, i - 1))
		return true;
	const struct range_insn *in = &code->insns[i - 1];
	return !(in->bits & RB_READS) || in->mem_size != 1 ||
	       !(in->wrote >> range_reg_of_dwarf(p->reg) & 1);
}
