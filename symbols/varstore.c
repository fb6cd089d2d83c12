#include "symbols/varstore.h"

#include <stdlib.h>
#include <string.h>

#include "symbols/debugfile.h"
#include "symbols/pair.h"
#include "symbols/space.h"
#include "symbols/varbuild.h"

/* --- which files --- */

/* Does it name further files with debug information? */
static bool names_others(Elf *elf)
{
	size_t names;
	Elf_Scn *scn = NULL;
	GElf_Shdr head;
	if (!elf || elf_getshdrstrndx(elf, &names))
		return true;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name =
			gelf_getshdr(scn, &head)
				? elf_strptr(elf, names, head.sh_name)
				: NULL;
		if (name && !strcmp(name, ".gnu_debugaltlink"))
			return true;
	}
	return false;
}

size_t variables_files(struct sym_space *s, uint32_t module, int ret[2])
{
	struct module *m = space_module(s, module);
	if (!m || !m->is_elf || m->fd < 0)
		return 0;
	Elf *elf = module_elf(m);
	bool fine = !names_others(elf);
	elf_end(elf);
	ret[0] = m->fd;
	if (!fine || m->has_dwarf)
		return fine;
	if (!debugfile_of(m, s->root_fd) || !m->debug_has_dwarf ||
	    names_others(m->debug_elf))
		return 0;
	ret[1] = m->debug_fd;
	return 2;
}

/* --- putting --- */

/* What is no array. */
struct kept_counts {
	uint64_t nr_seen, nr_damaged;
	uint64_t cut_short;
};

/* The dimensions of all arrays, in the order of the variables; those that are
 * the last one's, too, once. A pointer to them is their number. */
static size_t nr_dims_of(const struct variables *v, size_t i,
			 const struct var_dim **last)
{
	const struct var_type *t = &v->vars[i].type;
	bool is_new = t->nr_dims && t->dim != *last;
	*last = t->nr_dims ? t->dim : *last;
	return is_new ? t->nr_dims : 0;
}

static void put_dims(struct store_out *o, const struct variables *v)
{
	const struct var_dim *last = NULL;
	size_t nr = 0, n;
	for (size_t i = 0; i < v->nr_vars; i++)
		nr += nr_dims_of(v, i, &last);
	store_begin(o, nr, sizeof(*last));
	last = NULL;
	for (size_t i = 0; i < v->nr_vars; i++)
		if ((n = nr_dims_of(v, i, &last)))
			store_more(o, last, n * sizeof(*last));
	store_end(o);
}

static const struct var_dim *dim_number(size_t number)
{
	return (const struct var_dim *)(uintptr_t)number;
}

static void put_vars(struct store_out *o, const struct variables *v)
{
	const struct var_dim *last = NULL;
	size_t first = 0, end = 0, n;
	store_begin(o, v->nr_vars, sizeof(*v->vars));
	for (size_t i = 0; i < v->nr_vars; i++) {
		struct variable var = v->vars[i];
		if ((n = nr_dims_of(v, i, &last))) {
			first = end;
			end += n;
		}
		var.name = store_string(o, var.name);
		var.qualified = store_string(o, var.qualified);
		var.file = store_string(o, var.file);
		var.scope = store_string(o, var.scope);
		var.type.name = store_string(o, var.type.name);
		var.type.dim = dim_number(var.type.nr_dims ? first : 0);
		store_more(o, &var, sizeof(var));
	}
	store_end(o);
}

void variables_put(struct store_out *o, const struct variables *v)
{
	const struct kept_counts counts = {v->nr_seen, v->nr_damaged,
					   v->cut_short};
	store_put(o, &counts, 1, sizeof(counts));
	store_put(o, v->places, v->nr_places, sizeof(*v->places));
	store_put(o, v->ops, v->nr_ops, sizeof(*v->ops));
	store_put(o, v->ranges, v->nr_ranges, sizeof(*v->ranges));
	store_put(o, v->others, v->nr_others, sizeof(*v->others));
	store_put(o, v->rows, v->nr_rows, sizeof(*v->rows));
	put_dims(o, v);
	put_vars(o, v);
	store_begin(o, v->nr_functions, sizeof(*v->functions));
	for (size_t i = 0; i < v->nr_functions; i++) {
		struct var_function f = v->functions[i];
		f.name = store_string(o, f.name);
		f.file = store_string(o, f.file);
		store_more(o, &f, sizeof(f));
	}
	store_end(o);
	store_begin(o, v->nr_enumerators, sizeof(*v->enumerators));
	for (size_t i = 0; i < v->nr_enumerators; i++) {
		struct var_enumerator e = v->enumerators[i];
		e.name = store_string(o, e.name);
		store_more(o, &e, sizeof(e));
	}
	store_end(o);
	store_put_strings(o);
}

/* --- taking --- */

static bool in_array(uint64_t first, uint64_t nr, size_t of)
{
	return first <= of && nr <= of - first;
}

/* Before it is read as a bool. */
static bool is_bool(const bool *b)
{
	return *(const uint8_t *)b <= 1;
}

static const char *string_of(struct store_in *in, const char *s)
{
	const char *ret = store_string_at(in, s);
	in->bad |= !ret;
	return ret;
}

/* What else is looked at while the variables are. */
struct kept_dims {
	const struct var_dim *dim;
	size_t nr;
};

static bool dims_fit(const struct kept_dims *dims, struct var_type *t)
{
	size_t first = (uintptr_t)t->dim;
	t->dim = NULL;
	if (!t->nr_dims)
		return true;
	if (t->nr_dims > VAR_MAX_DIMS || !in_array(first, t->nr_dims, dims->nr))
		return false;
	t->dim = dims->dim + first;
	return true;
}

static bool type_fits(const struct variables *v, const struct var_type *t)
{
	return (t->width == 1 || t->width == 2 || t->width == 4 ||
		t->width == 8) &&
	       t->class_ <= VAR_ENUM && is_bool(&t->is_signed) &&
	       is_bool(&t->is_volatile) && is_bool(&t->is_const) &&
	       t->bit_offset + t->bit_size <= 8u * t->width &&
	       (t->bit_size || !t->bit_offset) &&
	       in_array(t->first_enumerator, t->nr_enumerators,
			v->nr_enumerators);
}

static bool variable_fits(struct store_in *in, const struct variables *v,
			  const struct kept_dims *dims, struct variable *var)
{
	var->name = string_of(in, var->name);
	var->qualified = string_of(in, var->qualified);
	var->file = string_of(in, var->file);
	var->scope = string_of(in, var->scope);
	var->type.name = string_of(in, var->type.name);
	return !in->bad && dims_fit(dims, &var->type) &&
	       type_fits(v, &var->type) &&
	       in_array(var->first_place, var->nr_places, v->nr_places) &&
	       var->reason < VAR_NR_REASONS &&
	       (var->nr_places || !(var->flags & VAR_STATIC));
}

static bool place_fits(const struct variables *v, const struct var_place *p)
{
	bool fits = p->flags & VAR_POINT ? p->lo == p->hi : p->lo < p->hi;
	return fits && p->kind <= VAR_EXPR && p->shift < 64 &&
	       (p->function < v->nr_functions ||
		p->function == VAR_NO_FUNCTION) &&
	       (p->reg < 16 || (p->kind != VAR_REG && p->kind != VAR_MEM &&
				p->kind != VAR_VALUE)) &&
	       (p->kind != VAR_EXPR ||
		(p->nr_ops <= VAR_MAX_OPS + 2 &&
		 in_array(p->first_op, p->nr_ops, v->nr_ops)));
}

static bool memory_fits(const struct variables *v, size_t i)
{
	const struct var_memory *m = &v->others[i];
	return m->lo < m->hi && m->block >= m->hi - m->lo && m->reg < 16 &&
	       m->function < v->nr_functions &&
	       (!i || m->function >= m[-1].function);
}

static bool row_fits(const struct variables *v, size_t i)
{
	const struct var_row *r = &v->rows[i];
	return r->function < v->nr_functions &&
	       (!i || r->function > r[-1].function ||
		(r->function == r[-1].function && r->addr > r[-1].addr));
}

/* One half of all that is looked at, and what is counted there. */
struct half {
	struct store_in in;
	struct variables *v;
	const struct kept_dims *dims;
	unsigned which;
	uint64_t nr_places; /* each is one variable's */
	bool fits;
};

static bool half_fits(struct half *h)
{
	struct variables *v = h->v;
	struct store_in *in = &h->in;
	size_t i, end;
	for (pair_half(v->nr_places, h->which, &i, &end); i < end; i++)
		if (!place_fits(v, &v->places[i]))
			return false;
	for (pair_half(v->nr_ops, h->which, &i, &end); i < end; i++)
		if (v->ops[i].code > VAR_OP_ADDR)
			return false;
	for (pair_half(v->nr_ranges, h->which, &i, &end); i < end; i++)
		if (v->ranges[i].lo >= v->ranges[i].hi)
			return false;
	for (pair_half(v->nr_others, h->which, &i, &end); i < end; i++)
		if (!memory_fits(v, i))
			return false;
	for (pair_half(v->nr_rows, h->which, &i, &end); i < end; i++)
		if (!row_fits(v, i))
			return false;
	for (pair_half(v->nr_vars, h->which, &i, &end); i < end; i++) {
		if (!variable_fits(in, v, h->dims, &v->vars[i]))
			return false;
		h->nr_places += v->vars[i].nr_places;
	}
	for (pair_half(v->nr_functions, h->which, &i, &end); i < end; i++) {
		struct var_function *f = &v->functions[i];
		f->name = string_of(in, f->name);
		f->file = string_of(in, f->file);
		if (in->bad ||
		    !in_array(f->first_range, f->nr_ranges, v->nr_ranges))
			return false;
	}
	for (pair_half(v->nr_enumerators, h->which, &i, &end); i < end; i++)
		v->enumerators[i].name = string_of(in, v->enumerators[i].name);
	return !in->bad;
}

static void *look_at_half(void *arg)
{
	struct half *h = arg;
	h->fits = half_fits(h);
	return NULL;
}

static bool all_fit(const struct store_in *in, struct variables *v,
		    const struct kept_dims *dims)
{
	struct half first = {.in = *in, .v = v, .dims = dims, .which = 0};
	struct half second = {.in = *in, .v = v, .dims = dims, .which = 1};
	pair_run(v->nr_vars + v->nr_places >= pair_from, look_at_half, &second,
		 look_at_half, &first);
	return first.fits && second.fits &&
	       first.nr_places + second.nr_places <= v->nr_places;
}

struct variables *variables_take(struct store_in *in)
{
	struct variables *v = calloc(1, sizeof(*v));
	const struct kept_counts *counts =
		store_take_some(in, sizeof(*counts), 1);
	if (!v || !counts || !variables_borrow(v)) {
		variables_destroy(v);
		return NULL;
	}
	v->nr_seen = counts->nr_seen;
	v->nr_damaged = counts->nr_damaged;
	v->cut_short = counts->cut_short;
	v->places = store_take(in, sizeof(*v->places), &v->nr_places);
	v->ops = store_take(in, sizeof(*v->ops), &v->nr_ops);
	v->ranges = store_take(in, sizeof(*v->ranges), &v->nr_ranges);
	v->others = store_take(in, sizeof(*v->others), &v->nr_others);
	v->rows = store_take(in, sizeof(*v->rows), &v->nr_rows);
	struct kept_dims dims;
	dims.dim = store_take(in, sizeof(*dims.dim), &dims.nr);
	v->vars = store_take(in, sizeof(*v->vars), &v->nr_vars);
	v->functions = store_take(in, sizeof(*v->functions), &v->nr_functions);
	v->enumerators =
		store_take(in, sizeof(*v->enumerators), &v->nr_enumerators);
	store_take_strings(in);
	if (!in->bad && v->nr_vars <= VAR_MAX_VARIABLES &&
	    v->nr_places <= VAR_MAX_PLACES &&
	    v->nr_functions <= VAR_MAX_FUNCTIONS && all_fit(in, v, &dims))
		return v;
	variables_destroy(v);
	return NULL;
}
