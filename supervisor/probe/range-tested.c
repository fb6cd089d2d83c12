/* Registers that hold what a variable will be on one way out of a branch only,
 * see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* How far behind a step its loop's test is looked for, and how far before. */
#define TEST_REACH 16

/* The register that the variable is in at @addr, in a place that ends at @hi,
 * or begins at @lo; RANGE_NO_REG: none. */
static uint8_t register_at(const struct variables *v,
			   const struct range_index_entry *own, size_t nr,
			   uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_REG && !q->shift && q->lo < q->hi &&
		    (q->lo == lo || q->hi == hi))
			return range_reg_of_dwarf(q->reg);
	}
	return RANGE_NO_REG;
}

bool range_doubt_way(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p)
{
	size_t i = range_code_find(code, p->lo);
	uint8_t was = register_at(v, own, nr, 0, p->lo);
	if (p->kind != VAR_REG || p->flags & VAR_ONE || was >= 16 || i == 0 ||
	    i == code->nr || code->insns[i].addr != p->lo || p->lo == p->hi ||
	    was == range_reg_of_dwarf(p->reg) ||
	    register_at(v, own, nr, p->hi, 0) != was)
		return false;
	for (size_t k = i - 1; k < code->nr; k++) {
		const struct range_insn *in = &code->insns[k];
		if (in->wrote >> was & 1 || !range_falls(code, k) ||
		    (k >= i && in->bits & RB_LEADER))
			return false;
		if (in->addr + in->len >= p->hi)
			return in->kind == RK_BRANCH;
		if (in->kind != RK_PLAIN)
			return false;
	}
	return false;
}

/* The last instruction before @b that makes flags, of those straight on to it
 * from instruction @first; @b: none. */
static size_t test_of(const struct range_code *code, size_t b, size_t first)
{
	for (size_t k = b; k-- > first;)
		if (code->insns[k].def & RANGE_FLAGS)
			return k;
	return b;
}

/* Does one of instructions [@first, @step) copy @reg to a register that @test
 * looks at, and nothing writes to since? */
static bool tests_copy(const struct range_code *code, size_t first, size_t step,
		       size_t test, uint8_t reg)
{
	uint32_t copy = 0;
	for (size_t k = first; k < test; k++) {
		const struct range_insn *in = &code->insns[k];
		copy &= ~(uint32_t)in->wrote;
		if (k < step && in->kind == RK_PLAIN && !in->mem_size &&
		    in->bits & RB_COMPUTES &&
		    !(in->bits & (RB_LEA | RB_ADDS)) &&
		    !(in->def & RANGE_FLAGS) &&
		    (in->use & RANGE_ALL_REGS) == 1u << reg)
			copy |= in->wrote & ~(1u << reg);
	}
	return code->insns[test].use & copy;
}

/* rax, r10, r11: calls take nothing in them, but how many vectors there are,
 * which is put there before each. */
#define NO_ARGUMENT (1u << 0 | 1u << 10 | 1u << 11)

/* May what is in @reg be needed from instruction @i on? */
static bool is_wanted(const struct range_code *code, size_t i, uint8_t reg)
{
	if (!(code->insns[i].live >> reg & 1))
		return false;
	for (size_t k = i; k < code->nr && k < i + TEST_REACH; k++) {
		const struct range_insn *in = &code->insns[k];
		if (in->kind == RK_CALL)
			return !(NO_ARGUMENT >> reg & 1);
		if (in->kind != RK_PLAIN || in->use >> reg & 1)
			return true;
		if (in->def >> reg & 1)
			return false;
		if (!range_falls(code, k))
			return true;
	}
	return true;
}

bool range_doubt_tested(const struct range_code *code,
			const struct var_place *p, int64_t *k_ret)
{
	uint8_t reg = range_reg_of_dwarf(p->reg);
	size_t i = range_code_find(code, p->lo), b = i;
	/* A shift to the right may be asked for what is left of it, by what it
	 * was: that ends with 0. */
	if (p->kind != VAR_REG || p->shift || reg >= 16 || i == 0 ||
	    i == code->nr || code->insns[i].addr != p->lo ||
	    !range_falls(code, i - 1) || code->insns[i].bits & RB_LEADER)
		return false;
	const struct range_insn *step = &code->insns[i - 1];
	if (step->wrote != 1u << reg || !(step->use >> reg & 1) ||
	    !(step->bits & RB_COMPUTES) || step->bits & RB_READS)
		return false;
	while (b < i + TEST_REACH && code->insns[b].kind == RK_PLAIN &&
	       range_falls(code, b) && !(code->insns[b].wrote >> reg & 1) &&
	       !(code->insns[b + 1].bits & RB_LEADER))
		b++;
	const struct range_insn *branch = &code->insns[b];
	size_t first = range_code_find(code, branch->target);
	if (branch->kind != RK_BRANCH || branch->addr >= p->hi || first >= i ||
	    i - first > TEST_REACH || !range_falls(code, b) ||
	    is_wanted(code, b + 1, reg))
		return false;
	size_t test = test_of(code, b, first);
	bool old = test < i ? code->insns[test].use >> reg & 1
			    : tests_copy(code, first, i - 1, test, reg);
	*k_ret = step->bits & RB_ADDS ? step->imm : 0;
	return test < b && test != i - 1 && old &&
	       !(test >= i && code->insns[test].use >> reg & 1);
}
