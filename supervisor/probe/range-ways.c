/* Places that are said to begin before a branch, of those who go one of its
 * ways, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

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

/* How far before a branch what is said is of one of its ways. */
#define WAY_REACH 4

/* The branch that is decided before instruction @i of @p, and goes straight on
 * from there; @i if there is none. */
static size_t decided(const struct range_code *code, const struct var_place *p,
		      size_t i)
{
	for (size_t k = i; k < code->nr && k <= i + WAY_REACH; k++) {
		const struct range_insn *in = &code->insns[k];
		if (in->addr >= p->hi || (k > i && in->bits & RB_LEADER))
			return i;
		if (in->kind == RK_BRANCH)
			return k;
		if (in->kind != RK_PLAIN || in->def & RANGE_FLAGS)
			return i;
	}
	return i;
}

/* Is @step added to the variable, where it is in a register, in instructions
 * [@from, @to]? */
static bool steps(const struct range_code *code, const struct variables *v,
		  const struct range_index_entry *own, size_t nr, size_t from,
		  size_t to, int64_t step)
{
	for (size_t k = from; k <= to && k < code->nr; k++) {
		const struct range_insn *in = &code->insns[k];
		if (!(in->bits & RB_ADDS) || in->imm != step)
			continue;
		for (size_t i = 0; i < nr; i++) {
			const struct var_place *q = &v->places[own[i].place];
			uint8_t reg = range_reg_of_dwarf(q->reg);
			if (q->kind == VAR_REG && !q->shift && reg < 16 &&
			    in->addr >= q->lo && in->addr < q->hi &&
			    in->wrote == 1u << reg)
				return true;
		}
	}
	return false;
}

/*
 * Is branch @k the test of a loop's turn that has been unrolled ahead of it,
 * and @p what the variable was stepped to before the test? It was a constant,
 * @p is another one, the loop behind the branch adds as much to it in each
 * turn, and goes on where the branch leads to when it ends.
 */
static bool is_turn(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *own, size_t nr,
		    const struct var_place *p, size_t k)
{
	uint64_t first = code->insns[k].addr, out = code->insns[k].target;
	int64_t step = 0;
	for (size_t i = 0; p->kind == VAR_CONST && i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_CONST && q->hi == p->lo && q->lo < q->hi)
			step = p->offset - q->offset;
	}
	size_t end = out > first ? range_code_find(code, out) : code->nr;
	if (!step || end == code->nr || code->insns[end].addr != out)
		return false;
	const struct range_insn *last = &code->insns[end - 1];
	return last->kind == RK_BRANCH && last->target > first &&
	       last->target < last->addr &&
	       steps(code, v, own, nr, range_code_find(code, last->target),
		     end - 1, step);
}

/* How far before a branch its variable may have been put where it is. */
#define AHEAD_REACH 12

/* What calls keep: rbx, rbp, r12 to r15. */
#define KEPT 0xf028u

/* Has what goes straight on to instruction @i put something in register @reg,
 * or in memory, or is what is in the register asked for last? What comes behind
 * a call is a way in, too. */
static bool is_given(const struct range_code *code, const struct var_place *p,
		     uint8_t reg, size_t i)
{
	bool tested = code->insns[i].kind != RK_BRANCH;
	for (size_t k = i, n = 0; k > 0 && n < AHEAD_REACH; k--, n++) {
		const struct range_insn *in = &code->insns[k - 1];
		bool call = in->kind == RK_CALL || in->kind == RK_CALL_TO;
		if (call)
			return p->kind != VAR_REG || !(KEPT >> reg & 1);
		if (in->bits & RB_WRITES || in->kind != RK_PLAIN ||
		    in->wrote >> reg & 1)
			return true;
		if (!tested && in->def & RANGE_FLAGS) {
			tested = true;
			if (in->use >> reg & 1)
				return true;
		}
		if (!range_falls(code, k - 1) ||
		    (in->bits & RB_LEADER && k > 1 && in[-1].kind != RK_CALL &&
		     in[-1].kind != RK_CALL_TO))
			break;
	}
	return false;
}

/*
 * Is @p said from the branch on, a register, that its variable is given the
 * value behind? Or, where the compiler says which places are moves (gcc), from
 * the test on that decides the branch to where @p ends? Nothing is put there
 * before that. A parameter of what is inlined is given there.
 */
static bool is_ahead(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	uint8_t reg = range_reg_of_dwarf(p->reg);
	bool views = false;
	for (size_t k = 0; k < nr; k++)
		views |= v->places[own[k].place].flags & VAR_MOVED;
	if ((p->kind != VAR_REG && p->kind != VAR_MEM) || reg >= 16 || !i ||
	    !nr || v->vars[own[0].var].flags & VAR_PARAMETER ||
	    p->flags & VAR_SCOPE || in->addr != p->lo ||
	    !range_falls(code, i - 1) || in->bits & RB_LEADER ||
	    is_given(code, p, reg, i))
		return false;
	if (in->kind == RK_BRANCH)
		return p->kind == VAR_REG;
	return views && in->kind == RK_PLAIN && in->def & RANGE_FLAGS &&
	       (p->kind == VAR_MEM || !(in->use >> reg & 1)) &&
	       range_falls(code, i) && in[1].kind == RK_BRANCH &&
	       !(in[1].bits & RB_LEADER) && in[1].target == p->hi;
}

enum range_ways range_doubt_ways(const struct range_code *code,
				 const struct variables *v,
				 const struct range_index_entry *own, size_t nr,
				 const struct var_place *p, size_t *i)
{
	size_t k = decided(code, p, *i);
	bool is_said = p->kind == VAR_CONST || p->kind == VAR_VALUE ||
		       p->kind == VAR_EXPR;
	if (is_ahead(code, v, own, nr, p, *i)) {
		is_said = true;
		k = *i + (code->insns[*i].kind != RK_BRANCH);
	}
	const struct range_insn *in = &code->insns[k];
	if (in->kind != RK_BRANCH || !is_said ||
	    is_known(v, own, nr, in->target) || is_turn(code, v, own, nr, p, k))
		return RANGE_BOTH_WAYS;
	if (k > *i && in->addr + in->len >= p->hi)
		return RANGE_BOTH_WAYS;
	if (!is_known(v, own, nr, in->addr + in->len))
		return RANGE_NEITHER_WAY;
	/* So it is of the branches behind it that lead to the same: "a && b".
	 */
	for (size_t n = k + 1;
	     p->kind != VAR_CONST && n < code->nr && n <= k + WAY_REACH; n++) {
		const struct range_insn *next = &code->insns[n];
		if (next->bits & RB_LEADER || next->addr + next->len >= p->hi ||
		    (next->kind != RK_PLAIN && next->kind != RK_BRANCH))
			break;
		if (next->kind == RK_BRANCH && next->target != in->target)
			break;
		if (next->kind == RK_BRANCH)
			k = n;
	}
	*i = k;
	return RANGE_STRAIGHT_ON;
}
