/* Variables used as subscripts, see range-subscript.h. */
#include "supervisor/probe/range-subscript.h"
#include "supervisor/probe/range-doubt.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-form.h"

/* A subscript further away than this from its variable is something else. */
#define MAX_OFFSET (1 << 20)

struct searcher {
	struct range_subscript_uses *out;
	bool sure; /* the function is not optimised */
	bool failed;
};

/* An array with a known number of elements, that are read one at a time. */
static bool is_array(const struct variable *var, int64_t stride, unsigned bytes)
{
	const struct var_type *t = &var->type;
	return t->nr_dims == 1 && t->dim[0].count > 1 &&
	       t->dim[0].count <= INT32_MAX &&
	       t->dim[0].stride == (uint64_t)stride && t->width == bytes &&
	       !t->bit_size && !(var->flags & VAR_IN_UNION);
}

/* Of two at one place only one can be meant; the same twice is no matter. */
static bool choose(const struct variables *v, uint32_t *best, uint32_t var)
{
	if (*best != RANGE_FORM_NO_VAR &&
	    v->vars[*best].type.dim[0].count != v->vars[var].type.dim[0].count)
		return false;
	if (*best == RANGE_FORM_NO_VAR)
		*best = var;
	return true;
}

static uint32_t array_in_data(const struct range_forms *f, uint64_t addr,
			      int64_t stride, unsigned bytes, uint64_t pc)
{
	const struct range_index *ix = f->ix;
	uint32_t best = RANGE_FORM_NO_VAR;
	size_t a = 0, b = ix->nr_data;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (ix->data[mid].lo < addr)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < ix->nr_data && ix->data[a].lo == addr; a++) {
		const struct range_index_data *e = &ix->data[a];
		const struct var_place *p = &f->v->places[e->place];
		if (is_array(&f->v->vars[e->var], stride, bytes) &&
		    pc >= p->lo && pc < p->hi && !choose(f->v, &best, e->var))
			return RANGE_FORM_NO_VAR;
	}
	return best;
}

static uint32_t array_in_frame(const struct range_forms *f, uint8_t reg,
			       int64_t offset, int64_t stride, unsigned bytes,
			       uint64_t pc)
{
	uint32_t best = RANGE_FORM_NO_VAR;
	for (size_t i = 0; i < f->nr_all; i++) {
		const struct range_index_entry *e = &f->all[i];
		const struct var_place *p = &f->v->places[e->place];
		if (p->kind == VAR_MEM && p->flags & VAR_FRAME &&
		    range_reg_of_dwarf(p->reg) == reg && p->offset == offset &&
		    pc >= p->lo && pc < p->hi &&
		    is_array(&f->v->vars[e->var], stride, bytes) &&
		    !choose(f->v, &best, e->var))
			return RANGE_FORM_NO_VAR;
	}
	return best;
}

/* From instruction @from to @to control goes straight, without a call. */
static bool straight(const struct range_code *code, uint32_t from, uint32_t to)
{
	if (from > to)
		return false;
	for (uint32_t i = from; i < to; i++)
		if (code->insns[i].kind != RK_PLAIN || !range_falls(code, i) ||
		    code->insns[i + 1].bits & RB_LEADER)
			return false;
	return true;
}

/* Can the variable never have a value that is outside? */
static bool always_inside(const struct var_type *t, int64_t offset,
			  uint64_t count)
{
	if (t->is_signed || t->width >= 4)
		return false;
	int64_t most = t->width == 1 ? UINT8_MAX : UINT16_MAX;
	if (t->class_ == VAR_BOOL)
		most = 1;
	return offset >= 0 && (uint64_t)(most + offset) < count;
}

static void add(struct searcher *s, const struct range_subscript_use *use)
{
	struct range_subscript_uses *out = s->out;
	if (out->nr == out->cap) {
		size_t cap = out->cap ? 2 * out->cap : 16;
		struct range_subscript_use *more =
			realloc(out->use, cap * sizeof(*more));
		if (!more) {
			s->failed = true;
			return;
		}
		out->use = more;
		out->cap = cap;
	}
	out->use[out->nr++] = *use;
}

/* An array, and no member of something else. */
static bool is_whole(const struct variable *var)
{
	return var->name[strcspn(var->name, ".[")] == '[';
}

static uint32_t array_at(const struct range_forms *f, uint32_t i,
			 const struct range_form *a, int64_t at, unsigned bytes)
{
	uint64_t pc = f->code->insns[i].addr;
	return a->base == RANGE_FORM_DATA
		       ? array_in_data(f, (uint64_t)at, a->times, bytes, pc)
		       : array_in_frame(f, a->reg, at, a->times, bytes, pc);
}

/*
 * The array whose element instruction @i accesses at @a. What is added to the
 * variable is a part of the subscript if the address before that is a whole
 * array's. Otherwise it is a member's place in its struct.
 */
static uint32_t find_array(const struct range_forms *f, uint32_t i,
			   const struct range_form *a, unsigned bytes,
			   int64_t *offset_ret)
{
	int64_t rest = a->plus % a->times, at;
	rest += rest < 0 ? a->times : 0;
	*offset_ret = (a->plus - rest) / a->times;
	if (*offset_ret >= -MAX_OFFSET && *offset_ret <= MAX_OFFSET &&
	    !__builtin_add_overflow(a->at, rest, &at)) {
		uint32_t array = array_at(f, i, a, at, bytes);
		if (array != RANGE_FORM_NO_VAR && is_whole(&f->v->vars[array]))
			return array;
	}
	*offset_ret = 0;
	return __builtin_add_overflow(a->at, a->plus, &at)
		       ? RANGE_FORM_NO_VAR
		       : array_at(f, i, a, at, bytes);
}

/* Instruction @i reads or writes @bytes at @a. */
static void accessed(struct searcher *s, const struct range_forms *f,
		     uint32_t i, const struct range_form *a, unsigned bytes)
{
	if (!a->known || a->base == RANGE_FORM_NUMBER ||
	    a->var == RANGE_FORM_NO_VAR || a->times <= 0 ||
	    a->from == UINT32_MAX || a->from_times <= 0 ||
	    (a->base == RANGE_FORM_FRAME && !a->placed) ||
	    !straight(f->code, a->from, i))
		return;
	int64_t offset = 0;
	uint32_t array = find_array(f, i, a, bytes, &offset);
	if (array == RANGE_FORM_NO_VAR ||
	    always_inside(&f->v->vars[a->var].type, offset,
			  f->v->vars[array].type.dim[0].count))
		return;
	struct range_subscript_use use = {
		.what = {.var = a->var,
			 .array = array,
			 .offset = offset,
			 .times = a->from_times,
			 .sure = s->sure && is_whole(&f->v->vars[array])},
		.gap = a->from,
		.reg = a->from_reg};
	/* (register - from_plus) / from_times + offset */
	int64_t more;
	if (!__builtin_mul_overflow(offset, a->from_times, &more) &&
	    !__builtin_sub_overflow(a->from_plus, more, &use.what.minus))
		add(s, &use);
}

static void see(void *ctx, const struct range_forms *f, uint32_t i,
		const struct code_insn *in)
{
	for (unsigned k = 0; k < in->z.operand_count_visible; k++) {
		const ZydisDecodedOperand *op = &in->op[k];
		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    op->mem.type != ZYDIS_MEMOP_TYPE_MEM || op->size % 8)
			continue;
		struct range_form a = range_form_address(f, i, in, op);
		accessed(ctx, f, i, &a, op->size / 8);
	}
}

/* Does an instruction compute with an array's address? */
static bool names_array(const struct range_image *img,
			const struct variables *v, const struct range_index *ix,
			const struct range_insn *in)
{
	/* Where a program is at a fixed address a number may be one. */
	bool fixed = img->segment[0].vaddr;
	if (fixed && in->bits & RB_ADDS &&
	    range_index_near_array(ix, v, (uint64_t)in->imm))
		return true;
	if (in->base == RANGE_RIP && !(in->bits & RB_LEA) &&
	    in->index == RANGE_NO_REG)
		return false;
	if (!in->mem_size || (in->base != RANGE_RIP && !fixed))
		return false;
	return range_index_near_array(ix, v, (uint64_t)in->disp);
}

/* At a glance: is there an array at all, and an address that is computed? */
static bool is_worth_it(const struct range_code *code,
			const struct range_image *img,
			const struct variables *v, const struct range_index *ix,
			const struct range_index_entry *all, size_t nr)
{
	bool arrays = false, computed = false;
	for (size_t i = 0; i < nr && !arrays; i++)
		arrays = v->vars[all[i].var].type.nr_dims &&
			 v->places[all[i].place].kind == VAR_MEM;
	for (size_t i = 0; i < code->nr && !(arrays && computed); i++) {
		const struct range_insn *in = &code->insns[i];
		arrays |= names_array(img, v, ix, in);
		computed |= in->mem_size && !(in->bits & RB_LEA) &&
			    (in->index != RANGE_NO_REG ||
			     (in->base < 16 && in->base != RANGE_RSP &&
			      in->base != RANGE_RBP));
	}
	return arrays && computed;
}

static int by_gap(const void *a, const void *b)
{
	const struct range_subscript_use *x = a, *y = b;
	return x->gap < y->gap ? -1 : x->gap > y->gap;
}

int range_subscripts_find(struct range_subscript_uses *ret,
			  const struct range_code *code,
			  const struct range_image *img,
			  const struct variables *v,
			  const struct range_index *ix, uint32_t function,
			  struct smco_err *err)
{
	struct searcher s = {.out = ret};
	struct range_forms forms;
	size_t nr = 0;
	const struct range_index_entry *all =
		range_index_locals(ix, function, &nr);
	*ret = (struct range_subscript_uses){.nr = 0};
	if (!is_worth_it(code, img, v, ix, all, nr))
		return 0;
	s.sure = range_not_optimised(code, v, all, nr);
	if (range_forms_init(&forms, code, img, v, ix, all, nr))
		range_forms_walk(&forms, see, &s);
	range_forms_deinit(&forms);
	if (s.failed) {
		range_subscripts_deinit(ret);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	if (ret->nr)
		qsort(ret->use, ret->nr, sizeof(*ret->use), by_gap);
	return 0;
}

void range_subscripts_deinit(struct range_subscript_uses *u)
{
	free(u->use);
	*u = (struct range_subscript_uses){.nr = 0};
}
