/* Constants that belong to another case than the code they are said of, see
 * range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* Ways to one instruction that are told apart, and instructions of each that
 * are looked at. */
#define NR_WAYS	  16
#define WAY_REACH 8

/* Where a constant place begins, and the last instruction of each way there. */
struct merge {
	const struct range_code *code;
	const struct variables *v;
	const struct range_index_entry *own;
	size_t nr_own;
	const struct var_place *p;
	uint64_t mask; /* of the variable's bits */
	size_t at;
	uint32_t from[NR_WAYS];
	size_t nr;
};

/* What the variable is said to be. */
enum said {
	SAID_NOTHING,
	SAID_SAME,    /* the constant */
	SAID_ANOTHER, /* constant */
	SAID_ELSE,    /* to be somewhere */
};

static enum said said_at(const struct merge *m, size_t i, int64_t *k_ret)
{
	uint64_t addr = m->code->insns[i].addr;
	enum said said = SAID_NOTHING;
	for (size_t n = 0; n < m->nr_own; n++) {
		const struct var_place *q = &m->v->places[m->own[n].place];
		if (addr < q->lo || addr >= q->hi)
			continue;
		if (q->kind != VAR_CONST)
			return SAID_ELSE;
		if (q->offset == m->p->offset)
			return SAID_SAME;
		*k_ret = q->offset;
		said = SAID_ANOTHER;
	}
	return said;
}

/* Does @in put @k somewhere, as much of it as the variable has? */
static bool is_mov_of(const struct merge *m, const struct range_insn *in,
		      int64_t k)
{
	return in->bits & RB_IMM &&
	       !(((uint64_t)in->imm ^ (uint64_t)k) & m->mask);
}

/* Is more than the constant put somewhere by @in: one with more bits set,
 * as flags are, or something plus it? */
static bool is_mov_of_more(const struct merge *m, const struct range_insn *in)
{
	uint64_t k = (uint64_t)m->p->offset & m->mask;
	if (in->bits & RB_LEA)
		return in->disp == m->p->offset;
	if (in->bits & RB_ADDS)
		return in->imm == m->p->offset;
	return in->bits & RB_IMM && !(k & ~(uint64_t)in->imm);
}

/* Does anything in @q put the constant somewhere? */
static bool is_put_in(const struct merge *m, const struct var_place *q)
{
	for (size_t i = range_code_find(m->code, q->lo);
	     i < m->code->nr && m->code->insns[i].addr < q->hi; i++)
		if (is_mov_of(m, &m->code->insns[i], m->p->offset))
			return true;
	return false;
}

/* Is that, or more than it, put somewhere in the place itself or in what goes
 * straight on from its end? */
static bool is_used(const struct merge *m)
{
	size_t behind = 0;
	for (size_t i = m->at; i < m->code->nr && behind < WAY_REACH; i++) {
		const struct range_insn *in = &m->code->insns[i];
		bool within = in->addr < m->p->hi;
		if (!within &&
		    (in->bits & RB_LEADER || !range_falls(m->code, i - 1)))
			break;
		behind += !within;
		if (is_mov_of(m, in, m->p->offset) || is_mov_of_more(m, in))
			return true;
	}
	return false;
}

/* The ways to instruction @m->at; false: not all of them are known. */
static bool ways_to(struct merge *m, const struct range_edges *e)
{
	const struct range_insn *in = &m->code->insns[m->at];
	if (in->bits & (RB_TABLE | RB_ENDBR))
		return false;
	if (m->at > 0 && range_falls(m->code, m->at - 1) &&
	    !(in[-1].bits & RB_UNREACHED))
		m->from[m->nr++] = (uint32_t)m->at - 1;
	for (size_t a = range_edges_first(e, in->addr);
	     a < e->nr && e->edge[a].to == in->addr; a++) {
		if (m->nr == NR_WAYS)
			return false;
		m->from[m->nr++] = e->edge[a].from;
	}
	return m->nr > 0;
}

/* The last instruction that writes one of @regs on the way that ends with
 * instruction @i, in what goes straight on to that; NULL: there is none. */
static const struct range_insn *writer_on_way(const struct range_code *code,
					      size_t i, uint32_t regs)
{
	for (size_t n = 0; n < WAY_REACH; n++, i--) {
		const struct range_insn *in = &code->insns[i];
		if (in->wrote & regs)
			return in;
		if (!i || in->bits & RB_LEADER || !range_falls(code, i - 1))
			break;
	}
	return NULL;
}

/* The one that puts @k in a register that is needed where the ways meet. */
static const struct range_insn *put_on_way(const struct merge *m, size_t i,
					   int64_t k)
{
	uint32_t needed = m->code->insns[m->at].live & RANGE_ALL_REGS;
	for (unsigned reg = 0; reg < 16; reg++) {
		const struct range_insn *in =
			needed >> reg & 1 ? writer_on_way(m->code, i, 1u << reg)
					  : NULL;
		if (in && in->wrote == 1u << reg && is_mov_of(m, in, k))
			return in;
	}
	return NULL;
}

/* Is the constant put in a register on one way, and something else in it on
 * another? Then it is that way's. */
static bool is_of_one_way(const struct merge *m)
{
	const struct range_insn *put = NULL;
	size_t nr = 0, others = 0;
	for (size_t i = 0; i < m->nr; i++) {
		const struct range_insn *in =
			put_on_way(m, m->from[i], m->p->offset);
		nr += in != NULL;
		put = in ? in : put;
	}
	for (size_t i = 0; nr == 1 && i < m->nr; i++) {
		const struct range_insn *in =
			writer_on_way(m->code, m->from[i], put->wrote);
		others += in && in != put;
	}
	return others > 0;
}

/* Is what the variable was on a way put in a register there that is needed
 * on? Nobody would, had it another value from here on. */
static bool is_needed_on(const struct merge *m)
{
	int64_t k;
	for (size_t i = 0; i < m->nr; i++)
		if (said_at(m, m->from[i], &k) == SAID_ANOTHER && k &&
		    put_on_way(m, m->from[i], k))
			return true;
	return false;
}

/* Does the variable get the constant elsewhere, where the code has it? Smaller
 * ones it has for much else. */
static bool is_put_elsewhere(const struct merge *m)
{
	const struct range_code *code = m->code;
	int64_t k = m->p->offset;
	for (size_t i = 0; (k > 2 || k < -2) && i < m->nr_own; i++) {
		const struct var_place *q = &m->v->places[m->own[i].place];
		if (q == m->p || q->kind != VAR_CONST || q->offset != k)
			continue;
		size_t at = range_code_find(code, q->lo);
		if (is_put_in(m, q) ||
		    (at > 0 && at < code->nr && range_falls(code, at - 1) &&
		     is_mov_of(m, &code->insns[at - 1], k)))
			return true;
	}
	return false;
}

/* Has the variable gone on to this constant from @k as it did to that? */
static bool counts_on(const struct merge *m, int64_t k)
{
	uint64_t before = 2 * (uint64_t)k - (uint64_t)m->p->offset;
	for (size_t i = 0; i < m->nr_own; i++) {
		const struct var_place *q = &m->v->places[m->own[i].place];
		if (q->kind == VAR_CONST && (uint64_t)q->offset == before)
			return true;
	}
	return false;
}

/* Behind the branch that a block ends with nothing has been computed. Not where
 * others come, too: the block may be a loop, of which that is told. */
static bool is_behind_branch(const struct merge *m, const struct range_edges *e)
{
	int64_t k;
	return m->at > 0 && m->at < m->code->nr &&
	       m->code->insns[m->at - 1].kind == RK_BRANCH &&
	       !range_is_led_to(e, m->code, m->at) &&
	       said_at(m, m->at - 1, &k) == SAID_ANOTHER && !counts_on(m, k);
}

/* Where ways meet at instruction @i, does register @reg hold the constant on
 * one of them, and another one on another? */
static bool is_chosen(const struct merge *m, const struct range_edges *e,
		      size_t i, unsigned reg)
{
	struct merge at = *m;
	size_t same = 0, other = 0;
	at.at = i;
	at.nr = 0;
	if (!ways_to(&at, e))
		return false;
	for (size_t k = 0; k < at.nr; k++) {
		const struct range_insn *in =
			writer_on_way(m->code, at.from[k], 1u << reg);
		if (!in || in->wrote != 1u << reg || !(in->bits & RB_IMM))
			continue;
		same += is_mov_of(m, in, m->p->offset);
		other += !is_mov_of(m, in, m->p->offset);
	}
	return same && other;
}

/* The same, anywhere in the place. Of @regs those that are needed there. */
static bool is_chosen_within(const struct merge *m, const struct range_edges *e,
			     uint32_t regs)
{
	const struct range_code *code = m->code;
	for (size_t i = m->at + 1;
	     i < code->nr && code->insns[i].addr < m->p->hi; i++) {
		const struct range_insn *in = &code->insns[i];
		if (!(in->bits & RB_LEADER))
			continue;
		for (unsigned reg = 0; reg < 16; reg++)
			if (in->live & regs & 1u << reg &&
			    is_chosen(m, e, i, reg))
				return true;
	}
	return false;
}

/* The register that the variable is in straight behind the place. */
static uint32_t goes_to(const struct merge *m)
{
	uint32_t regs = 0;
	for (size_t i = 0; i < m->nr_own; i++) {
		const struct var_place *q = &m->v->places[m->own[i].place];
		uint8_t reg = range_reg_of_dwarf(q->reg);
		if (q->kind == VAR_REG && q->lo == m->p->hi && reg < 16)
			regs |= 1u << reg;
	}
	return regs;
}

/*
 * Is the constant chosen in the place itself, so that it is that of one way
 * only? That is told by the register that the variable is in next: not of zero,
 * which it may have been until then. Or, where nothing is said of when it is
 * that, by any, unless much else is.
 */
static bool is_one_of_several(const struct merge *m,
			      const struct range_edges *e,
			      const struct var_type *t)
{
	int64_t k = m->p->offset;
	if (m->p->flags & VAR_ENDS)
		return k && is_chosen_within(m, e, goes_to(m));
	return !t->is_const && (k > 2 || k < -2) &&
	       is_chosen_within(m, e, RANGE_ALL_REGS & ~(1u << RANGE_RSP));
}

/* Has the variable the constant on some of the ways, and is it not known where
 * it is on the others? Those who come on the first have been looked at, and of
 * the others it is not so: nobody gives a variable what it has. */
static bool is_of_some_ways(const struct merge *m)
{
	size_t same = 0, nothing = 0;
	for (size_t i = 0; i < m->nr; i++) {
		uint64_t addr = m->code->insns[m->from[i]].addr;
		int64_t k;
		enum said said = said_at(m, m->from[i], &k);
		if (said == SAID_ELSE || (addr >= m->p->lo && addr < m->p->hi))
			return false;
		same += said == SAID_SAME;
		nothing += said != SAID_SAME;
	}
	return same && nothing;
}

static bool is_of_another(const struct merge *m)
{
	const struct var_place *p = m->p;
	bool far = true;
	if ((p->offset > 2 || p->offset < -2) && is_of_some_ways(m))
		return true;
	for (size_t i = 0; i < m->nr; i++) {
		int64_t k;
		enum said said = said_at(m, m->from[i], &k);
		if (said == SAID_SAME || said == SAID_ELSE)
			return false;
		/* A counter's are neighbours. */
		if (said == SAID_ANOTHER &&
		    (uint64_t)p->offset - (uint64_t)k + 1 <= 2)
			return false;
		far &= said == SAID_ANOTHER;
	}
	bool alone = m->nr == 1;
	if (alone && (!far || m->from[0] + 1 == m->at))
		return false;
	bool is_bool = !p->offset || p->offset == 1;
	if (!alone && (is_needed_on(m) || (!is_bool && is_of_one_way(m))))
		return true;
	return p->offset && !is_used(m) &&
	       !put_on_way(m, m->from[0], p->offset) &&
	       (far || is_put_elsewhere(m));
}

bool range_doubt_case(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, const struct var_type *t,
		      bool is_given)
{
	struct merge m = {
		.code = code,
		.v = v,
		.own = own,
		.nr_own = nr,
		.p = p,
		.mask = t->width < 4 ? (UINT64_C(1) << 8 * t->width) - 1
				     : UINT32_MAX,
		.at = range_code_find(code, p->lo),
	};
	if (p->kind != VAR_CONST || p->flags & VAR_SCOPE ||
	    !(p->flags & VAR_BEGINS))
		return false;
	if (p->flags & VAR_LAST)
		return is_behind_branch(&m, e);
	if (is_one_of_several(&m, e, t))
		return true;
	while (m.at < code->nr && code->insns[m.at].bits & RB_UNREACHED)
		m.at++;
	return !is_given && m.at < code->nr && code->insns[m.at].addr < p->hi &&
	       ways_to(&m, e) && is_of_another(&m);
}
