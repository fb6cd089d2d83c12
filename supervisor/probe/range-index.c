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
	const struct range_index_data *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* Where each function's entries go next; while they are counted, how many the
 * one before it has. */
struct filling {
	struct range_index *ix;
	const struct variables *v;
	uint32_t *next_local, *next_point;
	bool is_counting;
};

static void add_data(const struct filling *f, uint32_t var, uint32_t place)
{
	const struct var_place *p = &f->v->places[place];
	struct range_index_data e = {
		.var = var, .place = place, .lo = (uint64_t)p->offset};
	if (p->kind == VAR_TLS)
		e.lo += RANGE_TLS;
	e.hi = e.lo + extent(&f->v->vars[var].type);
	if (e.hi <= e.lo)
		return;
	if (!f->is_counting)
		f->ix->data[f->ix->nr_data] = e;
	f->ix->nr_data++;
}

/* Those of one function stay in the order of variables, then places. */
static void add_place(const struct filling *f, uint32_t var, uint32_t place)
{
	const struct var_place *p = &f->v->places[place];
	bool point = p->flags & VAR_POINT;
	uint32_t *next = point ? f->next_point : f->next_local;
	if (p->kind == VAR_ADDR || p->kind == VAR_TLS)
		add_data(f, var, place);
	if (p->function >= f->v->nr_functions)
		return;
	if (f->is_counting) {
		next[p->function + 1]++;
		return;
	}
	struct range_index_entry *all = point ? f->ix->points : f->ix->locals;
	all[next[p->function]++] = (struct range_index_entry){
		.var = var, .place = place, .function = p->function};
}

static void add_all(const struct filling *f)
{
	f->ix->nr_data = 0;
	for (uint32_t i = 0; i < f->v->nr_vars; i++) {
		const struct variable *var = &f->v->vars[i];
		for (uint32_t k = 0; k < var->nr_places; k++)
			add_place(f, i, var->first_place + k);
	}
}

/* Room for exactly what was counted. False: no memory. */
static bool make_room(const struct filling *f)
{
	struct range_index *ix = f->ix;
	size_t nr = f->v->nr_functions;
	for (size_t i = 0; i < nr; i++) {
		f->next_local[i + 1] += f->next_local[i];
		f->next_point[i + 1] += f->next_point[i];
	}
	ix->nr_locals = f->next_local[nr];
	ix->nr_points = f->next_point[nr];
	ix->locals = malloc((ix->nr_locals + 1) * sizeof(*ix->locals));
	ix->points = malloc((ix->nr_points + 1) * sizeof(*ix->points));
	ix->data = malloc((ix->nr_data + 1) * sizeof(*ix->data));
	ix->array = malloc((ix->nr_data + 1) * sizeof(*ix->array));
	return ix->locals && ix->points && ix->data && ix->array;
}

static void sort_data(struct range_index *ix, const struct variables *v)
{
	uint64_t most = 0;
	qsort(ix->data, ix->nr_data, sizeof(*ix->data), by_address);
	for (size_t i = 0; i < ix->nr_data; i++) {
		most = ix->data[i].hi > most ? ix->data[i].hi : most;
		ix->data[i].hi_most = most;
		/* Subscripts are of the array as a whole. */
		if (v->vars[ix->data[i].var].type.nr_dims &&
		    !(v->vars[ix->data[i].var].flags & VAR_ELEMENT))
			ix->array[ix->nr_arrays++] = ix->data[i];
	}
}

int range_index_init(struct range_index *ix, const struct variables *v,
		     struct smco_err *err)
{
	_cleanup_free_ uint32_t *local =
		calloc(v->nr_functions + 1, sizeof(*local));
	_cleanup_free_ uint32_t *point =
		calloc(v->nr_functions + 1, sizeof(*point));
	struct filling f = {.ix = ix,
			    .v = v,
			    .next_local = local,
			    .next_point = point,
			    .is_counting = true};
	memset(ix, 0, sizeof(*ix));
	bool fine = local && point;
	if (fine)
		add_all(&f);
	fine = fine && make_room(&f);
	if (!fine) {
		range_index_deinit(ix);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	f.is_counting = false;
	add_all(&f);
	sort_data(ix, v);
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
