/* Frames of functions, as the CFI has them: where what is in one is. */
#include "symbols/varbuild.h"

#define NOWHERE UINT64_MAX

const struct cfi_rule *var_frame_row(struct cfi_table *t, uint64_t addr,
				     uint64_t *next)
{
	*next = NOWHERE;
	return t ? cfi_row(t, addr, next) : NULL;
}

bool var_is_frame(int64_t reg)
{
	return reg == VAR_REG_CFA || reg == VAR_REG_FRAME_RBP ||
	       reg == VAR_REG_FRAME_RSP;
}

/* The machine register, and offset to it, that @reg is in a row's code. */
static bool frame_register(const struct var_scope *sc,
			   const struct cfi_rule *row, int64_t reg,
			   uint8_t *reg_ret, int64_t *offset_ret)
{
	if (!row || row->cfa_kind != CFI_CFA_REG)
		return false;
	*offset_ret = 0;
	switch (reg) {
	case VAR_REG_CFA:
		*reg_ret = row->cfa_reg;
		*offset_ret = row->cfa_off;
		return true;
	case VAR_REG_FRAME_RBP:
		*reg_ret = CFI_RBP;
		return row->cfa_reg == CFI_RBP;
	default:
		*reg_ret = CFI_RSP;
		return row->cfa_reg == CFI_RSP
			       ? (uint64_t)row->cfa_off == sc->body_depth
			       : row->cfa_reg == CFI_RBP;
	}
}

bool var_place_in_frame(const struct var_scope *sc, const struct cfi_rule *row,
			const struct var_piece *from, struct var_piece *to)
{
	*to = *from;
	to->nr_ops = 0;
	for (size_t i = 0; i < from->nr_ops; i++) {
		const struct var_op *op = &from->op[i];
		uint8_t reg;
		int64_t offset;
		if (op->code != VAR_OP_REG || !var_is_frame(op->arg)) {
			if (!var_ops_add(to->op, &to->nr_ops, op->code,
					 op->arg))
				return false;
			continue;
		}
		if (!frame_register(sc, row, op->arg, &reg, &offset) ||
		    !var_ops_add(to->op, &to->nr_ops, VAR_OP_REG, reg) ||
		    !var_ops_add(to->op, &to->nr_ops, VAR_OP_PLUS_CONST,
				 offset))
			return false;
	}
	return true;
}

void var_count_from_body(const struct var_build *b, const struct var_scope *sc,
			 struct var_piece *p)
{
	for (size_t i = 0; i < p->nr_ops && !sc->is_gcc && b->cfi; i++)
		if (p->op[i].code == VAR_OP_REG && p->op[i].arg == CFI_RSP)
			p->op[i].arg = VAR_REG_FRAME_RSP;
}

uint64_t var_body_depth(struct var_build *b, const struct var_function *f)
{
	struct {
		uint64_t depth, bytes;
	} seen[16] = {{0}};
	size_t nr = 0, best = 0;
	for (uint32_t i = 0; i < f->nr_ranges; i++) {
		const struct var_range *r = &b->v->ranges[f->first_range + i];
		uint64_t next;
		for (uint64_t at = r->lo; at < r->hi && b->cfi; at = next) {
			const struct cfi_rule *row =
				var_frame_row(b->cfi, at, &next);
			if (next <= at || !var_step(b))
				break;
			if (!row || row->cfa_kind != CFI_CFA_REG ||
			    row->cfa_reg != CFI_RSP || row->cfa_off <= 8)
				continue;
			size_t k = 0;
			while (k < nr &&
			       seen[k].depth != (uint64_t)row->cfa_off)
				k++;
			if (k == ARRAY_SIZE(seen))
				continue;
			nr += k == nr;
			seen[k].depth = (uint64_t)row->cfa_off;
			seen[k].bytes += (next < r->hi ? next : r->hi) - at;
		}
	}
	for (size_t k = 1; k < nr; k++)
		if (seen[k].bytes > seen[best].bytes)
			best = k;
	/* With no more than the return address: nothing is in the frame but
	 * arguments. */
	return nr ? seen[best].depth : 8;
}
