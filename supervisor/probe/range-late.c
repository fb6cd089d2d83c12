/* What is stored before a place begins, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-operand.h"

#define LATE_REACH 64 /* how far before a place a store is looked for */

/* Does the variable of @p lie there throughout @q as well? */
static bool is_within(const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      uint32_t var, const struct var_place *p,
		      const struct var_place *q)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *own = &v->places[all[i].place];
		if (all[i].var == var && own->kind == VAR_MEM &&
		    own->reg == p->reg && own->offset == p->offset &&
		    own->lo <= q->lo && q->hi <= own->hi)
			return true;
	}
	return false;
}

/* Does another variable lie in some of the memory of @p, at any time but when
 * that does? */
static bool is_others(const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      uint32_t var, const struct var_place *p)
{
	uint64_t bytes = var_type_bytes(&v->vars[var].type);
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		const struct variable *other = &v->vars[all[i].var];
		if (all[i].var != var && q->kind == VAR_MEM &&
		    q->reg == p->reg &&
		    range_overlap(p->offset, bytes, q->offset,
				  var_type_bytes(&other->type)) &&
		    !range_same_object(other, &v->vars[var]) &&
		    !is_within(v, all, nr, var, p, q))
			return true;
	}
	return false;
}

/* The stores to be found in [@disp, @disp + @bytes) at register @base. */
struct late {
	const struct range_code *code;
	uint8_t base;
	int64_t disp;
	uint64_t bytes;
	uint32_t *store;
	size_t nr;
};

static bool is_overwritten(const struct late *l, const struct range_insn *in)
{
	for (size_t i = 0; i < l->nr; i++)
		if (range_is_operand(&l->code->insns[l->store[i]], in->base,
				     in->disp, in->mem_size))
			return true;
	return false;
}

/* The only jump to instruction @k, which nothing else leads to, and control
 * comes to the jump from the instruction before it; 0: there is none. */
static size_t jump_to(const struct range_edges *e,
		      const struct range_code *code, size_t k)
{
	uint64_t to = code->insns[k].addr;
	size_t a = range_edges_first(e, to);
	if (a == e->nr || e->edge[a].to != to ||
	    (a + 1 < e->nr && e->edge[a + 1].to == to))
		return 0;
	uint32_t from = e->edge[a].from;
	return code->insns[from].kind == RK_JUMP && from > 0 &&
			       range_falls(code, from - 1)
		       ? from
		       : 0;
}

/* Those of the instructions up to @i, which control comes from, that go
 * straight on to it. */
static void stores_up_to(const struct range_edges *e, struct late *l, size_t i)
{
	size_t first = l->nr; /* others are on other ways */
	struct late way = *l;
	way.store += first;
	way.nr = 0;
	for (size_t k = i, n = 0; n < LATE_REACH; k--, n++) {
		const struct range_insn *in = &l->code->insns[k];
		bool stores = (in->bits & (RB_STORES | RB_WRITES)) != 0;
		if (in->kind != RK_PLAIN || in->wrote >> l->base & 1 ||
		    (stores &&
		     (in->base != l->base || in->index != RANGE_NO_REG)))
			break;
		if (stores &&
		    range_is_operand(in, l->base, l->disp, l->bytes)) {
			if (first + way.nr == RANGE_DOUBT_LATE)
				break;
			if (!is_overwritten(&way, in))
				way.store[way.nr++] = (uint32_t)k;
		}
		if ((!k || !range_falls(l->code, k - 1)) &&
		    !(k = jump_to(e, l->code, k)))
			break;
	}
	l->nr = first + way.nr;
}

size_t range_doubt_late(const struct range_edges *e,
			const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *all, size_t nr,
			uint32_t var, const struct var_place *p,
			uint32_t store[RANGE_DOUBT_LATE])
{
	size_t i = range_code_find(code, p->lo);
	struct late l = {
		.code = code,
		.base = range_reg_of_dwarf(p->reg),
		.disp = p->offset,
		.bytes = var_type_bytes(&v->vars[var].type),
		.store = store,
	};
	if (i == code->nr || code->insns[i].addr != p->lo ||
	    l.base == RANGE_NO_REG)
		return 0;
	if (i > 0 && range_falls(code, i - 1))
		stores_up_to(e, &l, i - 1);
	for (size_t a = range_edges_first(e, p->lo);
	     a < e->nr && e->edge[a].to == p->lo; a++) {
		uint32_t from = e->edge[a].from;
		if (code->insns[from].kind == RK_JUMP && from > 0 &&
		    range_falls(code, from - 1))
			stores_up_to(e, &l, from - 1);
	}
	return l.nr && !is_others(v, all, nr, var, p) ? l.nr : 0;
}
