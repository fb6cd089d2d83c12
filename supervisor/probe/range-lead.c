/* Addresses in the frame, see range-lead.h. */
#include "supervisor/probe/range-lead.h"

#include <stdlib.h>

/* What has not been carried everywhere after so many passes is missed. */
#define MOST_PASSES 16
/* rbx, rbp, r12 to r15 */
#define KEPT_BY_CALLS (1u << 3 | 1u << RANGE_RBP | 0xf000u)

static bool has_slot(const struct range_leads *l, const struct range_insn *in)
{
	for (size_t i = 0; i < l->nr_slots; i++)
		if (l->slot[i].base == in->base && l->slot[i].disp == in->disp)
			return true;
	return false;
}

static bool is_of_slot(const struct range_insn *in, uint16_t bit)
{
	return in->bits & bit && in->mem_size == 8 && in->reg < 16 &&
	       in->index == RANGE_NO_REG &&
	       (in->base == RANGE_RSP || in->base == RANGE_RBP);
}

/* The registers of the operand, of those that are added as they are. */
static uint32_t of_operand(const struct range_insn *in)
{
	uint32_t regs = in->base < 16 ? 1u << in->base : 0;
	if (in->index < 16 && in->scale == 1)
		regs |= 1u << in->index;
	return regs;
}

/* Does what instruction @in writes to a register come from one of @regs? */
static bool is_made_of(const struct range_leads *l, const struct range_insn *in,
		       uint32_t regs)
{
	if (in->bits & RB_LEA)
		return of_operand(in) & regs;
	if (is_of_slot(in, RB_READS))
		return has_slot(l, in);
	if (in->mem_size || in->bits & (RB_POP | RB_STORES))
		return in->reg >= 16 && in->use & in->wrote & regs;
	return in->use & regs & 0xffff;
}

/* Behind it, where @regs were before. */
static uint16_t behind(struct range_leads *l, const struct range_insn *in,
		       uint16_t regs, bool *changed)
{
	uint32_t now = regs | 1u << RANGE_RSP;
	if (is_of_slot(in, RB_WRITES) && now >> in->reg & 1 &&
	    !has_slot(l, in) && l->nr_slots < RANGE_LEAD_SLOTS) {
		l->slot[l->nr_slots].base = in->base;
		l->slot[l->nr_slots++].disp = in->disp;
		*changed = true;
	}
	if (in->kind == RK_CALL || in->kind == RK_CALL_TO)
		now &= KEPT_BY_CALLS;
	else if (is_made_of(l, in, now))
		now |= in->wrote;
	else
		now &= ~(uint32_t)in->wrote;
	return (uint16_t)now;
}

static bool carry(struct range_leads *l, const struct range_code *code,
		  size_t to, uint16_t regs)
{
	if (to >= code->nr || !(regs & ~l->regs[to]))
		return false;
	l->regs[to] |= regs;
	return true;
}

/* True: something is new. */
static bool pass(struct range_leads *l, const struct range_code *code,
		 uint16_t *by_table)
{
	bool changed = false;
	for (size_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->bits & RB_TABLE)
			changed |= carry(l, code, i, *by_table);
		uint16_t now = behind(l, in, l->regs[i], &changed);
		if (range_falls(code, i))
			changed |= carry(l, code, i + 1, now);
		if (in->kind == RK_JUMP_TO) {
			changed |= now & ~*by_table;
			*by_table |= now;
		}
		if (!in->target || in->kind == RK_CALL)
			continue;
		size_t to = range_code_find(code, in->target);
		if (to < code->nr && code->insns[to].addr == in->target)
			changed |= carry(l, code, to, now);
	}
	return changed;
}

bool range_leads_by(struct range_leads *l, const struct range_code *code,
		    uint32_t i)
{
	if (!l->regs) {
		uint16_t by_table = 0;
		l->regs = calloc(code->nr + 1, sizeof(*l->regs));
		for (unsigned n = 0; l->regs && n < MOST_PASSES; n++)
			if (!pass(l, code, &by_table))
				break;
	}
	return l->regs && of_operand(&code->insns[i]) & l->regs[i];
}

void range_leads_deinit(struct range_leads *l)
{
	free(l->regs);
	*l = (struct range_leads){.nr_slots = 0};
}
