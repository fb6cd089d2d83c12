/* Numbers between enumerators, see range-hole.h. */
#include "supervisor/probe/range-hole.h"

#define MOST_NAMES 4096 /* they are gone through for each site */

bool range_are_bits(const struct var_enumerator *e, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (e[i].value < 0 || (e[i].value & (e[i].value - 1)))
			return false;
	return nr > 2 && e[nr - 1].value >= 4;
}

struct range_hole range_hole_of(const struct variables *v,
				const struct var_type *t)
{
	struct range_hole ret = {.nr = 0};
	if (t->class_ != VAR_ENUM || !t->nr_enumerators ||
	    t->nr_enumerators > MOST_NAMES)
		return ret;
	const struct var_enumerator *e = v->enumerators + t->first_enumerator;
	if (range_are_bits(e, t->nr_enumerators))
		return ret;
	for (uint32_t i = 1; i < t->nr_enumerators; i++) {
		int64_t below = e[i - 1].value, above = e[i].value;
		/* What a stub can subtract, and compare with. A file may have
		 * them in any order. */
		if (below < INT32_MIN || above > INT32_MAX || above <= below ||
		    above - below > INT32_MAX || above - below - 1 <= ret.nr)
			continue;
		ret.first = below + 1;
		ret.nr = (uint32_t)(above - below - 1);
	}
	return ret;
}

bool range_has_hole(const struct variables *v, uint32_t owner)
{
	return owner < v->nr_vars && range_hole_of(v, &v->vars[owner].type).nr;
}

struct range_cell range_hole_empty(const struct variables *v,
				   const struct var_type *t)
{
	return (struct range_cell){.smallest = range_hole_of(v, t).nr};
}

bool range_hole_read(const struct range_cell *cell, const struct variables *v,
		     const struct var_type *t, int64_t *ret)
{
	struct range_hole hole = range_hole_of(v, t);
	uint64_t in = __atomic_load_n(&cell->smallest, __ATOMIC_RELAXED);
	*ret = hole.first + (int64_t)in;
	return in < hole.nr;
}
