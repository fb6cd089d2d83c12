/* A register plus what it has been counted on by already, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* How far before a place the count is looked for. */
#define COUNT_REACH 24

/* Is @in a copy of register @from to @to? */
static bool copies(const struct range_insn *in, uint8_t from, uint8_t to)
{
	return in->kind == RK_PLAIN && !in->mem_size && !(in->bits & RB_LEA) &&
	       in->bits & RB_COMPUTES && !(in->def & RANGE_FLAGS) &&
	       (in->use & RANGE_ALL_REGS) == 1u << from &&
	       in->wrote == 1u << to;
}

/* Does @in put register @from plus @k in @to? */
static bool sums(const struct range_insn *in, uint8_t from, uint8_t to,
		 int64_t k)
{
	return in->bits & RB_LEA && in->base == from &&
	       in->index == RANGE_NO_REG && in->disp == k && from != to &&
	       in->wrote == 1u << to;
}

/* The last instruction that writes register @reg of those that go straight on
 * to instruction @i, where others may come, too, if @is_joined; @i: there is
 * none. */
static size_t writer(const struct range_code *code, size_t i, uint8_t reg,
		     bool is_joined)
{
	for (size_t k = i, n = 0; k > 0 && n < COUNT_REACH; k--, n++) {
		if ((code->insns[k].bits & RB_LEADER && (n || !is_joined)) ||
		    !range_falls(code, k - 1))
			break;
		if (code->insns[k - 1].wrote >> reg & 1)
			return k - 1;
	}
	return i;
}

/* Has register @reg been counted on by @k already where a place begins, at @lo?
 */
static bool is_stepped(const struct range_code *code, uint64_t lo, uint8_t reg,
		       int64_t k)
{
	size_t at = range_code_find(code, lo);
	if (reg >= 16 || !k || at == code->nr || code->insns[at].addr != lo)
		return false;
	while (code->insns[at].bits & RB_PADDING && range_falls(code, at))
		at++;
	/* What all copy to where it was made from has been counted by all. */
	size_t i = writer(code, at, reg, true);
	const struct range_insn *in = &code->insns[i];
	bool is_joined = code->insns[at].bits & RB_LEADER;
	if (i == at)
		return false;
	/* "lea 2(%from), %reg; mov %reg, %from", up to the place's first. */
	if (in->base < 16 && sums(in, in->base, reg, k)) {
		for (size_t n = is_joined ? at : i + 1; n <= at; n++) {
			if (copies(&code->insns[n], reg, in->base))
				return true;
			if (code->insns[n].wrote >> in->base & 1)
				return false;
		}
		return false;
	}
	/* The same with the register that has been copied to. */
	for (uint8_t by = 0; by < 16 && !is_joined; by++) {
		if (!copies(in, by, reg) || by == reg)
			continue;
		size_t n = writer(code, i, by, false);
		return n != i && sums(&code->insns[n], reg, by, k) &&
		       writer(code, i, reg, false) <= n;
	}
	return false;
}

bool range_doubt_stepped(const struct range_code *code,
			 const struct var_place *p)
{
	return p->kind == VAR_VALUE &&
	       is_stepped(code, p->lo, range_reg_of_dwarf(p->reg), p->offset);
}

bool range_doubt_stepped_sum(const struct range_code *code,
			     const struct variables *v,
			     const struct var_place *p)
{
	if (p->kind != VAR_EXPR || p->nr_ops < 4)
		return false;
	const struct var_op *op = v->ops + p->first_op;
	const struct var_op *last = op + p->nr_ops - 1;
	if (op->code != VAR_OP_REG || last->code != VAR_OP_PLUS_CONST ||
	    (last[-1].code != VAR_OP_ADD && last[-1].code != VAR_OP_SUB))
		return false;
	for (const struct var_op *of = op + 1; of < last - 1; of++)
		if (var_op_pops(of->code) > 1 ||
		    (of->code == VAR_OP_REG && of->arg == op->arg))
			return false;
	return is_stepped(code, p->lo, range_reg_of_dwarf((unsigned)op->arg),
			  last->arg);
}
