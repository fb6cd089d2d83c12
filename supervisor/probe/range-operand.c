/* See range-operand.h. */
#include "supervisor/probe/range-operand.h"

#include <string.h>

/* Offsets are hostile: no sums of them. */
bool range_overlap(int64_t a, uint64_t a_bytes, int64_t b, uint64_t b_bytes)
{
	return a <= b ? (uint64_t)b - (uint64_t)a < a_bytes
		      : (uint64_t)a - (uint64_t)b < b_bytes;
}

bool range_is_operand(const struct range_insn *in, uint8_t base, int64_t offset,
		      uint64_t bytes)
{
	return in->bits & (RB_READS | RB_WRITES) && in->base == base &&
	       in->index == RANGE_NO_REG &&
	       range_overlap(in->disp, in->mem_size, offset, bytes);
}

bool range_goes_straight(const struct range_code *code, size_t i, uint8_t reg)
{
	const struct range_insn *in = &code->insns[i];
	return in->kind == RK_PLAIN && range_falls(code, i) &&
	       !(code->insns[i + 1].bits & RB_LEADER) &&
	       (reg >= 16 || !(in->wrote >> reg & 1));
}

bool range_next_load(const struct variables *v, const struct var_place *p,
		     struct range_load *l)
{
	while (l->at < p->nr_ops) {
		const struct var_op *ops = v->ops + p->first_op;
		uint32_t base = l->at++;
		if (!base || ops[base].code != VAR_OP_LOAD)
			continue;
		l->bytes = (uint64_t)ops[base--].arg;
		l->disp = 0;
		if (ops[base].code == VAR_OP_PLUS_CONST && base > 0)
			l->disp = ops[base--].arg;
		l->reg = (uint8_t)ops[base].arg;
		if (ops[base].code == VAR_OP_REG)
			return true;
	}
	return false;
}

bool range_same_object(const struct variable *a, const struct variable *b)
{
	size_t len = strcspn(a->name, ".[");
	return a->line == b->line && len == strcspn(b->name, ".[") &&
	       !strncmp(a->name, b->name, len) && !strcmp(a->scope, b->scope);
}
