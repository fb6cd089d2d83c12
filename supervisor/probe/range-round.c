/* What is said of the counters of loops that something else is counted in, see
 * range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* Is register @reg left alone, and not needed for anything, from instruction
 * @lo to @hi? */
static bool is_idle(const struct range_code *code, uint8_t reg, size_t lo,
		    size_t hi)
{
	for (size_t i = lo; i <= hi; i++) {
		const struct range_insn *in = &code->insns[i];
		if ((in->use | in->wrote) >> reg & 1 ||
		    (in->kind != RK_PLAIN && in->kind != RK_BRANCH))
			return false;
	}
	return true;
}

/* The first instruction of the loop that a branch in [@lo, @hi) ends, and that
 * neither reads nor writes @reg; code->nr: there is none. */
static size_t idle_loop(const struct range_code *code, uint8_t reg, uint64_t lo,
			uint64_t hi)
{
	for (size_t i = range_code_find(code, lo);
	     i < code->nr && code->insns[i].addr < hi; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->kind != RK_BRANCH || in->target > lo)
			continue;
		size_t first = range_code_find(code, in->target);
		if (first < code->nr && code->insns[first].addr == in->target &&
		    is_idle(code, reg, first, i))
			return first;
	}
	return code->nr;
}

/* Is @sum the register of @plain plus a constant, and follows it in a loop that
 * begins at or after address @first? */
static bool follows(const struct var_place *sum, const struct var_place *plain,
		    uint64_t first)
{
	return sum->kind == VAR_VALUE && sum->offset &&
	       plain->kind == VAR_REG && sum->reg == plain->reg &&
	       plain->hi <= sum->lo && plain->lo >= first;
}

/* The first address of the loop in which nobody needs the register of @sum. */
static bool loop_of(const struct range_code *code, const struct var_place *sum,
		    uint64_t *first_ret)
{
	uint8_t reg = range_reg_of_dwarf(sum->reg);
	size_t first =
		reg < 16 ? idle_loop(code, reg, sum->lo, sum->hi) : code->nr;
	if (first == code->nr)
		return false;
	*first_ret = code->insns[first].addr;
	return true;
}

bool range_doubt_round(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct range_index_entry *own, size_t nr_own,
		       const struct var_place *p)
{
	uint64_t first;
	/* The register alone. */
	for (size_t i = 0; p->kind == VAR_REG && i < nr_own; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (follows(q, p, 0) && loop_of(code, q, &first) &&
		    p->lo >= first)
			return true;
	}
	if (p->kind != VAR_VALUE || !p->offset || !loop_of(code, p, &first))
		return false;
	/* Of any that is computed alike from there on. */
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		if (q->kind != VAR_VALUE || q->lo != p->lo ||
		    q->reg != p->reg || q->offset != p->offset)
			continue;
		size_t k = i;
		while (k > 0 && all[k - 1].var == all[i].var)
			k--;
		for (; k < nr && all[k].var == all[i].var; k++)
			if (follows(q, &v->places[all[k].place], first))
				return true;
	}
	return false;
}

/* How far before a loop its counter is set. */
#define SET_REACH 8

/* The constant that is put in @reg, in what goes straight on to instruction @i.
 */
static bool is_set(const struct range_code *code, size_t i, uint8_t reg,
		   int64_t *k_ret)
{
	for (size_t n = 0; i > 0 && n < SET_REACH; i--, n++) {
		const struct range_insn *in = &code->insns[i - 1];
		if (!range_falls(code, i - 1))
			return false;
		*k_ret = in->imm;
		if (in->wrote >> reg & 1)
			return in->bits & RB_IMM;
		if (in->bits & RB_LEADER)
			return false;
	}
	return false;
}

bool range_doubt_behind(const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *own, size_t nr,
			const struct var_place *p, int64_t *k_ret)
{
	uint8_t reg = range_reg_of_dwarf(p->reg);
	size_t at = range_code_find(code, p->lo), last = at;
	int64_t set, was = 0;
	bool known = false;
	if (p->kind != VAR_REG || p->shift || reg >= 16 || at == code->nr ||
	    code->insns[at].addr != p->lo || !is_set(code, at, reg, &set))
		return false;
	while (last + 1 < code->nr && code->insns[last + 1].addr < p->hi)
		if (code->insns[last++].wrote >> reg & 1)
			return false;
	const struct range_insn *in = &code->insns[last];
	if (!(in->bits & RB_ADDS) || in->wrote != 1u << reg ||
	    in->addr + in->len != p->hi)
		return false;
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->lo == p->hi)
			return false;
		if (q->kind == VAR_CONST && q->hi == p->lo) {
			was = q->offset;
			known = true;
		}
	}
	*k_ret = in->imm;
	return known && in->imm &&
	       (uint64_t)set + (uint64_t)in->imm == (uint64_t)was;
}
