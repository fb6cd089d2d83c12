#include "reports/accuracy.h"

#include <math.h>
#include <stdlib.h>

static long double size_of(const struct model_range *r)
{
	return range_number(r, r->largest) - range_number(r, r->smallest);
}

static void judge(struct accuracy_variable *v)
{
	const struct model_range *run = v->run, *ref = v->reference;
	for (uint64_t left = ref->hits; left >= 10; left /= 10)
		v->decade++;
	if (!run)
		return;
	v->accuracy = 1;
	if (size_of(run) < size_of(ref))
		v->accuracy = (double)(size_of(run) / size_of(ref));
	v->is_outside = range_number(run, run->smallest) <
				range_number(ref, ref->smallest) ||
			range_number(run, run->largest) >
				range_number(ref, ref->largest);
}

static void add(struct accuracy_group *g, const struct accuracy_variable *v)
{
	g->nr++;
	g->nr_found += v->run != NULL;
	g->accuracy += v->accuracy; /* a sum until finish */
}

static void finish(struct accuracy_group *g)
{
	g->accuracy = g->nr ? g->accuracy / (double)g->nr : NAN;
}

static int by_updates(const void *va, const void *vb)
{
	const struct accuracy_variable *a = va, *b = vb;
	if (a->reference->hits != b->reference->hits)
		return a->reference->hits < b->reference->hits ? -1 : 1;
	return range_compare_decl(a->reference, b->reference);
}

static void sum_up(struct accuracy *a)
{
	for (size_t i = 0; i < a->nr; i++) {
		const struct accuracy_variable *v = &a->variable[i];
		int64_t watched = range_watched_ppb(v->reference);
		add(&a->decade[v->decade], v);
		for (unsigned k = v->decade; k < ACCURACY_DECADES; k++)
			add(&a->up_to[k], v);
		if (v->decade >= a->nr_decades)
			a->nr_decades = v->decade + 1;
		a->nr_outside += v->is_outside;
		a->nr_partly += watched >= 0 && watched < 990000000;
	}
	for (unsigned k = 0; k < ACCURACY_DECADES; k++) {
		finish(&a->decade[k]);
		finish(&a->up_to[k]);
	}
	if (a->nr)
		qsort(a->variable, a->nr, sizeof(*a->variable), by_updates);
}

int accuracy_measure(const struct model_ranges *run,
		     const struct model_ranges *reference, struct accuracy *ret,
		     struct smco_err *err)
{
	size_t nr_run, nr_ref;
	const struct model_range **runs =
		model_ranges_sorted(run, false, &nr_run);
	const struct model_range **refs =
		model_ranges_sorted(reference, false, &nr_ref);
	*ret = (struct accuracy){0};
	ret->variable = calloc(nr_ref + 1, sizeof(*ret->variable));
	if (!runs || !refs || !ret->variable) {
		free(runs);
		free(refs);
		accuracy_free(ret);
		return smco_fail(err, SMCO_NOMEM, 0,
				 "out of memory for the accuracy of %zu "
				 "variables",
				 reference->nr);
	}
	for (size_t i = 0, k = 0; i < nr_ref; i++) {
		while (k < nr_run && range_compare_decl(runs[k], refs[i]) < 0)
			k++;
		if (!(refs[i]->flags & RANGE_SENSED)) {
			ret->nr_polled++;
			continue;
		}
		struct accuracy_variable *v = &ret->variable[ret->nr++];
		v->reference = refs[i];
		if (k < nr_run && !range_compare_decl(runs[k], refs[i]))
			v->run = runs[k];
		judge(v);
	}
	free(runs);
	free(refs);
	sum_up(ret);
	return SMCO_OK;
}

void accuracy_free(struct accuracy *a)
{
	free(a->variable);
	a->variable = NULL;
	a->nr = 0;
}
