/* See range-edge.h. */
#include "supervisor/probe/range-edge.h"

#include <stdlib.h>

static int by_target(const void *a, const void *b)
{
	const struct range_edge *x = a, *y = b;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

bool range_edges_init(struct range_edges *e, const struct range_code *code)
{
	*e = (struct range_edges){
		.edge = calloc(code->nr + 1, sizeof(*e->edge)),
		.wild = calloc(code->nr + 1, sizeof(*e->wild)),
	};
	if (!e->edge || !e->wild)
		return false;
	for (uint32_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->kind == RK_JUMP_TO)
			e->wild[e->nr_wild++] = i;
		else if (in->target && in->kind != RK_CALL)
			e->edge[e->nr++] = (struct range_edge){in->target, i};
	}
	if (e->nr)
		qsort(e->edge, e->nr, sizeof(*e->edge), by_target);
	return true;
}

void range_edges_deinit(struct range_edges *e)
{
	free(e->edge);
	free(e->wild);
	*e = (struct range_edges){.nr = 0};
}

/* Behind instruction @from the variable is what it was before it, in a place
 * like @p. */
static bool comes_from(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, uint32_t from)
{
	const struct range_insn *in = &code->insns[from];
	uint8_t reg = range_reg_of_dwarf(p->reg);
	if (p->kind == VAR_MEM &&
	    (in->bits & RB_STORES || in->kind == RK_CALL ||
	     in->kind == RK_CALL_TO))
		return false;
	if (p->kind != VAR_CONST &&
	    (reg == RANGE_NO_REG || in->wrote >> reg & 1))
		return false;
	for (size_t k = 0; k < nr; k++) {
		const struct var_place *q = &v->places[own[k].place];
		if (in->addr >= q->lo && in->addr < q->hi &&
		    q->kind == p->kind && q->reg == p->reg &&
		    q->shift == p->shift && q->offset == p->offset)
			return true;
	}
	return false;
}

bool range_goes_on(const struct range_edges *e, const struct range_code *code,
		   const struct variables *v,
		   const struct range_index_entry *own, size_t nr,
		   const struct var_place *p, uint32_t i)
{
	uint64_t addr = code->insns[i].addr;
	bool any = i > 0 && range_falls(code, i - 1);
	if (p->kind == VAR_EXPR || p->kind == VAR_ADDR || !i ||
	    p->function >= v->nr_functions ||
	    addr == v->functions[p->function].entry ||
	    code->insns[i].bits & RB_ENDBR)
		return false;
	if (any && !comes_from(code, v, own, nr, p, i - 1))
		return false;
	size_t a = 0, b = e->nr;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (e->edge[mid].to < addr)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < e->nr && e->edge[a].to == addr; a++) {
		any = true;
		if (!comes_from(code, v, own, nr, p, e->edge[a].from))
			return false;
	}
	/* A table may lead here, too. */
	for (size_t k = 0; k < e->nr_wild; k++) {
		any = true;
		if (!comes_from(code, v, own, nr, p, e->wild[k]))
			return false;
	}
	return any;
}
