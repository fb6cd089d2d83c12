/* Memory of what is no integer variable, see struct var_memory. */
#include "symbols/varbuild.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarfdie.h"

/* How large what @die declares is; 0: that is not known. */
static uint64_t bytes_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die type;
	Dwarf_Word bytes;
	if (!dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &attr),
			       &type) ||
	    dwarf_aggregate_size(&type, &bytes) || bytes > INT32_MAX)
		return 0;
	return bytes;
}

static void keep(struct var_build *b, struct var_memory m)
{
	struct variables *v = b->v;
	if (v->nr_others >= VAR_MAX_PLACES)
		v->cut_short = true;
	else if (var_grow(b, (void **)&v->others, v->nr_others, &b->cap_others,
			  sizeof(*v->others)))
		v->others[v->nr_others++] = m;
}

/* A place for each row of the CFI. */
static void place(struct var_build *b, const struct var_scope *sc,
		  const struct var_piece *p, const struct var_range *r,
		  uint64_t bytes)
{
	uint64_t next;
	for (uint64_t lo = r->lo; lo < r->hi; lo = next) {
		struct var_memory m = {.lo = lo,
				       .block = r->hi - r->lo,
				       .bytes = bytes,
				       .function = sc->function};
		bool known =
			var_frame_place(b, sc, p, lo, &next, &m.reg, &m.offset);
		if (next > r->hi)
			next = r->hi;
		m.hi = next;
		if (next <= lo || !var_step(b))
			break;
		if (known)
			keep(b, m);
	}
}

void var_add_memory(struct var_build *b, const struct var_scope *sc,
		    Dwarf_Die *die)
{
	struct var_piece pieces[VAR_MAX_PIECES];
	Dwarf_Attribute attr;
	struct var_locs l = {.attr = &attr};
	/* Lists say where it is for shorter. */
	if ((!b->has_lists && !sc->is_plain) ||
	    sc->function == VAR_NO_FUNCTION ||
	    !die_expression(dwarf_attr(die, DW_AT_location, &attr)) ||
	    dwarf_whatform(&attr) != DW_FORM_exprloc ||
	    var_next_loc(b, &l) <= 0 || !l.nr)
		return;
	size_t nr = var_expr_read(&attr, l.ops, l.nr, &sc->frame_base, pieces);
	for (size_t i = 0; var_is_among(sc, pieces, nr) && i < sc->nr_ranges;
	     i++)
		keep(b, (struct var_memory){.lo = sc->ranges[i].lo,
					    .hi = sc->ranges[i].hi,
					    .block = sc->ranges[i].hi -
						     sc->ranges[i].lo,
					    .reg = pieces->reg,
					    .function = sc->function});
	if (nr != 1 || pieces->kind != VAR_PIECE_ADDRESS || !b->has_lists)
		return;
	uint64_t bytes = bytes_of(die);
	for (size_t i = 0; bytes && i < sc->nr_ranges; i++)
		place(b, sc, pieces, &sc->ranges[i], bytes);
}

static int compare(const void *pa, const void *pb)
{
	const struct var_memory *a = pa, *b = pb;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

const struct var_memory *variables_others(const struct variables *v,
					  uint32_t function, size_t *nr_ret)
{
	size_t a = 0, b = v->nr_others;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (v->others[mid].function < function)
			a = mid + 1;
		else
			b = mid;
	}
	for (b = a; b < v->nr_others && v->others[b].function == function;)
		b++;
	*nr_ret = b - a;
	return *nr_ret ? v->others + a : NULL;
}

/* Is @p, @bytes of memory, also in @m at another time? */
static bool is_shared(const struct var_memory *m, const struct var_place *p,
		      uint64_t bytes)
{
	return p->reg == m->reg && m->lo < p->hi && p->lo < m->hi &&
	       (!m->bytes || p->kind == VAR_REG
			? !m->bytes && p->kind == VAR_REG
		: p->offset <= m->offset
			? (uint64_t)m->offset - (uint64_t)p->offset < bytes
			: (uint64_t)p->offset - (uint64_t)m->offset < m->bytes);
}

/* Mark those that share memory with variable @var; not all, if that takes more
 * than the *left looks. */
static void mark_shared(const struct variables *v, const struct variable *var,
			bool *is_kept, size_t *left)
{
	uint64_t bytes = var_type_bytes(&var->type);
	for (uint32_t i = 0; i < var->nr_places; i++) {
		const struct var_place *p = &v->places[var->first_place + i];
		size_t nr;
		if (!(p->flags & VAR_SCOPE) ||
		    (p->kind != VAR_MEM &&
		     (p->kind != VAR_REG || !(p->flags & VAR_AMONG))))
			continue;
		const struct var_memory *m =
			variables_others(v, p->function, &nr);
		if (nr > *left)
			return;
		if (!nr)
			continue;
		bool *kept = is_kept + (m - v->others);
		*left -= nr;
		for (size_t k = 0; k < nr; k++)
			kept[k] |= is_shared(&m[k], p, bytes);
	}
}

void var_sort_memory(struct variables *v)
{
	if (v->nr_others)
		qsort(v->others, v->nr_others, sizeof(*v->others), compare);
}

bool var_keep_memory(struct var_build *b)
{
	struct variables *v = b->v;
	bool *is_kept _cleanup_free_ =
		calloc(v->nr_others + 1, sizeof(*is_kept));
	size_t nr = 0, left = VAR_MAX_STEPS;
	if (!is_kept)
		return false;
	for (size_t i = 0; v->nr_others && i < v->nr_vars; i++)
		mark_shared(v, &v->vars[i], is_kept, &left);
	for (size_t i = 0; i < v->nr_others; i++)
		if (is_kept[i])
			v->others[nr++] = v->others[i];
	v->nr_others = nr;
	return true;
}
