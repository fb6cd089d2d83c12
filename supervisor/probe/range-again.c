/* Where a place ends with a store to it, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* Instructions that are looked at. */
#define AGAIN_REACH 64

/* Those that control comes to behind the store. */
struct ways {
	const struct range_code *code;
	uint32_t
		seen[AGAIN_REACH]; /* from looked on they are to be looked at */
	size_t nr;
	bool lost; /* one of them goes where nobody can tell */
};

static void go_to(struct ways *w, size_t i)
{
	for (size_t k = 0; k < w->nr; k++)
		if (w->seen[k] == i)
			return;
	if (i >= w->code->nr || w->nr == AGAIN_REACH)
		w->lost = true;
	else
		w->seen[w->nr++] = (uint32_t)i;
}

static void go_on(struct ways *w, size_t i)
{
	const struct range_insn *in = &w->code->insns[i];
	bool jumps = in->kind == RK_JUMP || in->kind == RK_BRANCH;
	if (jumps) {
		size_t to = range_code_find(w->code, in->target);
		if (to < w->code->nr && w->code->insns[to].addr == in->target)
			go_to(w, to);
		else
			w->lost = true;
	}
	if (in->kind == RK_JUMP)
		return;
	if ((in->kind == RK_PLAIN || in->kind == RK_BRANCH) &&
	    range_falls(w->code, i))
		go_to(w, i + 1);
	else
		w->lost = true;
}

/* Is the variable in the memory of @p at @addr? */
static bool is_there(const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p, uint64_t addr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_MEM && q->reg == p->reg &&
		    q->offset == p->offset && addr >= q->lo && addr < q->hi)
			return true;
	}
	return false;
}

/* May @in write where @store does? The address is nobody else's. */
static bool may_change(const struct range_insn *in,
		       const struct range_insn *store)
{
	if (in->wrote >> store->base & 1)
		return true;
	return in->bits & RB_WRITES && in->base == store->base &&
	       (in->index != RANGE_NO_REG ||
		(in->disp < (int64_t)store->disp + store->mem_size &&
		 store->disp < (int64_t)in->disp + in->mem_size));
}

bool range_doubt_again(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, size_t i)
{
	const struct range_insn *store = &code->insns[i];
	struct ways w = {.code = code};
	bool any = false;
	if (p->flags & VAR_SCOPE || store->base >= 16)
		return false;
	go_on(&w, i);
	for (size_t k = 0; k < w.nr && !w.lost; k++) {
		const struct range_insn *in = &code->insns[w.seen[k]];
		if (is_there(v, own, nr, p, in->addr))
			any = true;
		else if (may_change(in, store))
			w.lost = true;
		else
			go_on(&w, w.seen[k]);
	}
	return any && !w.lost;
}
