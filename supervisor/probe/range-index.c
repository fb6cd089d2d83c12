/* Variables by function and by address, see range-site.h. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-site.h"

/* An array of unknown length, or of an impossible one, is its first element. */
static uint64_t extent(const struct var_type *t)
{
	uint64_t bytes = t->width;
	if (t->nr_dims) {
		uint64_t n = t->dim[0].count, stride = t->dim[0].stride;
		if (n && stride && n < (UINT64_C(1) << 32) &&
		    stride < (UINT64_C(1) << 24))
			bytes = n * stride;
	}
	return bytes < t->width ? t->width : bytes;
}

static int by_address(const void *a, const void *b)
{
	const struct range_index_entry *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static void add_place(struct range_index *ix, const struct variables *v,
		      uint32_t var, uint32_t place)
{
	const struct var_place *p = &v->places[place];
	struct range_index_entry e = {
		.var = var, .place = place, .function = p->function};
	if (p->kind == VAR_ADDR || p->kind == VAR_TLS) {
		e.lo = (uint64_t)p->offset;
		if (p->kind == VAR_TLS)
			e.lo += RANGE_TLS;
		e.hi = e.lo + extent(&v->vars[var].type);
		if (e.hi > e.lo)
			ix->data[ix->nr_data++] = e;
	}
	if (p->function >= v->nr_functions)
		return;
	if (p->flags & VAR_POINT)
		ix->points[ix->nr_points++] = e;
	else
		ix->locals[ix->nr_locals++] = e;
}

/* By function; those of one stay as they were added: by variable, then place.
 */
static bool sort_locals(struct range_index_entry **array, size_t nr,
			const struct variables *v)
{
	_cleanup_free_ uint32_t *next =
		calloc(v->nr_functions + 1, sizeof(*next));
	struct range_index_entry *sorted = malloc((nr + 1) * sizeof(*sorted));
	if (!next || !sorted) {
		free(sorted);
		return false;
	}
	for (size_t i = 0; i < nr; i++)
		next[(*array)[i].function + 1]++;
	for (size_t i = 0; i < v->nr_functions; i++)
		next[i + 1] += next[i];
	for (size_t i = 0; i < nr; i++)
		sorted[next[(*array)[i].function]++] = (*array)[i];
	free(*array);
	*array = sorted;
	return true;
}

int range_index_init(struct range_index *ix, const struct variables *v,
		     struct smco_err *err)
{
	memset(ix, 0, sizeof(*ix));
	ix->locals = calloc(v->nr_places + 1, sizeof(*ix->locals));
	ix->points = calloc(v->nr_places + 1, sizeof(*ix->points));
	ix->data = calloc(v->nr_places + 1, sizeof(*ix->data));
	ix->array = calloc(v->nr_places + 1, sizeof(*ix->array));
	if (!ix->locals || !ix->points || !ix->data || !ix->array) {
		range_index_deinit(ix);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	for (uint32_t i = 0; i < v->nr_vars; i++) {
		const struct variable *var = &v->vars[i];
		for (uint32_t k = 0; k < var->nr_places; k++)
			add_place(ix, v, i, var->first_place + k);
	}
	if (!sort_locals(&ix->locals, ix->nr_locals, v) ||
	    !sort_locals(&ix->points, ix->nr_points, v)) {
		range_index_deinit(ix);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	qsort(ix->data, ix->nr_data, sizeof(*ix->data), by_address);
	uint64_t most = 0;
	for (size_t i = 0; i < ix->nr_data; i++) {
		most = ix->data[i].hi > most ? ix->data[i].hi : most;
		ix->data[i].hi_most = most;
		/* Subscripts are of the array as a whole. */
		if (v->vars[ix->data[i].var].type.nr_dims &&
		    !(v->vars[ix->data[i].var].flags & VAR_ELEMENT))
			ix->array[ix->nr_arrays++] = ix->data[i];
	}
	return 0;
}

static const struct range_index_entry *
of_function(const struct range_index_entry *array, size_t nr, uint32_t f,
	    size_t *nr_ret)
{
	size_t a = 0, b = nr;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (array[mid].function < f)
			a = mid + 1;
		else
			b = mid;
	}
	for (b = a; b < nr && array[b].function == f;)
		b++;
	*nr_ret = b - a;
	return array + a;
}

const struct range_index_entry *range_index_locals(const struct range_index *ix,
						   uint32_t f, size_t *nr_ret)
{
	return of_function(ix->locals, ix->nr_locals, f, nr_ret);
}

const struct range_index_entry *range_index_points(const struct range_index *ix,
						   uint32_t f, size_t *nr_ret)
{
	return of_function(ix->points, ix->nr_points, f, nr_ret);
}

/* A struct begins so far before a member at the most. */
#define STRUCT_REACH 4096

bool range_index_near_array(const struct range_index *ix,
			    const struct variables *v, uint64_t addr)
{
	size_t a = 0, b = ix->nr_arrays;
	while (a < b) { /* the first that begins behind @addr */
		size_t mid = a + (b - a) / 2;
		if (ix->array[mid].lo <= addr)
			a = mid + 1;
		else
			b = mid;
	}
	if (a && ix->array[a - 1].hi_most > addr)
		return true;
	for (; a < ix->nr_arrays && ix->array[a].lo - addr < STRUCT_REACH; a++)
		if (strchr(v->vars[ix->array[a].var].name, '.'))
			return true;
	return false;
}

void range_index_deinit(struct range_index *ix)
{
	free(ix->locals);
	free(ix->points);
	free(ix->data);
	free(ix->array);
	memset(ix, 0, sizeof(*ix));
}
