/* Places that are said to begin ahead of the statement that gives the value,
 * see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* The instruction that ends at @addr; NULL: there is none. */
static const struct range_insn *ending_at(const struct range_code *code,
					  uint64_t addr)
{
	size_t i = range_code_find(code, addr);
	const struct range_insn *in = i ? &code->insns[i - 1] : NULL;
	return in && in->addr + in->len == addr ? in : NULL;
}

/* A whole register, or its lower half, is copied: the one that is written, or
 * RANGE_NO_REG; *from_ret is the other one. */
static uint8_t copies(const struct range_insn *in, uint8_t *from_ret)
{
	uint32_t from = in->use & RANGE_ALL_REGS;
	if (in->kind != RK_PLAIN || in->mem_size || in->bits & RB_LEA ||
	    !(in->bits & RB_COMPUTES) || in->def & RANGE_FLAGS ||
	    __builtin_popcount(from) != 1 || __builtin_popcount(in->wrote) != 1)
		return RANGE_NO_REG;
	*from_ret = (uint8_t)__builtin_ctz(from);
	return (uint8_t)__builtin_ctz(in->wrote);
}

/* How far before a copy is looked for what it copies. */
#define COPY_REACH 8

/* Does an instruction that ends at @addr add @k to register @reg? Also by way
 * of another one, where that is not all in one. */
static bool adds(const struct range_code *code, uint64_t addr, uint8_t reg,
		 int64_t k)
{
	const struct range_insn *in = ending_at(code, addr);
	uint8_t by;
	if (!in)
		return false;
	if (in->bits & RB_ADDS && in->wrote == 1u << reg)
		return in->imm == k;
	if (copies(in, &by) != reg)
		return false;
	for (size_t i = (size_t)(in - code->insns), n = 0;
	     i > 0 && n < COPY_REACH && !(code->insns[i].bits & RB_LEADER) &&
	     range_falls(code, i - 1);
	     i--, n++) {
		const struct range_insn *sum = &code->insns[i - 1];
		if (sum->wrote >> by & 1)
			return sum->bits & RB_LEA && sum->base == reg &&
			       sum->index == RANGE_NO_REG && sum->disp == k &&
			       by != reg;
		if (sum->wrote >> reg & 1)
			return false;
	}
	return false;
}

/* Is @reg left alone from @lo to before @hi? */
static bool is_kept(const struct range_code *code, uint8_t reg, uint64_t lo,
		    uint64_t hi)
{
	for (size_t i = range_code_find(code, lo);
	     i < code->nr && code->insns[i].addr < hi; i++)
		if (code->insns[i].wrote >> reg & 1)
			return false;
	return true;
}

/* Does control come to @addr from the instruction before it? */
static bool goes_on_to(const struct range_code *code, uint64_t addr)
{
	const struct range_insn *in = ending_at(code, addr);
	return in && range_falls(code, (size_t)(in - code->insns));
}

/* Does @p, a register, begin with the instruction that adds to it what was said
 * to be added until then? Then it is said one instruction too early. */
static bool is_next(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *own, size_t nr,
		    const struct var_place *p, uint8_t reg)
{
	size_t at = range_code_find(code, p->lo);
	const struct range_insn *in = &code->insns[at];
	if (at == code->nr || in->addr != p->lo || !(in->bits & RB_ADDS) ||
	    in->wrote != 1u << reg)
		return false;
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_VALUE && q->hi == p->lo &&
		    range_reg_of_dwarf(q->reg) == reg && q->offset == in->imm &&
		    goes_on_to(code, p->lo))
			return true;
	}
	return false;
}

bool range_doubt_sum(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p)
{
	uint8_t reg = range_reg_of_dwarf(p->reg), from;
	if (reg == RANGE_NO_REG)
		return false;
	if (p->kind != VAR_VALUE)
		return p->kind == VAR_REG && is_next(code, v, own, nr, p, reg);
	size_t at = range_code_find(code, p->lo);
	bool last = at < code->nr && code->insns[at].bits & RB_ADDS &&
		    code->insns[at].wrote == 1u << reg &&
		    code->insns[at].addr + code->insns[at].len == p->hi;
	uint8_t to = RANGE_NO_REG;
	if (at < code->nr && code->insns[at].addr == p->lo) {
		to = copies(&code->insns[at], &from);
		to = to != RANGE_NO_REG && from == reg ? to : RANGE_NO_REG;
	}
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		uint8_t was = range_reg_of_dwarf(q->reg);
		last &= q->lo != p->hi;
		if (q->kind == VAR_REG && was == reg && q->lo == p->hi &&
		    p->offset && goes_on_to(code, p->hi) &&
		    is_kept(code, reg, p->lo, p->hi))
			return true;
		if (q->kind != VAR_REG || was == RANGE_NO_REG)
			continue;
		if (was == reg && q->hi == p->lo &&
		    adds(code, q->lo, reg, p->offset))
			return true;
		if (was == reg && q->hi <= p->lo &&
		    adds(code, q->hi, reg, p->offset) &&
		    is_kept(code, reg, q->hi, p->lo))
			return true;
		if (was == to && was != reg && q->hi == p->lo)
			return true;
	}
	return last;
}

bool range_doubt_added(const struct range_code *code, const struct var_place *p,
		       size_t i)
{
	const struct range_insn *in = &code->insns[i];
	return p->kind == VAR_VALUE && in->addr == p->lo &&
	       in->bits & RB_ADDS && in->imm == p->offset;
}

/* Is it known at @addr where the variable is? */
static bool is_known(const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     uint64_t addr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (addr >= q->lo && addr < q->hi)
			return true;
	}
	return false;
}

enum range_ways range_doubt_ways(const struct range_code *code,
				 const struct variables *v,
				 const struct range_index_entry *own, size_t nr,
				 const struct var_place *p, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	bool is_said = p->kind == VAR_CONST || p->kind == VAR_VALUE ||
		       p->kind == VAR_EXPR;
	if (in->kind != RK_BRANCH || !is_said ||
	    is_known(v, own, nr, in->target))
		return RANGE_BOTH_WAYS;
	return is_known(v, own, nr, in->addr + in->len) ? RANGE_STRAIGHT_ON
							: RANGE_NEITHER_WAY;
}
