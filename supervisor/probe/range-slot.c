/* Data that is reached by the global offset table. */
#include "supervisor/probe/range-site.h"

/* How far back a slot of the offset table is loaded before it is used. */
#define SLOT_REACH 64

bool range_by_slot(const struct range_code *code, const struct range_image *img,
		   size_t i, uint64_t *addr_ret)
{
	const struct range_insn *all = code->insns;
	uint8_t reg = all[i].base;
	if (!img->slots.nr || reg >= 16 || reg == RANGE_RSP)
		return false;
	for (size_t k = i; k-- > 0 && i - k <= SLOT_REACH;) {
		const struct range_insn *in = &all[k];
		if (all[k + 1].bits & RB_LEADER || !range_falls(code, k) ||
		    (in->kind != RK_PLAIN && in->kind != RK_BRANCH))
			return false;
		if (in->wrote >> reg & 1)
			return in->bits & RB_READS && !(in->bits & RB_WRITES) &&
			       in->base == RANGE_RIP && in->mem_size == 8 &&
			       in->reg == reg && in->index == RANGE_NO_REG &&
			       data_slots_find(&img->slots, (uint64_t)in->disp,
					       addr_ret);
	}
	return false;
}
