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

/* In place of narrower ones, if there are. */
static void offer(struct range_hole ret[RANGE_HOLES], unsigned *nr,
		  struct range_hole hole)
{
	unsigned at = *nr;
	while (at && hole.nr > ret[at - 1].nr) {
		if (at < RANGE_HOLES)
			ret[at] = ret[at - 1];
		at--;
	}
	if (at == RANGE_HOLES)
		return;
	ret[at] = hole;
	if (*nr < RANGE_HOLES)
		++*nr;
}

unsigned range_holes(const struct variables *v, const struct var_type *t,
		     struct range_hole ret[RANGE_HOLES])
{
	const struct var_enumerator *e = v->enumerators + t->first_enumerator;
	unsigned nr = 0;
	if (t->class_ != VAR_ENUM || t->nr_enumerators < 2 ||
	    t->nr_enumerators > MOST_NAMES ||
	    range_are_bits(e, t->nr_enumerators))
		return 0;
	for (uint32_t i = 1; i < t->nr_enumerators; i++) {
		int64_t below = e[i - 1].value, above = e[i].value;
		/* What a stub can subtract, and compare with. */
		if (below < INT32_MIN || above > INT32_MAX ||
		    above - below < 2 || above - below > INT32_MAX)
			continue;
		offer(ret, &nr,
		      (struct range_hole){.first = below + 1,
					  .nr = (uint32_t)(above - below - 1)});
	}
	return nr;
}

bool range_has_holes(const struct variables *v, uint32_t owner)
{
	struct range_hole hole[RANGE_HOLES];
	return owner < v->nr_vars && range_holes(v, &v->vars[owner].type, hole);
}

/* Of a hole that is not there nothing is below 0. */
struct range_cell range_hole_empty(const struct variables *v,
				   const struct var_type *t)
{
	struct range_hole hole[RANGE_HOLES] = {{0}};
	range_holes(v, t, hole);
	return (struct range_cell){.smallest = hole[0].nr,
				   .largest = hole[1].nr};
}

unsigned range_hole_read(const struct range_cell *cell,
			 const struct variables *v, const struct var_type *t,
			 int64_t ret[RANGE_HOLES])
{
	struct range_hole hole[RANGE_HOLES];
	const uint64_t *word[RANGE_HOLES] = {&cell->smallest, &cell->largest};
	unsigned nr = range_holes(v, t, hole), nr_seen = 0;
	for (unsigned i = 0; i < nr; i++) {
		uint64_t in = __atomic_load_n(word[i], __ATOMIC_RELAXED);
		if (in < hole[i].nr)
			ret[nr_seen++] = hole[i].first + (int64_t)in;
	}
	return nr_seen;
}
