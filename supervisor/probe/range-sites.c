/* The sites of a function in order, see range-site.h. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-site.h"

uint8_t range_reg_of_dwarf(unsigned reg)
{
	static const uint8_t order[16] = {0, 2, 1,  3,	6,  7,	5,  4,
					  8, 9, 10, 11, 12, 13, 14, 15};
	return reg < 16 ? order[reg] : RANGE_NO_REG;
}

bool range_sites_add(struct range_sites *s, const struct range_site *site)
{
	if (s->nr == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 64;
		struct range_site *more = realloc(s->site, cap * sizeof(*more));
		if (!more)
			return false;
		s->site = more;
		s->cap = cap;
	}
	s->site[s->nr++] = *site;
	return true;
}

static int by_gap(const void *a, const void *b)
{
	const struct range_site *x = a, *y = b;
	if (x->gap != y->gap)
		return x->gap < y->gap ? -1 : 1;
	if (x->var != y->var)
		return x->var < y->var ? -1 : 1;
	if (x->fall != y->fall)
		return x->fall ? 1 : -1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Of values that follow each other at one address each is one, and of elements
 * that are in several registers, or stored together. */
static bool is_another(const struct variables *v, const struct range_site *a,
		       const struct range_site *b)
{
	if (v->vars[a->var].type.nr_dims && a->source == b->source &&
	    (a->source == RS_FRAME || a->source == RS_DATA ||
	     a->source == RS_TLS) &&
	    a->fall && b->fall)
		return a->offset != b->offset;
	uint32_t flags = v->places[a->place].flags | v->places[b->place].flags;
	return flags & (VAR_POINT | VAR_ONE) &&
	       (a->source != b->source || a->reg != b->reg ||
		a->offset != b->offset || a->fall != b->fall ||
		a->source == RS_EXPR);
}

void range_sites_sort(struct range_sites *s, const struct variables *v)
{
	size_t nr = 0;
	if (!s->nr)
		return;
	qsort(s->site, s->nr, sizeof(*s->site), by_gap);
	for (size_t i = 0; i < s->nr; i++) {
		struct range_site *last = nr ? &s->site[nr - 1] : NULL;
		/* Elements of one array may be written by one instruction. */
		if (!last || last->gap != s->site[i].gap ||
		    last->var != s->site[i].var ||
		    is_another(v, last, &s->site[i]))
			s->site[nr++] = s->site[i];
	}
	s->nr = nr;
}

void range_sites_deinit(struct range_sites *s)
{
	free(s->site);
	memset(s, 0, sizeof(*s));
}

bool range_sites_goes_on(const struct range_sites *sites,
			 const struct range_code *code, size_t i,
			 const struct range_site *s, uint32_t regs)
{
	if (!sites->nr)
		return false;
	const struct range_site *last = &sites->site[sites->nr - 1];
	if (last->var != s->var || last->place != s->place ||
	    last->source != s->source || last->gap > i)
		return false;
	for (size_t k = last->gap; k < i; k++)
		if (code->insns[k].kind != RK_PLAIN ||
		    code->insns[k].wrote & regs || !range_falls(code, k))
			return false;
	return true;
}
