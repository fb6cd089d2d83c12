/* See range-read.h. */
#include "supervisor/probe/range-read.h"

/* A load may be so many instructions before the place. */
#define REACH 16
#define DEPTH 4 /* of an expression's stack */

/* An address: a sum of registers, each so many times, and a number. */
struct address {
	int64_t times[16]; /* by register, in the processor's order */
	int64_t disp;
	uint32_t regs; /* those that it depends on */
};

static void add(struct address *a, const struct address *b)
{
	for (size_t r = 0; r < ARRAY_SIZE(a->times); r++)
		a->times[r] += b->times[r];
	a->disp = (int64_t)((uint64_t)a->disp + (uint64_t)b->disp);
}

static bool is_number(const struct address *a)
{
	for (size_t r = 0; r < ARRAY_SIZE(a->times); r++)
		if (a->times[r])
			return false;
	return true;
}

/* @b is shifted into @a, of registers once each. */
static bool shift(struct address *a, const struct address *b)
{
	if (!is_number(b) || b->disp < 0 || b->disp > 3)
		return false;
	for (size_t r = 0; r < ARRAY_SIZE(a->times); r++) {
		if (a->times[r] < 0 || a->times[r] > 1)
			return false;
		a->times[r] <<= b->disp;
	}
	a->disp = (int64_t)((uint64_t)a->disp << b->disp);
	return true;
}

static bool push(struct address *to, const struct var_op *op)
{
	*to = (struct address){.disp = 0};
	if (op->code == VAR_OP_CONST) {
		to->disp = op->arg;
		return true;
	}
	uint8_t reg = op->code == VAR_OP_REG
			      ? range_reg_of_dwarf((unsigned)op->arg)
			      : RANGE_NO_REG;
	if (reg >= 16)
		return false;
	to->times[reg] = 1;
	return true;
}

/* What @ops make, if it is such a sum. */
static bool sum_of(const struct var_op *ops, size_t nr, struct address *ret)
{
	struct address stack[DEPTH];
	size_t n = 0;
	for (size_t i = 0; i < nr; i++) {
		unsigned pops = var_op_pops(ops[i].code);
		if (n < pops || (!pops && n == DEPTH))
			return false;
		if (!pops) {
			if (!push(&stack[n++], &ops[i]))
				return false;
			continue;
		}
		if (pops == 2)
			n--;
		if (ops[i].code == VAR_OP_PLUS_CONST)
			stack[n - 1].disp =
				(int64_t)((uint64_t)stack[n - 1].disp +
					  (uint64_t)ops[i].arg);
		else if (ops[i].code == VAR_OP_ADD)
			add(&stack[n - 1], &stack[n]);
		else if (ops[i].code != VAR_OP_SHL ||
			 !shift(&stack[n - 1], &stack[n]))
			return false;
	}
	if (n == 1)
		*ret = stack[0];
	return n == 1;
}

/* Where @p is. False: in no such memory, or that is not understood. */
static bool address_of(const struct variables *v, const struct var_place *p,
		       struct address *ret)
{
	*ret = (struct address){.disp = p->offset};
	uint8_t reg = range_reg_of_dwarf(p->reg);
	if (p->kind == VAR_MEM) {
		if (p->flags & VAR_FRAME || reg >= 16)
			return false;
		ret->times[reg] = 1;
	} else if (p->kind != VAR_EXPR || !p->nr_ops ||
		   p->first_op > v->nr_ops ||
		   p->nr_ops > v->nr_ops - p->first_op ||
		   v->ops[p->first_op + p->nr_ops - 1].code != VAR_OP_LOAD ||
		   !sum_of(v->ops + p->first_op, p->nr_ops - 1, ret)) {
		return false;
	}
	for (unsigned r = 0; r < ARRAY_SIZE(ret->times); r++)
		ret->regs |= ret->times[r] ? 1u << r : 0;
	return ret->regs;
}

/* Does instruction @in load @bytes from there, as they are? */
static bool loads(const struct range_insn *in, const struct address *a,
		  unsigned bytes)
{
	struct address own = {.disp = in->disp};
	if (in->mem_size != bytes || in->base >= 16 || in->reg >= 16 ||
	    (in->index != RANGE_NO_REG && in->index >= 16) ||
	    (in->bits & (RB_READS | RB_WRITES | RB_LEA)) != RB_READS)
		return false;
	own.times[in->base] = 1;
	if (in->index != RANGE_NO_REG)
		own.times[in->index] += in->scale;
	for (size_t r = 0; r < ARRAY_SIZE(own.times); r++)
		if (own.times[r] != a->times[r])
			return false;
	return own.disp == a->disp;
}

/*
 * The register that holds before instruction @i what was loaded from there, by
 * all who come to @i, with all that the address depends on as it was;
 * RANGE_NO_REG: none. The variable may have been put there since: by a store of
 * as many bytes.
 */
static uint8_t loaded_before(const struct range_code *code,
			     const struct address *a, unsigned bytes, size_t i)
{
	uint32_t written = 0;
	for (size_t k = i; k > 0 && i - k < REACH; k--) {
		const struct range_insn *in = &code->insns[k - 1];
		if (code->insns[k].bits & RB_LEADER ||
		    !range_falls(code, k - 1) || in->wrote & a->regs ||
		    (in->kind != RK_PLAIN && in->kind != RK_BRANCH) ||
		    (in->bits & RB_STORES &&
		     (!in->mem_size || in->mem_size == bytes)))
			break;
		if (loads(in, a, bytes) && !(written >> in->reg & 1))
			return in->reg;
		written |= in->wrote;
	}
	return RANGE_NO_REG;
}

/* How many instructions behind a point the program may read it. */
#define POINT_REACH 4

/* The instruction behind instruction @i, or itself, that loads what is there
 * then; code->nr: none. */
static size_t loads_soon(const struct range_code *code, const struct address *a,
			 unsigned bytes, size_t i)
{
	for (size_t k = i; k + 1 < code->nr && k - i < POINT_REACH; k++) {
		const struct range_insn *in = &code->insns[k];
		if ((k > i && in->bits & RB_LEADER) || in->kind != RK_PLAIN ||
		    !range_falls(code, k))
			break;
		if (loads(in, a, bytes))
			return k;
		if (in->bits & RB_STORES || in->wrote & a->regs)
			break;
	}
	return code->nr;
}

bool range_read_point(const struct range_code *code, const struct variables *v,
		      struct range_site *s)
{
	const struct var_place *p = &v->places[s->place];
	size_t i = range_code_find(code, p->lo);
	struct address a;
	if (i == code->nr || code->insns[i].addr != p->lo ||
	    !address_of(v, p, &a))
		return false;
	i = loads_soon(code, &a, v->vars[s->var].type.width, i);
	if (i == code->nr)
		return false;
	s->source = RS_REG;
	s->reg = code->insns[i].reg;
	s->shift = 0;
	s->offset = 0;
	s->gap = (uint32_t)i + 1;
	s->fall = s->apart = true;
	return true;
}

void range_read_sites(const struct range_code *code, const struct variables *v,
		      const struct range_site *s, struct range_sites *out,
		      bool *failed)
{
	const struct var_place *p = &v->places[s->place];
	const struct var_type *t = &v->vars[s->var].type;
	struct range_site site = {.var = s->var,
				  .place = s->place,
				  .source = RS_REG,
				  .apart = true,
				  .fall = true};
	struct address a;
	if (t->nr_dims || p->flags & VAR_SCOPE || !address_of(v, p, &a))
		return;
	size_t i = range_code_find(code, p->lo);
	if (i < code->nr && code->insns[i].addr == p->lo &&
	    p->flags & VAR_BEGINS && !(p->flags & VAR_LAST)) {
		site.gap = (uint32_t)i;
		site.reg = loaded_before(code, &a, t->width, i);
		if (site.reg != RANGE_NO_REG)
			*failed |= !range_sites_add(out, &site);
	}
	for (; i + 1 < code->nr && code->insns[i].addr < p->hi; i++) {
		if (!loads(&code->insns[i], &a, t->width) ||
		    !range_falls(code, i))
			continue;
		site.gap = (uint32_t)i + 1;
		site.reg = code->insns[i].reg;
		*failed |= !range_sites_add(out, &site);
	}
}
