/* What code that is not optimised puts into a variable while it computes what
 * that is to be, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* How far behind a store the other one is looked for. */
#define QUOTIENT_REACH 16

/* Do both have the same memory of the frame as an operand? */
static bool is_same(const struct range_insn *a, const struct range_insn *b)
{
	return a->base == b->base && a->disp == b->disp &&
	       a->mem_size == b->mem_size && b->index == RANGE_NO_REG;
}

bool range_doubt_quotient(const struct range_code *code, size_t i)
{
	const struct range_insn *store = &code->insns[i];
	uint32_t before = RANGE_ALL_REGS & ~(1u << RANGE_RSP | 1u << RANGE_RBP);
	if (store->reg >= 16 || store->index != RANGE_NO_REG ||
	    store->bits & RB_READS)
		return false;
	before &= ~(1u << store->reg);
	for (size_t k = i + 1; k < code->nr && k <= i + QUOTIENT_REACH; k++) {
		const struct range_insn *in = &code->insns[k];
		if (in->kind != RK_PLAIN || in->bits & RB_LEADER ||
		    !range_falls(code, k - 1))
			return false;
		if (in->mem_size && !(in->bits & RB_LEA)) {
			if (!is_same(store, in))
				return false;
			if (in->bits & RB_WRITES)
				return in->reg < 16 && before >> in->reg & 1;
			before &= ~(uint32_t)in->wrote;
		} else if (in->use & before) {
			before |= in->wrote;
		} else {
			before &= ~(uint32_t)in->wrote;
		}
		if (k == i + 1 && !(in->bits & RB_READS && in->mem_size))
			return false;
	}
	return false;
}
