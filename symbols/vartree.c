/* The tree of DIEs of a unit: functions, blocks, and the variables in them. */
#include "symbols/varbuild.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle.h"
#include "symbols/dwarfdie.h"

static void walk(struct var_build *b, Dwarf_Die *parent,
		 const struct var_scope *sc, unsigned depth);

int var_tag(struct var_build *b, Dwarf_Die *die)
{
	struct var_abbrevs *a = &b->abbrevs;
	uint8_t number = *(const uint8_t *)die->addr;
	if (die->abbrev || die->cu != a->cu || number >= ARRAY_SIZE(a->of))
		return dwarf_tag(die);
	die->abbrev = a->of[number];
	int tag = dwarf_tag(die);
	if (tag != DW_TAG_invalid)
		a->of[number] = die->abbrev;
	return tag;
}

/* Code of @die, appended to the ranges. Code that was dropped is at 0. */
static size_t read_ranges(struct var_build *b, Dwarf_Die *die)
{
	struct variables *v = b->v;
	Dwarf_Addr base = 0, lo, hi;
	ptrdiff_t at = 0;
	size_t nr = 0;
	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0 &&
	       var_step(b)) {
		if (!lo || hi <= lo)
			continue;
		if (v->nr_ranges >= VAR_MAX_RANGES) {
			v->cut_short = true;
			break;
		}
		if (!var_grow(b, (void **)&v->ranges, v->nr_ranges,
			      &b->cap_ranges, sizeof(*v->ranges)))
			break;
		v->ranges[v->nr_ranges++] = (struct var_range){lo, hi};
		nr++;
	}
	return nr;
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) ||
	       dwarf_hasattr(die, DW_AT_ranges);
}

static const char *join(struct var_build *b, const char *scope,
			const char *name)
{
	return *scope ? var_qualify(b, scope, name, VAR_MAX_NAME)
		      : var_string(b, name);
}

static void remember(struct var_build *b, const Dwarf_Die *die,
		     const char *name)
{
	if (!var_grow(b, (void **)&b->names, b->nr_names, &b->cap_names,
		      sizeof(*b->names)))
		return;
	b->names[b->nr_names] = name;
	if (!diemap_put(&b->name_of, die->addr, (uint32_t)b->nr_names++))
		b->no_memory = true;
}

/*
 * The readable name of a function, once for all its instances: demangled, or
 * put together from what it is in.
 */
static const char *function_name(struct var_build *b,
				 const struct var_scope *sc, Dwarf_Die *die)
{
	Dwarf_Die origin = die_origin(die);
	uint32_t index;
	if (diemap_get(&b->name_of, origin.addr, &index))
		return b->names[index];
	var_refers(b, die, &origin);
	const char *linkage = sc->scoped ? die_linkage_name(die) : NULL;
	char *readable _cleanup_free_ = linkage ? sym_demangle(linkage) : NULL;
	const char *short_name = dwarf_diename(die), *name;
	bool nested =
		sc->scoped && !linkage && dwarf_tag(die) == DW_TAG_subprogram;
	/* clang puts statics of inlined functions into one without a name. */
	if (!short_name && !readable)
		return sc->name;
	name = readable ? var_string(b, readable)
			: join(b, nested ? sc->name : "", short_name);
	remember(b, &origin, name);
	return name;
}

static uint32_t add_function(struct var_build *b, Dwarf_Die *die,
			     const char *name, size_t nr_ranges)
{
	struct variables *v = b->v;
	Dwarf_Addr entry;
	int line;
	if (v->nr_functions >= VAR_MAX_FUNCTIONS) {
		v->cut_short = true;
		return VAR_NO_FUNCTION;
	}
	if (!var_grow(b, (void **)&v->functions, v->nr_functions,
		      &b->cap_functions, sizeof(*v->functions)))
		return VAR_NO_FUNCTION;
	struct var_function *f = &v->functions[v->nr_functions];
	*f = (struct var_function){
		.name = name,
		.file = var_decl_file(b, die),
		.first_range = (uint32_t)(v->nr_ranges - nr_ranges),
		.nr_ranges = (uint32_t)nr_ranges,
	};
	if (!dwarf_decl_line(die, &line) && line > 0)
		f->line = (uint32_t)line;
	f->entry = dwarf_entrypc(die, &entry) ? v->ranges[f->first_range].lo
					      : entry;
	return (uint32_t)v->nr_functions++;
}

static void walk_function(struct var_build *b, Dwarf_Die *die,
			  const struct var_scope *outer, unsigned depth)
{
	if (dwarf_hasattr(die, DW_AT_declaration))
		return;
	struct var_scope sc = {
		.name = function_name(b, outer, die),
		.scoped = outer->scoped,
		.is_gcc = outer->is_gcc,
		.is_llvm = outer->is_llvm,
		.begins_late = outer->begins_late,
		.is_plain = outer->is_plain,
		.in_function = true,
		.function = VAR_NO_FUNCTION,
		.die = die,
	};
	size_t nr = read_ranges(b, die);
	/* Another copy of it was linked. */
	if (!nr && has_code(die))
		return;
	if (nr)
		sc.function = add_function(b, die, sc.name, nr);
	if (sc.function != VAR_NO_FUNCTION) {
		const struct var_function *f = &b->v->functions[sc.function];
		sc.frame_base = var_frame_base_read(die);
		if (sc.frame_base.reg == VAR_REG_FRAME_RSP || !sc.is_gcc)
			sc.body_depth = var_body_depth(b, f);
	}
	size_t first = b->v->nr_ranges - nr;
	struct var_range *own _cleanup_free_ = NULL;
	if (nr) {
		own = malloc(nr * sizeof(*own));
		if (own)
			memcpy(own, b->v->ranges + first, nr * sizeof(*own));
		else
			b->no_memory = true;
	}
	sc.ranges = own;
	sc.nr_ranges = own ? nr : 0;
	b->wants_rows = b->has_inlined = false;
	walk(b, die, &sc, depth + 1);
	if (b->wants_rows && !b->has_inlined)
		var_add_rows(b, &sc, die);
	b->wants_rows = false;
}

/* A lexical block or an inlined call: what it covers, if it says so. */
static void walk_block(struct var_build *b, Dwarf_Die *die,
		       const struct var_scope *outer, unsigned depth)
{
	struct var_scope sc = *outer;
	struct var_range *own _cleanup_free_ = NULL;
	if (dwarf_tag(die) == DW_TAG_inlined_subroutine) {
		sc.name = function_name(b, outer, die);
		b->has_inlined = true;
	}
	size_t before = b->v->nr_ranges, nr = read_ranges(b, die);
	if (nr) {
		own = malloc(nr * sizeof(*own));
		if (own)
			memcpy(own, b->v->ranges + before, nr * sizeof(*own));
		else
			b->no_memory = true;
		sc.ranges = own;
		sc.nr_ranges = own ? nr : 0;
	}
	/* Only functions keep theirs. */
	b->v->nr_ranges = before;
	walk(b, die, &sc, depth + 1);
}

static void walk_namespace(struct var_build *b, Dwarf_Die *die,
			   const struct var_scope *outer, unsigned depth)
{
	if (!outer->scoped || dwarf_haschildren(die) <= 0)
		return;
	struct var_scope sc = *outer;
	sc.name = join(b, outer->name, die_scope_name(die));
	walk(b, die, &sc, depth + 1);
}

static void see_variable(struct var_build *b, const struct var_scope *sc,
			 Dwarf_Die *die)
{
	if (dwarf_hasattr(die, DW_AT_declaration)) {
		/* The definition may lie elsewhere and refer to this. */
		if (*sc->name && !sc->in_function)
			remember(b, die, sc->name);
		return;
	}
	uint32_t group = var_group_of(b, sc, die);
	if (sc->begins_late && group != VAR_NONE && !b->is_optimised)
		b->is_optimised = var_is_optimised(b, sc, die);
	if (group != VAR_NONE && b->groups[group].wanted)
		var_add_places(b, sc, die, group);
	else
		var_add_memory(b, sc, die);
}

static void walk(struct var_build *b, Dwarf_Die *parent,
		 const struct var_scope *sc, unsigned depth)
{
	Dwarf_Die die;
	if (depth > VAR_MAX_DEPTH) {
		b->v->cut_short = true;
		return;
	}
	bool is_damaged = false;
	int got = dwarf_child(parent, &die);
	if (got)
		b->v->nr_damaged += got < 0;
	if (got)
		return;
	do {
		if (!var_step(b))
			return;
		switch (var_tag(b, &die)) {
		case DW_TAG_subprogram:
			walk_function(b, &die, sc, depth);
			break;
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			walk_block(b, &die, sc, depth);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			walk_namespace(b, &die, sc, depth);
			break;
		case DW_TAG_variable:
		case DW_TAG_formal_parameter:
			see_variable(b, sc, &die);
			break;
		default:
			break;
		}
	} while (die_next_told(&die, &is_damaged));
	b->v->nr_damaged += is_damaged;
}

/* Is it C, by a gcc that was not told to optimise? It says what it was told,
 * unless it was told not to say it. */
static bool is_plain_c(Dwarf_Die *cu, const char *producer)
{
	const char *level;
	if (!producer || strncmp(producer, "GNU C", 5) || producer[5] == '+' ||
	    !strstr(producer, " -m"))
		return false;
	for (const char *at = producer; (level = strstr(at, " -O"));
	     at = level + 3)
		if (level[3] != '0')
			return false;
	switch (dwarf_srclang(cu)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return true;
	default:
		return false;
	}
}

void var_walk_unit(struct var_build *b, Dwarf_Die *cu)
{
	Dwarf_Attribute mem;
	const char *producer =
		dwarf_formstring(dwarf_attr(cu, DW_AT_producer, &mem));
	const struct var_scope sc = {
		.name = "",
		.is_gcc = producer && !strncmp(producer, "GNU ", 4),
		.is_llvm = producer && (strstr(producer, "clang") ||
					strstr(producer, "LLVM")),
		.is_plain = is_plain_c(cu, producer),
		.scoped = die_has_scopes(cu),
		.begins_late = dwarf_srclang(cu) == DW_LANG_Rust,
		.function = VAR_NO_FUNCTION,
	};
	size_t first = b->nr_found;
	b->is_optimised = false;
	b->abbrevs = (struct var_abbrevs){.cu = cu->cu};
	walk(b, cu, &sc, 0);
	for (size_t i = first; b->is_optimised && i < b->nr_found; i++)
		b->found[i].place.flags &= (uint16_t)~VAR_LATE;
}
