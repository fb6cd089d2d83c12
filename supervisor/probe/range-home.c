/* Which variable is in a register or at an address, see range-form.h. */
#include <stdlib.h>

#include "supervisor/probe/range-form.h"

/* One place, by register (and offset), then lo. */
struct home {
	uint8_t reg;
	int64_t offset; /* 0 in registers */
	uint64_t lo, hi;
	uint64_t hi_most; /* of this and all before in the same register */
	uint32_t var;
	int64_t add;
};

struct range_homes {
	const struct variables *v;
	const struct range_index *ix;
	struct home *reg, *frame;
	size_t nr_reg, nr_frame;
};

static int by_place(const void *a, const void *b)
{
	const struct home *x = a, *y = b;
	if (x->reg != y->reg)
		return x->reg < y->reg ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->var < y->var ? -1 : x->var > y->var;
}

static void sort(struct home *h, size_t nr)
{
	if (nr)
		qsort(h, nr, sizeof(*h), by_place);
	for (size_t i = 0; i < nr; i++) {
		bool same = i && h[i - 1].reg == h[i].reg &&
			    h[i - 1].offset == h[i].offset;
		h[i].hi_most = h[i].hi;
		if (same && h[i - 1].hi_most > h[i].hi)
			h[i].hi_most = h[i - 1].hi_most;
	}
}

struct range_homes *range_homes_create(const struct variables *v,
				       const struct range_index *ix,
				       const struct range_index_entry *all,
				       size_t nr)
{
	struct range_homes *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->v = v;
	h->ix = ix;
	h->reg = calloc(nr + 1, sizeof(*h->reg));
	h->frame = calloc(nr + 1, sizeof(*h->frame));
	if (!h->reg || !h->frame) {
		range_homes_destroy(h);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *p = &v->places[all[i].place];
		const struct var_type *t = &v->vars[all[i].var].type;
		struct home x = {.reg = range_reg_of_dwarf(p->reg),
				 .lo = p->lo,
				 .hi = p->hi,
				 .var = all[i].var};
		if (t->nr_dims || t->bit_size || x.reg >= 16)
			continue;
		if (p->kind == VAR_VALUE)
			x.add = p->offset;
		if ((p->kind == VAR_REG && !p->shift) || p->kind == VAR_VALUE)
			h->reg[h->nr_reg++] = x;
		x.offset = p->offset;
		if (p->kind == VAR_MEM && p->flags & VAR_FRAME)
			h->frame[h->nr_frame++] = x;
	}
	sort(h->reg, h->nr_reg);
	sort(h->frame, h->nr_frame);
	return h;
}

void range_homes_destroy(struct range_homes *h)
{
	if (!h)
		return;
	free(h->reg);
	free(h->frame);
	free(h);
}

/* The shortest that holds at @pc: the innermost block's. */
static const struct home *find(const struct range_homes *h,
			       const struct home *home, size_t nr, uint8_t reg,
			       int64_t offset, unsigned bytes, uint64_t pc)
{
	const struct home *best = NULL;
	const struct home key = {
		.reg = reg, .offset = offset, .lo = pc, .var = UINT32_MAX};
	size_t a = 0, b = nr;
	while (a < b) { /* the first that begins behind @pc */
		size_t mid = a + (b - a) / 2;
		if (by_place(&home[mid], &key) <= 0)
			a = mid + 1;
		else
			b = mid;
	}
	while (a-- > 0 && home[a].reg == reg && home[a].offset == offset &&
	       home[a].hi_most > pc)
		if (home[a].hi > pc &&
		    (!bytes || h->v->vars[home[a].var].type.width == bytes) &&
		    (!best || home[a].hi - home[a].lo < best->hi - best->lo))
			best = &home[a];
	return best;
}

uint32_t range_home_reg(const struct range_homes *h, uint8_t reg, uint64_t pc,
			int64_t *add_ret)
{
	const struct home *x = find(h, h->reg, h->nr_reg, reg, 0, 0, pc);
	if (!x)
		return RANGE_FORM_NO_VAR;
	*add_ret = x->add;
	return x->var;
}

uint32_t range_home_frame(const struct range_homes *h, uint8_t reg,
			  int64_t offset, unsigned bytes, uint64_t pc)
{
	const struct home *x =
		find(h, h->frame, h->nr_frame, reg, offset, bytes, pc);
	return x ? x->var : RANGE_FORM_NO_VAR;
}

uint32_t range_home_data(const struct range_homes *h, uint64_t addr,
			 unsigned bytes, uint64_t pc)
{
	size_t a = 0, b = h->ix->nr_data;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (h->ix->data[mid].lo < addr)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < h->ix->nr_data && h->ix->data[a].lo == addr; a++) {
		const struct range_index_data *e = &h->ix->data[a];
		const struct variable *var = &h->v->vars[e->var];
		const struct var_place *p = &h->v->places[e->place];
		if (!var->type.nr_dims && !var->type.bit_size &&
		    var->type.width == bytes && pc >= p->lo && pc < p->hi)
			return e->var;
	}
	return RANGE_FORM_NO_VAR;
}
