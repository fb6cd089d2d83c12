/* Constants of the other way out of a branch, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

#define FORK_REACH 24 /* instructions on a way, and before the branch */
#define USE_REACH  8  /* behind a place */

/* A branch, and the way out of it on which a place is not. */
struct fork {
	size_t branch, other; /* instructions */
	bool is_straight;     /* the place is straight on */
};

/* The branch because of which control is at instruction @i, some instructions
 * behind it, and nobody comes there otherwise. */
static bool fork_before(const struct range_edges *e,
			const struct range_code *code, size_t i,
			struct fork *ret)
{
	for (size_t first = i; i < code->nr && first - i < FORK_REACH; i--) {
		const struct range_insn *in = &code->insns[i];
		bool falls = i > 0 && range_falls(code, i - 1);
		if (range_is_led_to(e, code, i)) {
			size_t a = range_edges_first(e, in->addr);
			if (falls || in->bits & (RB_TABLE | RB_ENDBR) ||
			    (a + 1 < e->nr && e->edge[a + 1].to == in->addr))
				return false;
			ret->branch = e->edge[a].from;
			ret->other = ret->branch + 1;
			ret->is_straight = false;
			return i < first &&
			       code->insns[ret->branch].kind == RK_BRANCH &&
			       range_falls(code, ret->branch);
		}
		if (falls && in[-1].kind == RK_BRANCH) {
			ret->branch = i - 1;
			ret->other = range_code_find(code, in[-1].target);
			ret->is_straight = true;
			return i < first && ret->other < code->nr &&
			       code->insns[ret->other].addr == in[-1].target;
		}
		if (!falls)
			return false;
	}
	return false;
}

/* Is the constant put somewhere in @p, or straight on just behind it, or added
 * to something in @p, as the length of what is taken of a pool? */
static bool is_used(const struct range_code *code, const struct var_place *p,
		    size_t i)
{
	for (size_t behind = 0; i < code->nr && behind < USE_REACH; i++) {
		const struct range_insn *in = &code->insns[i];
		uint32_t bits = in->addr < p->hi ? RB_IMM | RB_ADDS : RB_IMM;
		if (in->bits & bits && (int32_t)in->imm == (int32_t)p->offset)
			return true;
		if (in->addr < p->hi)
			continue;
		behind++;
		if (in->kind == RK_BRANCH || !range_falls(code, i))
			break;
	}
	return false;
}

/* Is the variable said to be the same from where control gets to straight on
 * from instruction @i? */
static bool is_said(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *own, size_t nr,
		    const struct var_place *p, size_t i)
{
	for (size_t n = 0; i < code->nr && n < FORK_REACH; i++, n++) {
		const struct range_insn *in = &code->insns[i];
		for (size_t k = 0; k < nr; k++) {
			const struct var_place *q = &v->places[own[k].place];
			if (q != p && q->lo == in->addr &&
			    q->kind == VAR_CONST && q->offset == p->offset)
				return true;
		}
		if (in->kind == RK_BRANCH || !range_falls(code, i))
			break;
	}
	return false;
}

/* Is register @reg needed by what goes straight on from instruction @i? A call
 * takes nothing in rax but a number of vectors. */
static bool is_needed(const struct range_code *code, size_t i, unsigned reg)
{
	for (size_t n = 0; i < code->nr && n < FORK_REACH; i++, n++) {
		const struct range_insn *in = &code->insns[i];
		bool calls = in->kind == RK_CALL || in->kind == RK_CALL_TO;
		if (!(in->live >> reg & 1) || (calls && !reg))
			return false;
		if (in->use >> reg & 1 || in->kind == RK_BRANCH)
			return true;
	}
	return true;
}

/* Is @k put, before the branch, in a register that only the other way needs? */
static bool is_put(const struct range_code *code, const struct fork *f,
		   int64_t k)
{
	uint32_t regs = code->insns[f->other].live & RANGE_ALL_REGS;
	for (size_t i = f->branch, n = 0; i-- > 0 && n < FORK_REACH; n++) {
		const struct range_insn *in = &code->insns[i];
		if (!range_falls(code, i))
			break;
		if (in->bits & RB_IMM && !in->mem_size && in->wrote & regs &&
		    in->imm == k)
			return !is_needed(code, f->branch + 1,
					  (unsigned)__builtin_ctz(in->wrote));
		regs &= ~(uint32_t)in->wrote;
		if (in->bits & RB_LEADER)
			break;
	}
	return false;
}

/* Is the variable one more or less anywhere? So are counters. */
static bool is_counter(const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		uint64_t more = (uint64_t)q->offset - (uint64_t)p->offset;
		if (q->kind == VAR_CONST && (more == 1 || more + 1 == 0))
			return true;
	}
	return false;
}

bool range_doubt_fork(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct variable *var, const struct var_place *p)
{
	struct fork f;
	size_t i = range_code_find(code, p->lo);
	if (p->kind != VAR_CONST || (p->offset <= 2 && p->offset >= -2) ||
	    p->flags & VAR_SCOPE || !(p->flags & VAR_BEGINS) ||
	    var->flags & VAR_PARAMETER)
		return false;
	return fork_before(e, code, i, &f) && !is_used(code, p, i) &&
	       !is_counter(v, own, nr, p) &&
	       (is_said(code, v, own, nr, p, f.other) ||
		(f.is_straight && is_put(code, &f, p->offset)));
}
