/* Types of variables, and what integers are in them. */
#include "symbols/varbuild.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/dwarfdie.h"

#define MAX_CHAIN   32 /* typedefs of typedefs */
#define MAX_NESTING 8  /* structs in structs */
#define MAX_PATH    400
#define MAX_VISITS  8192

/* Flattening of one declaration. */
struct flat {
	struct var_build *b;
	const struct var_scope *sc;
	struct variable model; /* what all its members have in common */
	char path[MAX_PATH];   /* of the member */
	struct var_dim dim[VAR_MAX_DIMS];
	uint8_t nr_dims;
	uint8_t flags;
	unsigned nr_left;     /* members that may still be added */
	unsigned visits_left; /* and looked at */
	bool wanted;
};

bool var_type_of(struct var_build *b, Dwarf_Die *die, struct var_qualified *ret)
{
	Dwarf_Attribute mem;
	*ret = (struct var_qualified){0};
	if (!dwarf_attr_integrate(die, DW_AT_type, &mem) ||
	    !dwarf_formref_die(&mem, &ret->die))
		return false;
	for (unsigned i = 0; i < MAX_CHAIN; i++) {
		switch (var_tag(b, &ret->die)) {
		case DW_TAG_typedef:
			if (!ret->alias)
				ret->alias = dwarf_diename(&ret->die);
			break;
		case DW_TAG_const_type:
			ret->is_const = true;
			break;
		case DW_TAG_volatile_type:
			ret->is_volatile = true;
			break;
		case DW_TAG_atomic_type:
		case DW_TAG_restrict_type:
		case DW_TAG_packed_type:
		case DW_TAG_shared_type:
			break;
		default:
			return true;
		}
		if (!dwarf_attr(&ret->die, DW_AT_type, &mem) ||
		    !dwarf_formref_die(&mem, &ret->die))
			return false;
	}
	return false;
}

static const char *type_name(struct flat *f, const struct var_qualified *q)
{
	Dwarf_Die die = q->die;
	const char *name = q->alias ? q->alias : dwarf_diename(&die);
	char full[MAX_PATH];
	if (q->alias || dwarf_tag(&die) != DW_TAG_enumeration_type)
		return var_string(f->b, name ? name : "");
	snprintf(full, sizeof(full), "%s%s", f->sc->scoped ? "" : "enum ",
		 name ? name : "{...}");
	return var_string(f->b, full);
}

/*
 * The bits of a bit-field: which bytes to read, and where in them it is.
 * @byte is where the member's location is, the struct's with DWARF 5.
 */
static bool bit_field(Dwarf_Die *member, struct var_type *t, uint64_t *byte)
{
	uint64_t bits, at, storage;
	if (!die_number(member, DW_AT_bit_size, &bits))
		return true;
	if (!bits || bits > 8u * t->width)
		return false;
	if (die_number(member, DW_AT_data_bit_offset, &at)) {
		if (at > INT32_MAX)
			return false;
	} else if (die_number(member, DW_AT_bit_offset, &at)) {
		/* DWARF 3: from the most significant bit of the storage. */
		if (!die_number(member, DW_AT_byte_size, &storage))
			storage = t->width;
		if (storage > 8 || at + bits > 8 * storage)
			return false;
		at = 8 * storage - at - bits;
	} else {
		at = 0;
	}
	/* The fewest bytes that it is in, so as not to read past the struct. */
	uint64_t first = at / 8 * 8;
	unsigned width = 1;
	while (8 * width < at - first + bits)
		width *= 2;
	if (width > 8)
		return false;
	t->width = (uint8_t)width;
	*byte += first / 8;
	t->bit_offset = (uint8_t)(at - first);
	t->bit_size = (uint8_t)bits;
	return true;
}

static const char *qualified_name(struct flat *f)
{
	const char *scope = f->model.scope;
	return *scope ? var_qualify(f->b, scope, f->model.name, MAX_PATH * 2)
		      : f->model.name;
}

/* One integer: keep it if it is wanted. */
static void add_integer(struct flat *f, const struct var_qualified *q,
			Dwarf_Die *member, uint64_t byte)
{
	struct var_build *b = f->b;
	Dwarf_Die die = q->die;
	struct var_type t = {
		.is_const = q->is_const,
		.is_volatile = q->is_volatile,
		.nr_dims = f->nr_dims,
	};
	bool fine = dwarf_tag(&die) == DW_TAG_enumeration_type
			    ? var_enum_type(b, &die, &t)
			    : var_base_type(&die, &t);
	if (!fine || (member && !bit_field(member, &t, &byte)))
		return;
	t.dim = var_dims(b, f->dim, f->nr_dims);
	if (t.nr_dims && !t.dim)
		return;
	t.name = type_name(f, q);
	b->v->nr_seen++;
	f->model.type = t;
	f->model.name = var_string(b, f->path);
	f->model.qualified = qualified_name(f);
	f->model.flags = f->flags;
	struct var_member m = {.var = VAR_NONE, .byte = byte};
	if (f->flags & VAR_IN_UNION)
		m.width = t.width;
	struct variables *v = b->v;
	if (!b->want || b->want(b->want_ctx, &f->model)) {
		if (v->nr_vars >= VAR_MAX_VARIABLES) {
			v->cut_short = true;
			return;
		}
		if (!var_grow(b, (void **)&v->vars, v->nr_vars, &b->cap_vars,
			      sizeof(*v->vars)))
			return;
		m.var = (uint32_t)v->nr_vars;
		v->vars[v->nr_vars++] = f->model;
		f->wanted = true;
	}
	if (var_grow(b, (void **)&b->members, b->nr_members, &b->cap_members,
		     sizeof(*b->members)))
		b->members[b->nr_members++] = m;
	if (!--f->nr_left)
		v->cut_short = true;
}

static void flatten(struct flat *f, const struct var_qualified *q,
		    Dwarf_Die *member, uint64_t byte, unsigned depth);

/* Where in its struct a member or base class is; false if not at a constant. */
static bool member_offset(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute mem;
	Dwarf_Op *ops;
	size_t nr;
	*ret = 0;
	if (!dwarf_attr(die, DW_AT_data_member_location, &mem))
		return true; /* a union's, or told by its bits */
	Dwarf_Word value;
	if (!dwarf_formudata(&mem, &value)) {
		*ret = value;
		return true;
	}
	if (dwarf_getlocation(&mem, &ops, &nr) || nr != 1 ||
	    (ops[0].atom != DW_OP_plus_uconst && ops[0].atom != DW_OP_constu))
		return false;
	*ret = ops[0].number;
	return true;
}

static bool path_add(struct flat *f, const char *dot, const char *name)
{
	size_t len = strlen(f->path), more = strlen(dot), n = strlen(name);
	if (more + n >= sizeof(f->path) - len) {
		f->b->v->cut_short = true;
		return false;
	}
	memcpy(f->path + len, dot, more);
	memcpy(f->path + len + more, name, n + 1);
	return true;
}

static void flatten_members(struct flat *f, Dwarf_Die *type, uint64_t byte,
			    unsigned depth)
{
	Dwarf_Die die;
	uint8_t flags = f->flags;
	if (dwarf_child(type, &die))
		return;
	if (dwarf_tag(type) == DW_TAG_union_type)
		f->flags |= VAR_IN_UNION;
	do {
		int tag = dwarf_tag(&die);
		struct var_qualified q;
		uint64_t offset;
		size_t len = strlen(f->path);
		const char *name = dwarf_diename(&die);
		bool base = tag == DW_TAG_inheritance;
		if (!f->nr_left || !var_step(f->b) || !f->visits_left)
			break;
		f->visits_left--;
		if ((tag != DW_TAG_member && !base) ||
		    dwarf_hasattr(&die, DW_AT_declaration) ||
		    dwarf_hasattr(&die, DW_AT_external) ||
		    !member_offset(&die, &offset) ||
		    !var_type_of(f->b, &die, &q))
			continue;
		if (base || !name || path_add(f, ".", name))
			flatten(f, &q, &die, byte + offset, depth + 1);
		f->path[len] = 0;
	} while (die_next(&die));
	f->flags = flags;
}

/* How many elements an array has, all dimensions; 0 if not known. *first_ret
 * is how many its first dimension has. */
static uint64_t element_count(Dwarf_Die *array, uint64_t *first_ret)
{
	Dwarf_Die die;
	uint64_t total = 1;
	bool any = false;
	*first_ret = 0;
	if (dwarf_child(array, &die))
		return 0;
	do {
		uint64_t count;
		if (dwarf_tag(&die) != DW_TAG_subrange_type)
			continue;
		if (!die_number(&die, DW_AT_count, &count)) {
			if (!die_number(&die, DW_AT_upper_bound, &count))
				return 0;
			count++;
		}
		if (!any)
			*first_ret = count;
		any = true;
		if (__builtin_mul_overflow(total, count, &total))
			return 0;
	} while (die_next(&die));
	return any ? total : 0;
}

/* One dimension of an array, as it was found. */
struct array {
	struct var_qualified q; /* of its elements */
	uint64_t byte;
	struct var_dim dim;
	uint64_t first; /* elements of its first dimension, as C has it */
	unsigned depth;
};

/* @nr elements of the first dimension from @lo on, as a variable. */
static void add_class(struct flat *f, const struct array *a, uint64_t lo,
		      uint64_t nr)
{
	uint64_t rest = a->dim.count / a->first;
	uint8_t flags = f->flags;
	size_t len = strlen(f->path);
	char name[64];
	if (nr > 1)
		snprintf(name, sizeof(name), "[%" PRIu64 "..%" PRIu64 "]%s", lo,
			 lo + nr - 1, rest > 1 ? "[]" : "");
	else
		snprintf(name, sizeof(name), "[%" PRIu64 "]%s", lo,
			 rest > 1 ? "[]" : "");
	if (!path_add(f, "", name))
		return;
	f->flags |= VAR_ELEMENT;
	if (nr * rest > 1)
		f->dim[f->nr_dims++] = (struct var_dim){
			.count = nr * rest, .stride = a->dim.stride};
	flatten(f, &a->q, NULL, a->byte + lo * rest * a->dim.stride,
		a->depth + 1);
	if (nr * rest > 1)
		f->dim[--f->nr_dims] = (struct var_dim){0};
	f->flags = flags;
	f->path[len] = 0;
}

static bool is_split(struct flat *f)
{
	if (!f->b->split || f->nr_dims || f->flags & VAR_IN_UNION)
		return false;
	f->model.name = var_string(f->b, f->path);
	struct variable whole = f->model;
	whole.qualified = qualified_name(f);
	whole.flags = f->flags;
	return f->b->split(f->b->want_ctx, &whole);
}

static void add_classes(struct flat *f, const struct array *a)
{
	uint64_t n = a->first, bytes;
	if (n < 2 || a->dim.count % n ||
	    __builtin_mul_overflow(a->dim.count, a->dim.stride, &bytes))
		return;
	if (n <= VAR_MOST_CLASSES) {
		for (uint64_t i = 0; i < n; i++)
			add_class(f, a, i, 1);
		return;
	}
	add_class(f, a, 0, 1);
	add_class(f, a, 1, n - 2);
	add_class(f, a, n - 1, 1);
}

static void flatten_array(struct flat *f, Dwarf_Die *array, uint64_t byte,
			  unsigned depth)
{
	struct array a = {.byte = byte, .depth = depth};
	size_t len = strlen(f->path);
	Dwarf_Word stride;
	if (!var_type_of(f->b, array, &a.q))
		return;
	if (f->nr_dims >= VAR_MAX_DIMS) {
		f->b->v->cut_short = true;
		return;
	}
	if (dwarf_aggregate_size(&a.q.die, &stride) || !stride ||
	    !path_add(f, "", "[]"))
		return;
	a.dim.stride = stride;
	a.dim.count = element_count(array, &a.first);
	f->dim[f->nr_dims++] = a.dim;
	flatten(f, &a.q, NULL, byte, depth + 1);
	f->dim[--f->nr_dims] = (struct var_dim){0};
	f->path[len] = 0;
	if (is_split(f))
		add_classes(f, &a);
}

static void flatten(struct flat *f, const struct var_qualified *q,
		    Dwarf_Die *member, uint64_t byte, unsigned depth)
{
	Dwarf_Die die = q->die;
	struct var_build *b = f->b;
	size_t nr = b->nr_members;
	if (depth > MAX_NESTING) {
		f->b->v->cut_short = true;
		return;
	}
	switch (dwarf_tag(&die)) {
	case DW_TAG_base_type:
	case DW_TAG_enumeration_type:
		add_integer(f, q, member, byte);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		flatten_members(f, &die, byte, depth);
		break;
	case DW_TAG_array_type:
		flatten_array(f, &die, byte, depth);
		break;
	default:
		break;
	}
	Dwarf_Word bytes;
	if (b->nr_members == nr && f->flags & VAR_IN_UNION &&
	    !dwarf_aggregate_size(&die, &bytes) && bytes &&
	    var_grow(b, (void **)&b->members, b->nr_members, &b->cap_members,
		     sizeof(*b->members)))
		b->members[b->nr_members++] = (struct var_member){
			.var = VAR_NONE, .byte = byte, .width = bytes};
}

/* "ns::limits" of the linkage name of ns::limits::max; NULL if it is none. */
static const char *linkage_scope(struct var_build *b, Dwarf_Die *die,
				 const char *name)
{
	const char *linkage = die_linkage_name(die);
	char *full _cleanup_free_ = linkage ? sym_demangle(linkage) : NULL;
	size_t len = full ? strlen(full) : 0, tail = strlen(name) + 2;
	if (len <= tail || memcmp(full + len - tail, "::", 2) ||
	    strcmp(full + len - tail + 2, name))
		return NULL;
	full[len - tail] = 0;
	return var_string(b, full);
}

static void fill_model(struct flat *f, Dwarf_Die *die, const char *name)
{
	struct variable *model = &f->model;
	int line;
	const char *scope = f->sc->name;
	if (f->sc->scoped && !f->sc->in_function) {
		Dwarf_Die origin = die_origin(die);
		const char *linkage = linkage_scope(f->b, die, name);
		uint32_t index;
		if (linkage)
			scope = linkage;
		else if (diemap_get(&f->b->name_of, origin.addr, &index))
			scope = f->b->names[index];
	}
	*model = (struct variable){
		.file = var_decl_file(f->b, die),
		.scope = scope,
		.reason = VAR_OPTIMISED_OUT,
	};
	if (!dwarf_decl_line(die, &line) && line > 0)
		model->line = (uint32_t)line;
	if (dwarf_tag(die) == DW_TAG_formal_parameter)
		f->flags |= VAR_PARAMETER;
	if (!f->sc->in_function)
		f->flags |= VAR_GLOBAL;
	if (dwarf_hasattr_integrate(die, DW_AT_artificial))
		f->flags |= VAR_ARTIFICIAL;
}

uint32_t var_group_of(struct var_build *b, const struct var_scope *sc,
		      Dwarf_Die *die)
{
	Dwarf_Die origin = die_origin(die);
	uint32_t index;
	if (diemap_get(&b->group_of, origin.addr, &index))
		return index;
	var_refers(b, die, &origin);
	struct flat f = {.b = b,
			 .sc = sc,
			 .nr_left = VAR_MAX_MEMBERS,
			 .visits_left = MAX_VISITS};
	struct var_group g = {.first = (uint32_t)b->nr_members};
	const char *name = dwarf_diename(die);
	struct var_qualified q;
	index = VAR_NONE;
	if (name && var_type_of(b, die, &q) && path_add(&f, "", name)) {
		fill_model(&f, die, name);
		flatten(&f, &q, NULL, 0, 0);
		var_find_mixed(b, g.first);
	}
	g.nr = (uint32_t)b->nr_members - g.first;
	g.wanted = f.wanted;
	if (g.nr && var_grow(b, (void **)&b->groups, b->nr_groups,
			     &b->cap_groups, sizeof(*b->groups))) {
		index = (uint32_t)b->nr_groups;
		b->groups[b->nr_groups++] = g;
	}
	if (!diemap_put(&b->group_of, origin.addr, index))
		b->no_memory = true;
	return index;
}

uint64_t var_type_bytes(const struct var_type *t)
{
	uint64_t bytes = t->width;
	for (unsigned i = 0; i < t->nr_dims; i++) {
		uint64_t more;
		const struct var_dim *d = &t->dim[i];
		if (!d->count ||
		    __builtin_mul_overflow(d->count - 1, d->stride, &more) ||
		    __builtin_add_overflow(bytes, more, &bytes))
			return INT32_MAX;
	}
	return bytes;
}
