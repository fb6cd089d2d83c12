/* Registers that hold something else than is said, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-operand.h"

/* How far an access is looked for. */
#define WALK_REACH 32

/* Is a constant added to @reg in what touches [@lo, @hi]? */
static bool is_stepped(const struct range_code *code, uint8_t reg, uint64_t lo,
		       uint64_t hi)
{
	size_t i = range_code_find(code, lo);
	for (i -= i > 0; i < code->nr && code->insns[i].addr <= hi; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->bits & RB_ADDS && in->wrote == 1u << reg &&
		    in->addr + in->len >= lo)
			return true;
	}
	return false;
}

/* Is the variable a constant anywhere that is no address, and not none? */
static bool is_number(const struct variables *v,
		      const struct range_index_entry *own, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_CONST && q->offset > 0 && q->offset < 4096)
			return true;
	}
	return false;
}

/* Is @reg where memory is accessed, and not an index of what lies at a fixed
 * address? */
static bool leads_to_memory(const struct range_insn *in, uint8_t reg)
{
	return in->bits & (RB_READS | RB_WRITES) && !(in->bits & RB_PADDING) &&
	       in->base == reg && in->index == RANGE_NO_REG &&
	       in->disp >= -4096 && in->disp <= 4096;
}

/* What goes straight on from instruction @i, while the register is what it was
 * there. */
static bool leads_on(const struct range_code *code, uint8_t reg, size_t i)
{
	for (size_t k = i; k < code->nr && k < i + WALK_REACH; k++) {
		const struct range_insn *in = &code->insns[k];
		if (leads_to_memory(in, reg))
			return true;
		if (in->wrote >> reg & 1 || in->kind != RK_PLAIN ||
		    !range_falls(code, k))
			return false;
	}
	return false;
}

/* What went straight on to instruction @i, before a constant was added. */
static bool led_up_to(const struct range_code *code, uint8_t reg, size_t i)
{
	for (size_t k = i, n = 0; k > 0 && n < WALK_REACH; k--, n++) {
		const struct range_insn *in = &code->insns[k - 1];
		if (code->insns[k].bits & RB_LEADER ||
		    !range_falls(code, k - 1) ||
		    (in->kind != RK_PLAIN && in->kind != RK_BRANCH))
			return false;
		bool steps = in->bits & RB_ADDS && in->wrote == 1u << reg;
		if (in->wrote >> reg & 1 && !steps)
			return false;
		if (leads_to_memory(in, reg))
			return true;
	}
	return false;
}

/* Is what is in @reg at @addr copied, or computed, from @from, or not known? Of
 * what goes straight on to there. */
static bool comes_from(const struct range_code *code, uint64_t addr,
		       uint8_t reg, uint8_t from)
{
	for (size_t i = range_code_find(code, addr), n = 0;
	     i > 0 && n < WALK_REACH && range_falls(code, i - 1); i--, n++) {
		const struct range_insn *in = &code->insns[i - 1];
		if (in->wrote >> reg & 1)
			return in->use >> from & 1;
	}
	return true;
}

/*
 * Was the variable something else until @p began, in a register where memory is
 * walked through? That is a constant, one plus that register, or in another one
 * that has nothing to do with it. An address that is kept in an integer goes on
 * as one.
 */
static bool was_other(const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, uint8_t reg)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		uint8_t was = range_reg_of_dwarf(q->reg);
		if (q->hi != p->lo)
			continue;
		if (q->kind == VAR_CONST ||
		    (q->kind == VAR_VALUE && was == reg) ||
		    (q->kind == VAR_REG && was < 16 && was != reg &&
		     !comes_from(code, p->lo, reg, was)))
			return true;
	}
	return false;
}

bool range_doubt_walk(const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, unsigned width, size_t i)
{
	uint8_t reg = range_reg_of_dwarf(p->reg);
	if (reg >= 16 || reg == RANGE_RSP || p->shift ||
	    (p->kind != VAR_VALUE && p->kind != VAR_REG) ||
	    (!leads_on(code, reg, i) && !led_up_to(code, reg, i)))
		return false;
	if (width == 8 && !is_stepped(code, reg, p->lo, p->hi))
		return is_number(v, own, nr) &&
		       is_stepped(code, reg, 0, UINT64_MAX);
	return width < 8 || p->kind == VAR_VALUE ||
	       was_other(code, v, own, nr, p, reg);
}

/* Is memory reached by registers @a plus @b at instruction @i? */
static bool reaches(const struct range_code *code, size_t i, uint8_t a,
		    uint8_t b)
{
	const struct range_insn *in = &code->insns[i];
	return in->bits & (RB_READS | RB_WRITES) && in->scale == 1 &&
	       in->disp >= -4096 && in->disp <= 4096 &&
	       ((in->base == a && in->index == b) ||
		(in->base == b && in->index == a));
}

/* Is @p the sum of two registers, and a constant perhaps? */
static bool is_of_two(const struct variables *v, const struct var_place *p,
		      uint8_t two[2])
{
	unsigned nr = 0;
	if (p->kind != VAR_EXPR)
		return false;
	for (uint32_t i = 0; i < p->nr_ops; i++) {
		const struct var_op *op = &v->ops[p->first_op + i];
		if (op->code == VAR_OP_REG && nr < 2)
			two[nr++] = range_reg_of_dwarf((unsigned)op->arg);
		else if (op->code != VAR_OP_PLUS_CONST &&
			 op->code != VAR_OP_ADD)
			return false;
	}
	return nr == 2 && two[0] < 16 && two[1] < 16 && two[0] != two[1];
}

bool range_doubt_reached(const struct range_code *code,
			 const struct variables *v, const struct var_place *p,
			 unsigned width)
{
	uint8_t two[2];
	if (width >= 8 || !is_of_two(v, p, two))
		return false;
	size_t i = range_code_find(code, p->lo);
	for (size_t k = i; k < code->nr && code->insns[k].addr < p->hi; k++)
		if (reaches(code, k, two[0], two[1]))
			return true;
	while (i-- > 0 && range_goes_straight(code, i, two[0]) &&
	       range_goes_straight(code, i, two[1]))
		if (reaches(code, i, two[0], two[1]))
			return true;
	return false;
}

bool range_doubt_inner(const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       uint32_t var, const struct var_place *p, uint64_t addr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		if (p->kind == VAR_REG && q->kind == VAR_REG &&
		    all[i].var != var && q->reg == p->reg &&
		    q->shift == p->shift && q->lo > p->lo && q->lo <= addr &&
		    q->hi == p->hi)
			return true;
	}
	return false;
}

/* Where the stack protector's number lies from the thread's pointer. */
#define GUARD_AT 0x28

bool range_doubt_restore(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	if (in->bits & RB_POP ||
	    (in->base == RANGE_FS && in->disp == GUARD_AT &&
	     in->reg != RANGE_NO_REG))
		return true;
	if (in->mem_size != 8 || !(in->bits & RB_READS) ||
	    in->reg == RANGE_NO_REG ||
	    (in->base != RANGE_RSP && in->base != RANGE_RBP))
		return false;
	for (size_t k = i + 1; k < code->nr && k < i + 16; k++) {
		const struct range_insn *n = &code->insns[k];
		if (n->kind == RK_RET || n->kind == RK_JUMP)
			return true;
		bool load = n->bits & RB_READS && n->mem_size == 8 &&
			    n->reg != RANGE_NO_REG &&
			    (n->base == RANGE_RSP || n->base == RANGE_RBP);
		bool frame = n->wrote >> RANGE_RSP & 1; /* add, pop, leave */
		if (n->kind != RK_PLAIN || !(load || frame))
			return false;
	}
	return false;
}

bool range_comes_in(const struct variables *v, const struct variable *var,
		    const struct var_place *p)
{
	const uint32_t arguments =
		1u << 7 | 1u << 6 | 1u << 2 | 1u << 1 | 1u << 8 | 1u << 9;
	return var->flags & VAR_PARAMETER && p->kind == VAR_REG &&
	       p->function < v->nr_functions &&
	       p->lo == v->functions[p->function].entry &&
	       arguments >> range_reg_of_dwarf(p->reg) & 1;
}

bool range_doubt_led_back(const struct range_edges *e,
			  const struct range_code *code,
			  const struct var_place *p)
{
	size_t i = range_code_find(code, p->lo);
	i += i < code->nr && code->insns[i].bits & RB_ENDBR;
	return p->flags & VAR_PART && i < code->nr &&
	       range_is_led_to(e, code, i);
}

/* Registers that calls do not keep: rax, rcx, rdx, rsi, rdi, r8 to r11. */
#define CALL_CHANGES 0x0fc7u

bool range_doubt_called(const struct range_code *code,
			const struct var_place *p, size_t i)
{
	uint8_t reg = range_reg_of_dwarf(p->reg);
	if (p->kind != VAR_REG || reg >= 16 || !(CALL_CHANGES >> reg & 1) ||
	    code->insns[i].use >> reg & 1)
		return false;
	for (size_t k = i; k-- > 0 && code->insns[k].addr >= p->lo;)
		if (code->insns[k].kind == RK_CALL ||
		    code->insns[k].kind == RK_CALL_TO)
			return true;
	return false;
}
