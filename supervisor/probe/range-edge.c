/* See range-edge.h. */
#include "supervisor/probe/range-edge.h"

#include <stdlib.h>
#include <string.h>

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

size_t range_edges_first(const struct range_edges *e, uint64_t addr)
{
	size_t a = 0, b = e->nr;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (e->edge[mid].to < addr)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

bool range_is_led_to(const struct range_edges *e, const struct range_code *code,
		     size_t i)
{
	uint64_t addr = code->insns[i].addr;
	size_t a = range_edges_first(e, addr);
	return (a < e->nr && e->edge[a].to == addr) ||
	       code->insns[i].bits & (RB_TABLE | RB_ENDBR);
}

static bool same_place(const struct var_place *p, const struct var_place *q)
{
	return q->kind == p->kind && q->reg == p->reg && q->shift == p->shift &&
	       q->offset == p->offset && p->kind != VAR_EXPR;
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
		if (in->addr >= q->lo && in->addr < q->hi && same_place(p, q))
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
	if (p->kind == VAR_EXPR || p->kind == VAR_ADDR || p->kind == VAR_TLS ||
	    !i || p->function >= v->nr_functions ||
	    addr == v->functions[p->function].entry ||
	    code->insns[i].bits & RB_ENDBR)
		return false;
	if (any && !comes_from(code, v, own, nr, p, i - 1))
		return false;
	size_t a = range_edges_first(e, addr);
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

/* Is another variable of the same name, of another block, in register @reg up
 * to the end of instruction @from, a jump, and not where that leads? */
static bool is_left_by(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       uint32_t var, uint8_t reg, uint32_t from)
{
	const struct range_insn *in = &code->insns[from];
	const struct variable *own = &v->vars[var];
	for (size_t k = 0; k < nr; k++) {
		const struct var_place *q = &v->places[all[k].place];
		const struct variable *other = &v->vars[all[k].var];
		if (all[k].var != var && q->kind == VAR_REG && !q->shift &&
		    range_reg_of_dwarf(q->reg) == reg && q->flags & VAR_ENDS &&
		    q->hi == in->addr + in->len &&
		    !strcmp(other->qualified, own->qualified))
			return true;
	}
	return false;
}

bool range_is_others(const struct range_edges *e, const struct range_code *code,
		     const struct variables *v,
		     const struct range_index_entry *all, size_t nr,
		     const struct range_index_entry *own, size_t nr_own,
		     const struct var_place *p, uint32_t i)
{
	uint64_t addr = code->insns[i].addr;
	uint8_t reg = range_reg_of_dwarf(p->reg);
	if (p->kind != VAR_REG || reg >= 16)
		return false;
	for (size_t a = range_edges_first(e, addr);
	     a < e->nr && e->edge[a].to == addr; a++)
		if (!comes_from(code, v, own, nr_own, p, e->edge[a].from) &&
		    is_left_by(code, v, all, nr, own->var, reg,
			       e->edge[a].from))
			return true;
	return false;
}

bool range_is_entered(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, uint32_t regs, uint32_t i)
{
	uint64_t addr = code->insns[i].addr;
	for (size_t a = range_edges_first(e, addr);
	     a < e->nr && e->edge[a].to == addr; a++) {
		const struct range_insn *from = &code->insns[e->edge[a].from];
		bool inside = from->addr >= p->lo && from->addr < p->hi &&
			      !(from->wrote & regs);
		if (!inside &&
		    !comes_from(code, v, own, nr, p, e->edge[a].from))
			return true;
	}
	return false;
}

/* Bits of an instruction's state. */
#define SETTLED 1 /* before it; range_is_settled */
#define GIVES	2 /* a value, for those who go on behind it */
#define BEGINS	4 /* the place does so here, for everybody */
#define INSIDE	8 /* the variable's place holds here */

static bool settled_behind(const uint8_t *state, uint32_t i)
{
	return state[i] & (SETTLED | GIVES);
}

/* Is it so on all ways to @i? Nobody knows who comes to where nothing leads. */
static bool all_settled(const struct range_edges *e,
			const struct range_code *code, const uint8_t *state,
			uint32_t i)
{
	uint64_t addr = code->insns[i].addr;
	bool any = i > 0 && range_falls(code, i - 1);
	if (any && !settled_behind(state, i - 1))
		return false;
	for (size_t a = range_edges_first(e, addr);
	     a < e->nr && e->edge[a].to == addr; a++) {
		any = true;
		if (!settled_behind(state, e->edge[a].from))
			return false;
	}
	bool leads =
		code->insns[i].bits & (code->free_jumps ? RB_LEADER : RB_TABLE);
	for (size_t k = 0; leads && k < e->nr_wild; k++) {
		any = true;
		if (!settled_behind(state, e->wild[k]))
			return false;
	}
	return any;
}

void range_settled(const struct range_edges *e, const struct range_code *code,
		   const struct variables *v, const struct range_sites *sites,
		   const struct range_site *site, uint8_t *state)
{
	const struct var_place *p = &v->places[site->place];
	const struct variable *var = &v->vars[site->var];
	memset(state, 0, code->nr);
	for (uint32_t k = 0; k < var->nr_places; k++) {
		const struct var_place *q = &v->places[var->first_place + k];
		if (!same_place(p, q))
			continue;
		size_t end = range_code_find(code, q->hi);
		for (size_t i = range_code_find(code, q->lo); i < end; i++)
			state[i] = SETTLED | INSIDE;
	}
	for (size_t k = 0; k < sites->nr; k++) {
		const struct range_site *s = &sites->site[k];
		if (s->var != site->var || !same_place(p, &v->places[s->place]))
			continue;
		if (!s->fall)
			state[s->gap] |= BEGINS;
		else if (s->gap > 0 && state[s->gap - 1] & INSIDE)
			state[s->gap - 1] |= GIVES;
	}
	/* From all settled down, so it ends. */
	for (bool changed = true; changed;) {
		changed = false;
		for (uint32_t i = 0; i < code->nr; i++) {
			if (state[i] & BEGINS || !(state[i] & SETTLED) ||
			    all_settled(e, code, state, i))
				continue;
			state[i] &= (uint8_t)~SETTLED;
			changed = true;
		}
	}
}
