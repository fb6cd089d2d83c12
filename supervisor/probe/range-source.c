/* Where the value of a variable is read from, see range-site.h. */
#include "supervisor/probe/range-site.h"

bool range_source_of(const struct variables *v, const struct var_place *p,
		     struct range_site *s, uint32_t *regs_ret)
{
	s->reg = range_reg_of_dwarf(p->reg);
	s->shift = p->shift;
	s->offset = p->offset;
	*regs_ret = s->reg < 16 ? 1u << s->reg : 0;
	switch (p->kind) {
	case VAR_REG:
		s->source = RS_REG;
		return s->reg < 16 && p->shift < 64;
	case VAR_VALUE:
		s->source = RS_SUM;
		return s->reg < 16;
	case VAR_CONST:
		s->source = RS_CONST;
		*regs_ret = 0;
		return true;
	case VAR_MEM:
		s->source = RS_FRAME;
		return p->flags & VAR_FRAME && s->reg < 16;
	case VAR_ADDR:
	case VAR_TLS:
		s->source = p->kind == VAR_TLS ? RS_TLS : RS_DATA;
		*regs_ret = 0;
		return true;
	case VAR_EXPR: {
		if (p->nr_ops > VAR_MAX_OPS || p->first_op > v->nr_ops ||
		    p->nr_ops > v->nr_ops - p->first_op)
			return false;
		const struct var_op *ops = v->ops + p->first_op;
		s->source = RS_EXPR;
		if (!range_expr_ok(ops, p->nr_ops))
			return false;
		*regs_ret = range_expr_regs(ops, p->nr_ops);
		return true;
	}
	default:
		return false;
	}
}
