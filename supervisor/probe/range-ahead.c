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

/* Is only the lower half of what is computed wanted? */
static bool halves(const struct var_op *op)
{
	return op[0].code == VAR_OP_CONST && op[0].arg == UINT32_MAX &&
	       op[1].code == VAR_OP_AND;
}

/* Is @p a register, or its lower half, plus a constant? */
static bool is_sum(const struct variables *v, const struct var_place *p,
		   uint8_t *reg_ret, int64_t *k_ret)
{
	uint32_t i = 1;
	*reg_ret = range_reg_of_dwarf(p->reg);
	*k_ret = p->offset;
	if (p->kind != VAR_EXPR)
		return p->kind == VAR_VALUE && *reg_ret != RANGE_NO_REG;
	const struct var_op *op = v->ops + p->first_op;
	if (p->nr_ops < 2 || op[0].code != VAR_OP_REG)
		return false;
	if (p->nr_ops == 4 && halves(op + 1))
		i = 3;
	*reg_ret = range_reg_of_dwarf((unsigned)op[0].arg);
	*k_ret = op[i].arg;
	return (i + 1 == p->nr_ops || (p->nr_ops == 4 && halves(op + 2))) &&
	       op[i].code == VAR_OP_PLUS_CONST && *reg_ret != RANGE_NO_REG;
}

/*
 * Is there nothing in @p but an instruction that adds to its register, and does
 * the variable have no place where that ends? At the beginning of a loop there
 * may be padding before it; there it is what it will be if the loop goes on
 * where more is said to be added than that adds, also in the first round.
 */
static bool is_added_to(const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *own, size_t nr,
			const struct var_place *p)
{
	size_t at = range_code_find(code, p->lo), i = at;
	uint8_t reg;
	int64_t k;
	if (!is_sum(v, p, &reg, &k))
		return false;
	while (i < code->nr && code->insns[i].bits & RB_PADDING)
		i++;
	const struct range_insn *in = &code->insns[i];
	if (i == code->nr || !(in->bits & RB_ADDS) || in->wrote != 1u << reg ||
	    in->addr + in->len != p->hi)
		return false;
	for (size_t n = 0; n < nr; n++)
		if (v->places[own[n].place].lo == p->hi)
			return false;
	return (i == at && p->kind == VAR_VALUE) ||
	       (k != in->imm && goes_on_to(code, p->lo));
}

/* The instruction that loads register @reg from the frame, of those that go
 * straight on to instruction @i, if nothing has changed either since. */
static const struct range_insn *loaded_by(const struct range_code *code,
					  size_t i, uint8_t reg)
{
	for (size_t n = 0; i > 0 && n < COPY_REACH; i--, n++) {
		const struct range_insn *in = &code->insns[i - 1];
		if (!range_falls(code, i - 1) || in->bits & RB_STORES)
			return NULL;
		if (in->wrote >> reg & 1)
			return in->bits & RB_READS && in->reg == reg &&
					       in->base == RANGE_RSP &&
					       in->index == RANGE_NO_REG
				       ? in
				       : NULL;
	}
	return NULL;
}

/* The same, by whatever control goes through: what is popped goes to a caller.
 */
static bool is_kept_here(const struct range_code *code, uint8_t reg,
			 uint64_t lo, uint64_t hi)
{
	for (size_t i = range_code_find(code, lo);
	     i < code->nr && code->insns[i].addr < hi; i++)
		if (code->insns[i].wrote >> reg & 1 &&
		    !(code->insns[i].bits & RB_POP))
			return false;
	return true;
}

/* Does @p, register @reg plus a constant, begin where another register is
 * loaded with the same as that, and is the variable in that one later? */
static bool is_loaded_too(const struct range_code *code,
			  const struct variables *v,
			  const struct range_index_entry *own, size_t nr,
			  const struct var_place *p, uint8_t reg)
{
	size_t at = range_code_find(code, p->lo);
	const struct range_insn *in = &code->insns[at];
	if (at == code->nr || in->addr != p->lo || !(in->bits & RB_READS) ||
	    in->reg >= 16 || in->base != RANGE_RSP || in->index != RANGE_NO_REG)
		return false;
	const struct range_insn *load = loaded_by(code, at, reg);
	if (!load || load->disp != in->disp || load->mem_size != in->mem_size)
		return false;
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_REG && q->lo >= p->hi &&
		    range_reg_of_dwarf(q->reg) == in->reg &&
		    is_kept_here(code, in->reg, p->hi, q->lo))
			return true;
	}
	return false;
}

/* Is @p the sum of two registers? */
static bool is_of_two(const struct variables *v, const struct var_place *p,
		      uint8_t *a_ret, uint8_t *b_ret)
{
	if (p->kind != VAR_EXPR || p->nr_ops != 3)
		return false;
	const struct var_op *op = v->ops + p->first_op;
	*a_ret = range_reg_of_dwarf((unsigned)op[0].arg);
	*b_ret = range_reg_of_dwarf((unsigned)op[1].arg);
	return op[0].code == VAR_OP_REG && op[1].code == VAR_OP_REG &&
	       op[2].code == VAR_OP_ADD && *a_ret < 16 && *b_ret < 16 &&
	       *a_ret != *b_ret;
}

/* The register that @in adds @with to, for register @to; RANGE_NO_REG if that
 * is not what it does. */
static uint8_t added_to(const struct range_insn *in, uint8_t with, uint8_t to)
{
	if (!(in->bits & RB_LEA) || in->wrote != 1u << to || in->disp ||
	    in->scale != 1)
		return RANGE_NO_REG;
	return in->index == with  ? in->base
	       : in->base == with ? in->index
				  : RANGE_NO_REG;
}

/* Is @p, or another place that says the same, the sum of two registers one of
 * which was just made the sum of the other and the one that the variable was in
 * until then? It is the variable already. */
static bool is_doubled(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p)
{
	uint8_t a, b, c, d, was = RANGE_NO_REG;
	for (size_t i = 0; is_of_two(v, p, &a, &b) && i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (is_of_two(v, q, &c, &d) &&
		    (1u << a | 1u << b) == (1u << c | 1u << d) &&
		    goes_on_to(code, q->lo)) {
			const struct range_insn *in = ending_at(code, q->lo);
			was = added_to(in, a, b);
			was = was < 16 ? was : added_to(in, b, a);
		}
		for (size_t k = 0; was < 16 && k < nr; k++) {
			const struct var_place *r = &v->places[own[k].place];
			if (r->kind == VAR_REG && r->hi <= q->lo &&
			    range_reg_of_dwarf(r->reg) == was)
				return true;
		}
		was = RANGE_NO_REG;
	}
	return false;
}

/* Is a part of a register extended by its sign in @p, in which there is nothing
 * but an addition to that part, and does the variable have no place then? Only
 * the sum has that sign. */
static bool is_signed_later(const struct range_code *code,
			    const struct variables *v,
			    const struct range_index_entry *own, size_t nr,
			    const struct var_place *p)
{
	size_t at = range_code_find(code, p->lo);
	bool extends = false;
	if (p->kind != VAR_EXPR || at == code->nr || !p->nr_ops ||
	    v->ops[p->first_op].code != VAR_OP_REG)
		return false;
	for (uint32_t i = 1; i < p->nr_ops; i++)
		extends |= v->ops[p->first_op + i].code == VAR_OP_SEXT &&
			   v->ops[p->first_op + i].arg < 4;
	const struct range_insn *in = &code->insns[at];
	uint8_t reg = range_reg_of_dwarf((unsigned)v->ops[p->first_op].arg);
	if (!extends || !(in->bits & RB_ADDS) || in->addr != p->lo ||
	    reg >= 16 || in->wrote != 1u << reg || in->addr + in->len != p->hi)
		return false;
	for (size_t n = 0; n < nr; n++)
		if (v->places[own[n].place].lo == p->hi)
			return false;
	return true;
}

bool range_doubt_sum(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p)
{
	uint8_t reg, from;
	int64_t added;
	if (!is_sum(v, p, &reg, &added))
		return is_doubled(code, v, own, nr, p) ||
		       is_signed_later(code, v, own, nr, p) ||
		       range_doubt_stepped_sum(code, v, p) ||
		       (p->kind == VAR_REG && reg != RANGE_NO_REG &&
			is_next(code, v, own, nr, p, reg));
	size_t at = range_code_find(code, p->lo);
	uint8_t to = RANGE_NO_REG;
	if (at < code->nr && code->insns[at].addr == p->lo) {
		to = copies(&code->insns[at], &from);
		to = to != RANGE_NO_REG && from == reg ? to : RANGE_NO_REG;
	}
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		uint8_t was = range_reg_of_dwarf(q->reg);
		if (q->kind == VAR_REG && was == reg && q->lo == p->hi &&
		    added && goes_on_to(code, p->hi) &&
		    is_kept(code, reg, p->lo, p->hi))
			return true;
		if (q->kind != VAR_REG || was == RANGE_NO_REG)
			continue;
		if (was == reg && q->hi == p->lo &&
		    adds(code, q->lo, reg, added))
			return true;
		if (was == reg && q->hi <= p->lo &&
		    adds(code, q->hi, reg, added) &&
		    is_kept(code, reg, q->hi, p->lo))
			return true;
		if (was == to && was != reg && q->hi == p->lo)
			return true;
	}
	return is_added_to(code, v, own, nr, p) ||
	       (p->kind == VAR_VALUE &&
		is_loaded_too(code, v, own, nr, p, reg));
}

/* How far behind a loop one is taken off its counter again. */
#define BEHIND_REACH 8

/* From instruction @k on to @end, is memory read by register @reg as it is
 * then, or by a copy of that? */
static bool is_read_by(const struct range_code *code, size_t k, size_t end,
		       uint8_t reg)
{
	uint32_t same = 1u << reg;
	for (; k < end; k++) {
		const struct range_insn *in = &code->insns[k];
		uint8_t from, to = copies(in, &from);
		bool is_copy = to < 16 && same >> from & 1;
		if (in->bits & RB_READS &&
		    ((in->base < 16 && same >> in->base & 1) ||
		     (in->index < 16 && same >> in->index & 1)))
			return true;
		same &= ~(uint32_t)in->wrote;
		same |= is_copy ? 1u << to : 0;
	}
	return false;
}

/* The branch that leads back to before instruction @i, by the way straight on,
 * on which register @reg is left alone; code->nr: there is none so near. Others
 * lead to straight behind it. */
static size_t branch_back(const struct range_code *code, size_t i, uint8_t reg)
{
	uint64_t out = 0;
	for (size_t n = 0; n < BEHIND_REACH && range_falls(code, i + n); n++) {
		size_t k = i + n + 1;
		const struct range_insn *in = &code->insns[k];
		bool is_branch = in->kind == RK_BRANCH;
		if (is_branch && in->target <= code->insns[i].addr)
			return !out || out == in->addr + in->len ? k : code->nr;
		if (in->wrote >> reg & 1 ||
		    (in->kind != RK_PLAIN && !is_branch) ||
		    (is_branch && out && out != in->target))
			break;
		out = is_branch ? in->target : out;
	}
	return code->nr;
}

bool range_doubt_counted(const struct range_code *code,
			 const struct var_place *p, size_t i, int64_t *k_ret)
{
	const struct range_insn *add = &code->insns[i];
	uint8_t reg = range_reg_of_dwarf(p->reg);
	if (p->kind != VAR_REG || p->shift || !(add->bits & RB_ADDS) ||
	    add->wrote != 1u << reg)
		return false;
	size_t end = branch_back(code, i, reg), behind = 0;
	*k_ret = add->imm;
	for (size_t k = end + 1; k < code->nr && range_falls(code, k - 1) &&
				 behind++ < BEHIND_REACH;
	     k++) {
		const struct range_insn *in = &code->insns[k];
		if (in->bits & RB_ADDS && in->wrote == 1u << reg)
			return in->imm == -add->imm;
		if (in->bits & RB_LEA && in->base == reg &&
		    in->index == RANGE_NO_REG && in->disp == -add->imm)
			return is_read_by(
				code,
				range_code_find(code, code->insns[end].target),
				end, reg);
		if (in->wrote >> reg & 1 || in->kind != RK_PLAIN)
			return false;
	}
	return false;
}

bool range_doubt_added(const struct range_code *code, const struct var_place *p,
		       size_t i)
{
	const struct range_insn *in = &code->insns[i];
	return p->kind == VAR_VALUE && in->addr == p->lo &&
	       in->bits & RB_ADDS && in->imm == p->offset;
}
