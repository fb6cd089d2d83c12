/* Addresses that are handed out, see range-taken.h. */
#include "supervisor/probe/range-taken.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-site.h"

/* How far before a member its struct may begin. */
#define STRUCT_REACH 4096
/* How far ahead arguments for a call are looked for, in instructions. */
#define PUSH_REACH 64

static bool is_part(const struct variable *var)
{
	return strpbrk(var->name, ".[") != NULL;
}

/* Are they members of one variable? */
static bool same_struct(const struct variable *a, const struct variable *b)
{
	size_t n = strcspn(a->name, ".");
	return a->name[n] && !strncmp(a->name, b->name, n + 1) &&
	       a->line == b->line && !strcmp(a->file, b->file) &&
	       !strcmp(a->scope, b->scope);
}

uint64_t range_first_member(const struct variables *v, uint32_t var)
{
	const struct variable *own = &v->vars[var], *first = own;
	while (first > v->vars && same_struct(own, first - 1) &&
	       first[-1].nr_places &&
	       v->places[first[-1].first_place].kind == VAR_ADDR)
		first--;
	return (uint64_t)v->places[first->first_place].offset;
}

/* mov %rsp, ... */
static bool copies_stack(const struct range_insn *in)
{
	return in->kind == RK_PLAIN && !in->mem_size && in->wrote &&
	       in->use >> RANGE_RSP & 1 && !(in->wrote >> RANGE_RSP & 1);
}

bool range_givers_init(struct range_givers *g, const struct range_code *code)
{
	*g = (struct range_givers){
		.code = code,
		.insn = malloc((code->nr + 1) * sizeof(*g->insn)),
	};
	for (uint32_t i = 0; g->insn && i < code->nr; i++)
		if (code->insns[i].bits & RB_LEA ||
		    copies_stack(&code->insns[i]))
			g->insn[g->nr++] = i;
	return g->insn != NULL;
}

void range_givers_deinit(struct range_givers *g)
{
	free(g->insn);
	*g = (struct range_givers){.nr = 0};
}

/* By how much the stack pointer is lower at instruction @to than at @from, if
 * that goes straight on to it; else 0. */
static int64_t pushed_between(const struct range_code *code, size_t from,
			      size_t to)
{
	int64_t bytes = 0;
	if (to < from || to - from > PUSH_REACH)
		return 0;
	for (size_t i = from; i < to; i++) {
		const struct range_insn *in = &code->insns[i];
		if (!range_falls(code, i))
			return 0;
		if (!(in->wrote >> RANGE_RSP & 1) || in->kind != RK_PLAIN)
			continue;
		if (in->bits & RB_ADDS)
			bytes -= in->imm;
		else if (in->bits & RB_POP)
			bytes -= 8;
		else if (in->bits & RB_STORES)
			bytes += 8;
		else
			return 0;
	}
	return bytes;
}

bool range_frame_taken(const struct range_givers *g, const struct var_place *p,
		       const struct variable *var)
{
	uint8_t reg = range_reg_of_dwarf(p->reg);
	int64_t reach = is_part(var) ? STRUCT_REACH : 0;
	size_t lo = range_code_find(g->code, p->lo);
	for (size_t i = 0; i < g->nr; i++) {
		const struct range_insn *in = &g->code->insns[g->insn[i]];
		bool inside = in->addr >= p->lo && in->addr < p->hi;
		bool lea = in->bits & RB_LEA && in->base == reg;
		bool copy = reg == RANGE_RSP && copies_stack(in);
		int64_t at = lea ? in->disp : 0;
		if (lea && reg == RANGE_RSP)
			at -= pushed_between(g->code, lo, g->insn[i]);
		if ((lea || copy) && at <= p->offset &&
		    at >= p->offset - (inside ? reach : 0))
			return true;
	}
	return false;
}

bool range_data_taken(const struct range_image *img, const struct var_place *p,
		      const struct variable *var)
{
	uint64_t at = (uint64_t)p->offset;
	uint64_t reach = is_part(var) ? STRUCT_REACH : 0;
	return range_image_taken(img, at - (reach < at ? reach : at), at + 1);
}
