#include "symbols/dwarflines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarfdie.h"

/* Bounds on what hostile DWARF can make us do. */
#define MAX_UNIT_RANGES (4u << 20)
#define MAX_FUNCTIONS	(1u << 20)
#define MAX_DEPTH	96
#define MAX_CHAIN	64

struct function {
	uint64_t lo;
	uint64_t hi; /* exclusive */
	Dwarf_Die die;
};

/* Something that functions are inside of. */
struct scope {
	uint32_t parent; /* index + 1; 0: the unit itself */
	Dwarf_Die die;
};

/* A subprogram, declared or defined; in the order of DIEs. */
struct declared {
	void *die_addr;
	uint32_t scope; /* index + 1 */
};

struct unit {
	Dwarf_Die cu;	/* has the ranges and the lines */
	Dwarf_Die tree; /* has the functions; differs for split DWARF */
	bool read;
	struct function *functions; /* sorted by lo */
	size_t nr, cap;
	/* For languages where functions have more than a name. */
	struct scope *scopes;
	size_t nr_scopes, cap_scopes;
	struct declared *declared;
	size_t nr_declared, cap_declared;
};

struct unit_range {
	uint64_t lo;
	uint64_t hi; /* exclusive */
	uint32_t unit;
};

struct dwarf_lines {
	Dwarf *dwarf;
	struct unit *units;
	size_t nr_units, cap_units;
	struct unit_range *ranges; /* sorted by lo */
	size_t nr_ranges, cap_ranges;
};

static bool grow(void **mem, size_t nr, size_t *cap, size_t item)
{
	if (nr < *cap)
		return true;
	size_t want = *cap * 2 + 64;
	void *more = realloc(*mem, want * item);
	if (!more)
		return false;
	*mem = more;
	*cap = want;
	return true;
}

static int compare_range(const void *pa, const void *pb)
{
	const struct unit_range *a = pa, *b = pb;
	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static int compare_function(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;
	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->hi > b->hi ? -1 : a->hi < b->hi;
}

static void add_unit_ranges(struct dwarf_lines *d, uint32_t unit)
{
	Dwarf_Addr base = 0, lo, hi;
	ptrdiff_t at = 0;
	while ((at = dwarf_ranges(&d->units[unit].cu, at, &base, &lo, &hi)) >
	       0) {
		/* Code that the linker dropped was given address 0. */
		if (!lo || hi <= lo)
			continue;
		if (d->nr_ranges >= MAX_UNIT_RANGES ||
		    !grow((void **)&d->ranges, d->nr_ranges, &d->cap_ranges,
			  sizeof(*d->ranges)))
			return;
		d->ranges[d->nr_ranges++] =
			(struct unit_range){.lo = lo, .hi = hi, .unit = unit};
	}
}

struct dwarf_lines *dwarf_lines_create(Elf *elf)
{
	struct dwarf_lines *d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!d->dwarf) {
		free(d);
		return NULL;
	}
	Dwarf_CU *cu = NULL;
	uint8_t type;
	Dwarf_Die die, sub;
	while (!dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, &sub)) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (d->nr_units >= UINT32_MAX ||
		    !grow((void **)&d->units, d->nr_units, &d->cap_units,
			  sizeof(*d->units)))
			break;
		d->units[d->nr_units++] =
			(struct unit){.cu = die, .tree = sub.addr ? sub : die};
		add_unit_ranges(d, (uint32_t)(d->nr_units - 1));
	}
	if (d->nr_ranges)
		qsort(d->ranges, d->nr_ranges, sizeof(*d->ranges),
		      compare_range);
	return d;
}

void dwarf_lines_destroy(struct dwarf_lines *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->nr_units; i++) {
		free(d->units[i].functions);
		free(d->units[i].scopes);
		free(d->units[i].declared);
	}
	free(d->units);
	free(d->ranges);
	dwarf_end(d->dwarf);
	free(d);
}

static struct unit *unit_at(struct dwarf_lines *d, uint64_t addr)
{
	size_t lo = 0, hi = d->nr_ranges;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (d->ranges[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i-- > 0 && lo - i <= 16;)
		if (addr < d->ranges[i].hi)
			return &d->units[d->ranges[i].unit];
	return NULL;
}

static void add_function(struct unit *u, Dwarf_Die *die)
{
	Dwarf_Addr base = 0, lo, hi;
	ptrdiff_t at = 0;
	while ((at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0) {
		if (!lo || hi <= lo)
			continue;
		if (u->nr >= MAX_FUNCTIONS ||
		    !grow((void **)&u->functions, u->nr, &u->cap,
			  sizeof(*u->functions)))
			return;
		u->functions[u->nr++] =
			(struct function){.lo = lo, .hi = hi, .die = *die};
	}
}

static void note_declared(struct unit *u, Dwarf_Die *die, uint32_t scope)
{
	if (u->nr_declared >= MAX_FUNCTIONS ||
	    !grow((void **)&u->declared, u->nr_declared, &u->cap_declared,
		  sizeof(*u->declared)))
		return;
	u->declared[u->nr_declared++] =
		(struct declared){.die_addr = die->addr, .scope = scope};
}

/* A scope below @parent; @parent itself if there is no room. */
static uint32_t add_scope(struct unit *u, Dwarf_Die *die, uint32_t parent)
{
	if (u->nr_scopes >= MAX_FUNCTIONS ||
	    !grow((void **)&u->scopes, u->nr_scopes, &u->cap_scopes,
		  sizeof(*u->scopes)))
		return parent;
	u->scopes[u->nr_scopes] = (struct scope){.parent = parent, .die = *die};
	return (uint32_t)++u->nr_scopes;
}

/*
 * Functions may be anywhere: in namespaces, in classes, and the members of
 * local classes and lambdas inside other functions. @scope is what @parent
 * is, with @scoped.
 */
static void add_functions(struct unit *u, Dwarf_Die *parent, unsigned depth,
			  bool scoped, uint32_t scope)
{
	Dwarf_Die die;
	if (depth > MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		uint32_t inner = scope;
		if (tag == DW_TAG_subprogram) {
			add_function(u, &die);
			if (scoped)
				note_declared(u, &die, scope);
		}
		switch (tag) {
		case DW_TAG_subprogram:
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			if (scoped && dwarf_haschildren(&die) > 0)
				inner = add_scope(u, &die, scope);
			add_functions(u, &die, depth + 1, scoped, inner);
			break;
		case DW_TAG_lexical_block:
			add_functions(u, &die, depth + 1, scoped, scope);
			break;
		default:
			break;
		}
	} while (die_next(&die));
}

/* Write scope @index and those around it, outermost first; false: too long. */
static bool write_scope(const struct unit *u, uint32_t index, char *text,
			size_t size, unsigned depth)
{
	if (!index)
		return true;
	const struct scope *s = &u->scopes[index - 1];
	Dwarf_Die die = s->die;
	if (depth > MAX_DEPTH ||
	    !write_scope(u, s->parent, text, size, depth + 1))
		return false;
	size_t len = strlen(text);
	int n = snprintf(text + len, size - len, "%s%s", len ? "::" : "",
			 die_scope_name(&die));
	return n >= 0 && (size_t)n < size - len;
}

static int compare_declared(const void *pa, const void *pb)
{
	const struct declared *a = pa, *b = pb;
	return a->die_addr < b->die_addr ? -1 : a->die_addr > b->die_addr;
}

/* What the function @die, or what it is an instance of, was declared in. */
static void fill_scope(const struct unit *u, const Dwarf_Die *die,
		       struct dwarf_frame *f)
{
	Dwarf_Die at = die_origin(die);
	struct declared key = {.die_addr = at.addr};
	const struct declared *d =
		u->nr_declared ? bsearch(&key, u->declared, u->nr_declared,
					 sizeof(key), compare_declared)
			       : NULL;
	if (!d || !write_scope(u, d->scope, f->scope, sizeof(f->scope), 0))
		f->scope[0] = 0;
}

static struct function *function_at(struct unit *u, uint64_t addr)
{
	if (!u->read) {
		u->read = true;
		add_functions(u, &u->tree, 0, die_has_scopes(&u->tree), 0);
		if (u->nr)
			qsort(u->functions, u->nr, sizeof(*u->functions),
			      compare_function);
	}
	size_t lo = 0, hi = u->nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (u->functions[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i-- > 0 && lo - i <= 64;)
		if (addr < u->functions[i].hi)
			return &u->functions[i];
	return NULL;
}

/*
 * Append to @chain the inlined calls below @parent that contain @addr, outer
 * before inner. Blocks without addresses of their own are looked into.
 */
static bool find_inlined(Dwarf_Die *parent, uint64_t addr, Dwarf_Die *chain,
			 size_t *nr, unsigned depth)
{
	Dwarf_Die die;
	if (depth > MAX_DEPTH || dwarf_child(parent, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);
		bool inlined = tag == DW_TAG_inlined_subroutine;
		if (!inlined && tag != DW_TAG_lexical_block &&
		    tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
			continue;
		bool placed = dwarf_hasattr(&die, DW_AT_low_pc) ||
			      dwarf_hasattr(&die, DW_AT_ranges);
		if (placed && dwarf_haspc(&die, addr) <= 0)
			continue;
		if (!placed && inlined)
			continue;
		if (inlined && *nr < MAX_CHAIN)
			chain[(*nr)++] = die;
		bool deeper = find_inlined(&die, addr, chain, nr, depth + 1);
		if (placed || deeper)
			return true;
	} while (die_next(&die));
	return false;
}

static void fill_function(const struct unit *u, Dwarf_Die *die,
			  struct dwarf_frame *f)
{
	f->linkage_name = die_linkage_name(die);
	f->name = dwarf_diename(die);
	f->scope[0] = 0;
	if (!f->linkage_name && u->nr_declared)
		fill_scope(u, die, f);
	Dwarf_Addr entry;
	if (!dwarf_entrypc(die, &entry))
		f->entry = entry;
}

/* Where @inlined was called from. */
static void fill_call_site(Dwarf_Die *cu, Dwarf_Die *inlined,
			   struct dwarf_frame *f)
{
	Dwarf_Attribute mem, *a;
	Dwarf_Word value;
	a = dwarf_attr(inlined, DW_AT_call_line, &mem);
	if (a && !dwarf_formudata(a, &value))
		f->line = (uint32_t)value;
	a = dwarf_attr(inlined, DW_AT_call_file, &mem);
	Dwarf_Files *files;
	size_t nr;
	if (a && !dwarf_formudata(a, &value) &&
	    !dwarf_getsrcfiles(cu, &files, &nr) && value < nr)
		f->file = dwarf_filesrc(files, value, NULL, NULL);
}

size_t dwarf_lines_at(struct dwarf_lines *d, uint64_t addr,
		      struct dwarf_frame *ret, size_t max)
{
	struct unit *u = unit_at(d, addr);
	if (!u || !max)
		return 0;
	/* chain[0] is the physical function, the innermost comes last. */
	Dwarf_Die chain[MAX_CHAIN];
	size_t nr = 0;
	struct function *fn = function_at(u, addr);
	if (fn) {
		chain[nr++] = fn->die;
		find_inlined(&fn->die, addr, chain, &nr, 0);
	}
	struct dwarf_frame at = {0};
	Dwarf_Line *line = dwarf_getsrc_die(&u->cu, addr);
	if (line) {
		int no;
		at.file = dwarf_linesrc(line, NULL, NULL);
		if (!dwarf_lineno(line, &no) && no > 0)
			at.line = (uint32_t)no;
	}
	size_t n = 0;
	for (size_t i = nr; i-- > 0;) {
		fill_function(u, &chain[i], &at);
		/* Full: let the outer ones overwrite each other. */
		ret[n < max ? n++ : max - 1] = at;
		at = (struct dwarf_frame){0};
		if (i)
			fill_call_site(&u->cu, &chain[i], &at);
	}
	if (!nr)
		ret[n++] = at;
	return n;
}
