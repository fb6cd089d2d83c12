/* Places in which nothing has been put since the function began, see
 * range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* How many runs of instructions are gone through. */
#define BARE_REACH 256
/* What a function gives back as it was: rbx, rbp, r12 to r15. Others may have
 * an argument in them. */
#define CALLERS 0xf028u
/* Its caller's frame begins so much above the stack pointer. */
#define ABOVE 8

/* On the way back: behind which instruction, and where the memory is there. */
struct bare_at {
	size_t i;
	int64_t disp;
	uint8_t base; /* RANGE_NO_REG: it is a register */
};
struct bare_walk {
	const struct range_edges *e;
	const struct range_code *code;
	uint64_t entry;
	uint8_t reg;
	uint64_t bytes;
	struct bare_at at[BARE_REACH]; /* also where it has been */
	size_t nr;
	bool is_lost; /* it cannot be told */
};

/* Does instruction @in make the address of that memory, or of what lies below
 * it and may be a part of the same? Who gets it may store there. */
static bool hands_out(const struct range_insn *in, const struct bare_at *a)
{
	if (in->bits & RB_LEA)
		return in->base == a->base &&
		       (in->index != RANGE_NO_REG || in->disp <= a->disp);
	return a->base == RANGE_RSP && in->kind == RK_PLAIN && !in->mem_size &&
	       in->wrote && in->use >> RANGE_RSP & 1 &&
	       !(in->wrote >> RANGE_RSP & 1);
}

/* May something be put there by instruction @in, or from it on? */
static bool may_put(const struct bare_walk *w, const struct range_insn *in,
		    const struct bare_at *a)
{
	if (a->base == RANGE_NO_REG)
		return in->wrote >> w->reg & 1;
	if (in->bits & RB_WRITES && in->base == a->base)
		return in->index != RANGE_NO_REG ||
		       (in->disp < a->disp + (int64_t)w->bytes &&
			a->disp < in->disp + in->mem_size);
	return hands_out(in, a);
}

/* Where the memory lies ahead of what instruction @in changes; false: that is
 * not known, or it is pushed there. */
static bool moves_back(const struct bare_walk *w, const struct range_insn *in,
		       struct bare_at *a)
{
	bool stack = a->base == RANGE_RSP;
	if (a->base == RANGE_NO_REG || in->kind == RK_CALL ||
	    in->kind == RK_CALL_TO || !(in->wrote >> a->base & 1))
		return true;
	if (in->bits & RB_ADDS && !in->mem_size) {
		a->disp += in->imm;
	} else if (stack && in->bits & RB_POP) {
		a->disp += 8;
	} else if (stack && in->bits & RB_STORES &&
		   in->wrote == 1u << RANGE_RSP) {
		if (a->disp < 8 && a->disp + (int64_t)w->bytes > 0)
			return false;
		a->disp -= 8;
	} else if (a->base == RANGE_RBP && !in->mem_size &&
		   in->bits & RB_COMPUTES && !(in->bits & RB_LEA) &&
		   in->use == 1u << RANGE_RSP) {
		a->base = RANGE_RSP;
	} else {
		return false;
	}
	return true;
}

static void come_from(struct bare_walk *w, size_t i, const struct bare_at *a)
{
	for (size_t k = 0; k < w->nr; k++)
		if (w->at[k].i == i)
			return;
	if (w->nr == BARE_REACH) {
		w->is_lost = true;
		return;
	}
	w->at[w->nr] = *a;
	w->at[w->nr++].i = i;
}

/* Is there a call before instruction @i, and padding perhaps? */
static bool is_behind_call(const struct range_code *code, size_t i)
{
	while (i > 0 && code->insns[i - 1].bits & RB_PADDING &&
	       range_falls(code, i - 1))
		i--;
	return i > 0 && (code->insns[i - 1].kind == RK_CALL ||
			 code->insns[i - 1].kind == RK_CALL_TO);
}

/* Does the function that instruction @i calls come back elsewhere, where nobody
 * else comes? */
static bool comes_back(const struct bare_walk *w, size_t i)
{
	const struct range_code *code = w->code;
	const struct range_insn *call = &code->insns[i];
	for (size_t k = 0; call->kind == RK_CALL && k + 1 < code->nr; k++)
		if (code->insns[k].kind == RK_CALL && k != i &&
		    code->insns[k].target == call->target &&
		    range_falls(code, k) &&
		    !(code->insns[k + 1].bits & (RB_PADDING | RB_UNREACHED)) &&
		    !range_is_led_to(w->e, code, k + 1))
			return true;
	return false;
}

/* All that control comes from to instruction @i. Where others come as well
 * nobody may come out of a call before it. */
static void ways_to(struct bare_walk *w, size_t i, const struct bare_at *a)
{
	const struct range_insn *in = &w->code->insns[i];
	size_t k = range_edges_first(w->e, in->addr);
	bool led_to = false;
	for (; k < w->e->nr && w->e->edge[k].to == in->addr; k++) {
		come_from(w, w->e->edge[k].from, a);
		led_to = true;
	}
	if (in->bits & (RB_TABLE | RB_ENDBR) && w->e->nr_wild == 1) {
		come_from(w, w->e->wild[0], a);
		led_to = true;
	} else if (in->bits & (RB_TABLE | RB_ENDBR)) {
		w->is_lost = true;
	}
	bool falls = i > 0 && range_falls(w->code, i - 1) &&
		     !(in[-1].bits & RB_UNREACHED);
	if (falls &&
	    !(led_to && is_behind_call(w->code, i) && !comes_back(w, i - 1)))
		come_from(w, i - 1, a);
	w->is_lost |= !falls && !led_to;
}

/* Back from behind instruction @a->i: does the function begin before anything
 * is put there? */
static bool comes_from_entry(struct bare_walk *w, struct bare_at a)
{
	for (;; a.i--) {
		const struct range_insn *in = &w->code->insns[a.i];
		if (may_put(w, in, &a) || !moves_back(w, in, &a))
			return false;
		if (in->addr == w->entry)
			return a.base == RANGE_NO_REG ||
			       (a.base == RANGE_RSP &&
				a.disp + (int64_t)w->bytes <= ABOVE);
		if (in->bits & (RB_LEADER | RB_TABLE | RB_ENDBR) || !a.i ||
		    !range_falls(w->code, a.i - 1)) {
			ways_to(w, a.i, &a);
			return false;
		}
	}
}

/* Does one of the ways begin with the function, and nothing is put there? */
static bool is_bare(struct bare_walk *w)
{
	for (size_t k = 0; k < w->nr && !w->is_lost; k++)
		if (comes_from_entry(w, w->at[k]))
			return true;
	return false;
}

bool range_doubt_bare(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct var_place *p, const struct variable *var,
		      size_t i, bool *straight_on)
{
	struct bare_walk w = {.e = e,
			      .code = code,
			      .reg = range_reg_of_dwarf(p->reg),
			      .bytes = var->type.width};
	struct bare_at a = {.disp = p->offset, .base = w.reg};
	size_t k = i;
	if (p->kind == VAR_REG && w.reg < 16 && CALLERS >> w.reg & 1)
		a.base = RANGE_NO_REG;
	else if (p->kind != VAR_MEM || !(p->flags & VAR_FRAME))
		return false;
	if (p->function >= v->nr_functions || i >= code->nr)
		return false;
	w.entry = v->functions[p->function].entry;
	/* A place may be said to begin ahead of the padding of a loop. */
	while (k + 1 < code->nr && code->insns[k].bits & RB_PADDING)
		k++;
	if (code->insns[k].addr == w.entry)
		return false;
	if (!*straight_on) {
		ways_to(&w, k, &a);
		if (!is_bare(&w))
			return false;
	}
	w.nr = 0;
	w.is_lost = false;
	if (!i || !range_falls(code, i - 1) ||
	    code->insns[i - 1].bits & RB_UNREACHED)
		return true;
	come_from(&w, i - 1, &a);
	*straight_on = true;
	return is_bare(&w);
}

bool range_doubt_empty(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr_own,
		       const struct range_index_entry *all, size_t nr_all,
		       const struct var_place *p, uint64_t bytes, size_t i)
{
	bool led_to = range_is_led_to(e, code, i);
	if (p->kind == VAR_EXPR)
		return range_doubt_loads(e, code, v, all, nr_all, p, i, led_to);
	return p->kind == VAR_MEM &&
	       (range_doubt_early(code, v, own, nr_own, p, bytes, i) ||
		(!led_to &&
		 range_doubt_unset(code, v, all, nr_all, p, bytes, i)) ||
		range_doubt_filled(e, code, v, all, nr_all, p, bytes, i));
}
