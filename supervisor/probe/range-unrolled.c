/* Counters of unrolled loops, which are told by what else is stepped there, see
 * range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* "((x + by) >> shift) + plus", where x is what the first nr operations make.
 */
struct scaled {
	const struct var_op *x;
	uint32_t nr;
	int64_t by, shift, plus;
};

static bool is_scaled(const struct variables *v, const struct var_place *p,
		      struct scaled *ret)
{
	uint32_t n = p->nr_ops;
	if (p->kind != VAR_EXPR || n < 4 || p->first_op > v->nr_ops ||
	    n > v->nr_ops - p->first_op)
		return false;
	const struct var_op *op = v->ops + p->first_op;
	*ret = (struct scaled){
		.x = op,
		.plus = op[n - 1].arg,
		.shift = op[n - 3].arg,
	};
	if (op[n - 1].code != VAR_OP_PLUS_CONST ||
	    (op[n - 2].code != VAR_OP_SHR && op[n - 2].code != VAR_OP_SAR) ||
	    op[n - 3].code != VAR_OP_CONST)
		return false;
	n -= 3;
	if (n > 1 && op[n - 1].code == VAR_OP_PLUS_CONST)
		ret->by = op[--n].arg;
	ret->nr = n;
	return ret->shift > 0 && ret->shift < 16 && ret->plus > 0;
}

static bool is_same(const struct scaled *a, const struct scaled *b)
{
	bool same =
		a->nr == b->nr && a->shift == b->shift && a->plus == b->plus;
	for (uint32_t i = 0; same && i < a->nr; i++)
		same = a->x[i].code == b->x[i].code &&
		       a->x[i].arg == b->x[i].arg;
	return same;
}

static bool has_register(const struct scaled *s, uint32_t wrote)
{
	for (uint32_t i = 0; i < s->nr; i++)
		if (s->x[i].code == VAR_OP_REG &&
		    wrote == 1u << range_reg_of_dwarf((unsigned)s->x[i].arg))
			return true;
	return false;
}

/* Is @p nothing but the instruction that steps a register of @s by what is said
 * to be added to it? */
static bool is_step(const struct range_code *code, const struct var_place *p,
		    const struct scaled *s)
{
	size_t i = range_code_find(code, p->lo);
	if (i == code->nr || s->by <= 0 || s->by % (INT64_C(1) << s->shift))
		return false;
	const struct range_insn *in = &code->insns[i];
	return in->addr == p->lo && in->addr + in->len == p->hi &&
	       in->bits & RB_ADDS && !in->mem_size && in->imm == s->by &&
	       has_register(s, in->wrote);
}

/* Does the variable begin as @k somewhere, for longer than no instruction? */
static bool begins_as(const struct variables *v,
		      const struct range_index_entry *own, size_t nr, int64_t k)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_CONST && q->offset == k &&
		    !(q->flags & VAR_POINT))
			return true;
	}
	return false;
}

bool range_doubt_unrolled(const struct range_code *code,
			  const struct variables *v,
			  const struct range_index_entry *own, size_t nr,
			  const struct var_place *p)
{
	struct scaled said, other;
	if (!is_scaled(v, p, &said) || !begins_as(v, own, nr, said.plus - 1) ||
	    begins_as(v, own, nr, said.plus))
		return false;
	if (is_step(code, p, &said))
		return true;
	for (size_t i = 0; i < nr && !said.by; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (is_scaled(v, q, &other) && is_same(&said, &other) &&
		    is_step(code, q, &other))
			return true;
	}
	return false;
}
