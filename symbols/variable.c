#include "symbols/variable.h"

#include <dwarf.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbols/debugfile.h"
#include "symbols/space.h"
#include "symbols/dynamic.h"
#include "symbols/varbuild.h"
#include "symbols/varstore.h"

/* Strings are kept in chunks, each string once for each caller, and with them
 * the dimensions of arrays. */
#define CHUNK_BYTES (64u << 10)

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(struct var_dim) char text[];
};

struct variables_state {
	struct chunk *chunks;
	bool borrowed; /* the arrays lie in memory that is not ours to free */
	void *bytes;   /* in this, if not NULL; unmap */
	size_t len;
};

/* A copy of @len bytes, at a multiple of @align, as long as the variables
 * live. NULL if memory is out. */
static void *keep(struct var_build *b, const void *from, size_t len,
		  size_t align)
{
	struct variables_state *st = b->v->state;
	struct chunk *c = st->chunks;
	size_t at = c ? (c->used + align - 1) & ~(align - 1) : 0;
	if (!c || at > c->size || c->size - at < len) {
		size_t size = len > CHUNK_BYTES ? len : CHUNK_BYTES;
		c = malloc(sizeof(*c) + size);
		if (!c) {
			b->no_memory = true;
			return NULL;
		}
		*c = (struct chunk){.next = st->chunks, .size = size};
		st->chunks = c;
		at = 0;
	}
	c->used = at + len;
	return memcpy(c->text + at, from, len);
}

const char *var_string(struct var_build *b, const char *s)
{
	const char *copy = *s ? keep(b, s, strlen(s) + 1, 1) : NULL;
	return copy ? copy : "";
}

const char *var_qualify(struct var_build *b, const char *scope,
			const char *name, size_t most)
{
	char full[VAR_MAX_NAME];
	const char *const part[] = {scope, "::", name};
	size_t len = 0;
	for (unsigned i = 0; i < 3; i++) {
		size_t n = strnlen(part[i], most - 1 - len);
		memcpy(full + len, part[i], n);
		len += n;
	}
	full[len++] = 0;
	const char *copy = keep(b, full, len, 1);
	return copy ? copy : "";
}

const struct var_dim *var_dims(struct var_build *b, const struct var_dim *dim,
			       size_t nr)
{
	if (nr && (nr != b->nr_last_dim ||
		   memcmp(dim, b->last_dim, nr * sizeof(*dim)) != 0)) {
		b->last_dim =
			keep(b, dim, nr * sizeof(*dim), sizeof(dim->count));
		b->nr_last_dim = b->last_dim ? nr : 0;
	}
	return nr ? b->last_dim : NULL;
}

const char *var_file(struct var_build *b, const char *file)
{
	if (!b->last_file || strcmp(b->last_file, file)) {
		b->last_copy = var_string(b, file);
		b->last_file = b->last_copy;
	}
	return b->last_copy;
}

bool var_step(struct var_build *b)
{
	if (b->over && atomic_load_explicit(b->over, memory_order_relaxed))
		return false; /* all is read anew */
	if (b->steps_left && !b->no_memory) {
		b->steps_left--;
		return true;
	}
	b->v->cut_short = true;
	return false;
}

bool var_grow(struct var_build *b, void **mem, size_t nr, size_t *cap,
	      size_t item)
{
	if (nr < *cap)
		return true;
	size_t want = *cap + *cap / 2 + 64;
	void *more = realloc(*mem, want * item);
	if (!more) {
		b->no_memory = true;
		return false;
	}
	*mem = more;
	*cap = want;
	return true;
}

/* --- from the address of a DIE to a number --- */

static size_t slot_of(const struct diemap *m, const void *die)
{
	/* What stands side by side is asked for together, so it is kept so:
	 * each kilobyte of DIEs has its place at random, and in it each 8. */
	uint64_t addr = (uint64_t)(uintptr_t)die;
	uint64_t h = (addr >> 10) * 0x9e3779b97f4a7c15ULL;
	size_t at =
		((size_t)(h >> 32) * 128 + (addr >> 3 & 127)) & (m->size - 1);
	while (m->slots[at].die && m->slots[at].die != die)
		at = (at + 1) & (m->size - 1);
	return at;
}

bool diemap_get(const struct diemap *m, const void *die, uint32_t *ret)
{
	if (!m->nr)
		return false;
	const struct diemap_slot *s = &m->slots[slot_of(m, die)];
	*ret = s->value;
	return s->die;
}

bool diemap_put(struct diemap *m, const void *die, uint32_t value)
{
	if (m->nr * 2 >= m->size) {
		struct diemap more = {.size = m->size ? m->size * 2 : 1024};
		more.slots = calloc(more.size, sizeof(*more.slots));
		if (!more.slots)
			return false;
		for (size_t i = 0; i < m->size; i++)
			if (m->slots[i].die)
				more.slots[slot_of(&more, m->slots[i].die)] =
					m->slots[i];
		more.nr = m->nr;
		free(m->slots);
		*m = more;
	}
	m->slots[slot_of(m, die)] =
		(struct diemap_slot){.die = die, .value = value};
	m->nr++;
	return true;
}

/* --- putting it together --- */

static int compare_found(const struct var_found *a, const struct var_found *b)
{
	if (a->place.lo != b->place.lo)
		return a->place.lo < b->place.lo ? -1 : 1;
	if (a->place.hi != b->place.hi)
		return a->place.hi < b->place.hi ? -1 : 1;
	if (a->place.kind != b->place.kind)
		return a->place.kind < b->place.kind ? -1 : 1;
	return a->place.offset < b->place.offset   ? -1
	       : a->place.offset > b->place.offset ? 1
						   : 0;
}

/* Of numbers of what was found; those that are alike stay as they are. */
static int compare_numbers(const void *pa, const void *pb, void *found)
{
	const struct var_found *all = found;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	int order = compare_found(&all[a], &all[b]);
	return order ? order : a < b ? -1 : a > b;
}

/* A static of an inlined function is met with every copy of the function. */
static bool same_static(const struct var_found *a, const struct var_found *b)
{
	return a->var == b->var && a->place.kind == VAR_ADDR &&
	       b->place.kind == VAR_ADDR && a->place.lo == b->place.lo &&
	       a->place.hi == b->place.hi && a->place.offset == b->place.offset;
}

static enum var_reason reason_for(const struct variable *var)
{
	for (unsigned why = VAR_NR_REASONS; why-- > VAR_OPTIMISED_OUT + 1;)
		if (var->missing & 1u << why)
			return why;
	return VAR_OPTIMISED_OUT;
}

/* So few are nearly always in order already. */
#define FEW_PLACES 16

static void sort_few(uint32_t *number, size_t nr, struct var_found *found)
{
	for (size_t i = 1; i < nr; i++) {
		uint32_t n = number[i];
		size_t k = i;
		for (; k && compare_numbers(&number[k - 1], &n, found) > 0; k--)
			number[k] = number[k - 1];
		number[k] = n;
	}
}

/* The numbers of what was found, by variable: first to where each belongs, then
 * those of each by themselves. There may be millions, of a few for each. NULL:
 * no memory. */
static uint32_t *order_found(struct var_build *b)
{
	size_t nr_vars = b->v->nr_vars, at = 0;
	uint32_t *next _cleanup_free_ = calloc(nr_vars + 1, sizeof(*next));
	uint32_t *order = malloc((b->nr_found + 1) * sizeof(*order));
	if (!next || !order) {
		free(order);
		return NULL;
	}
	for (size_t i = 0; i < b->nr_found; i++)
		next[b->found[i].var + 1]++;
	for (size_t i = 0; i < nr_vars; i++)
		next[i + 1] += next[i];
	for (size_t i = 0; i < b->nr_found; i++)
		order[next[b->found[i].var]++] = (uint32_t)i;
	/* Now each is where the next one's begin. */
	for (size_t i = 0; i < nr_vars; at = next[i++])
		if (next[i] - at <= FEW_PLACES)
			sort_few(order + at, next[i] - at, b->found);
		else
			qsort_r(order + at, next[i] - at, sizeof(*order),
				compare_numbers, b->found);
	return order;
}

/* Is the variable nowhere at any instruction? Then it is as good as optimised
 * out: most of its values nobody could see. @i is the first of its places. */
static bool only_points(const struct var_build *b, const uint32_t *order,
			size_t i)
{
	uint32_t var = b->found[order[i]].var;
	for (; i < b->nr_found && b->found[order[i]].var == var; i++)
		if (!(b->found[order[i]].place.flags & VAR_POINT))
			return false;
	return true;
}

bool var_build_settle(struct var_build *b)
{
	struct variables *v = b->v;
	uint32_t *order _cleanup_free_ = order_found(b);
	if (!order)
		return false;
	v->places = malloc((b->nr_found + 1) * sizeof(*v->places));
	if (!v->places)
		return false;
	bool none = false;
	const struct var_found *last = NULL;
	for (size_t i = 0; i < b->nr_found; i++) {
		const struct var_found *f = &b->found[order[i]];
		struct variable *var = &v->vars[f->var];
		if (!last || f->var != last->var)
			none = only_points(b, order, i);
		bool again = last && same_static(f, last);
		last = f;
		if (none || again)
			continue;
		if (!var->nr_places++)
			var->first_place = (uint32_t)v->nr_places;
		if (f->place.kind == VAR_ADDR && f->place.hi == UINT64_MAX)
			var->flags |= VAR_STATIC;
		var->reason = VAR_FINE;
		v->places[v->nr_places++] = f->place;
	}
	for (size_t i = 0; i < v->nr_vars; i++)
		if (!v->vars[i].nr_places)
			v->vars[i].reason = (uint8_t)reason_for(&v->vars[i]);
	free(b->found);
	b->found = NULL;
	var_sort_rows(v);
	var_sort_memory(v);
	return true;
}

/* A program's thread-local memory ends at fs, a library's is anywhere. */
static uint64_t tls_bytes(Elf *elf)
{
	size_t nr;
	uint64_t bytes = 0;
	struct dynamic dynamic;
	GElf_Ehdr head;
	if (!elf || !gelf_getehdr(elf, &head) || elf_getphdrnum(elf, &nr))
		return 0;
	bool program = head.e_type == ET_EXEC;
	for (size_t i = 0; i < nr && i < 1000; i++) {
		GElf_Phdr p;
		if (!gelf_getphdr(elf, (int)i, &p))
			break;
		program |= p.p_type == PT_INTERP;
		uint64_t align = p.p_align ? p.p_align : 1;
		if (p.p_type == PT_TLS && p.p_memsz < 1u << 30 &&
		    align < 1u << 20)
			bytes = (p.p_memsz + align - 1) / align * align;
	}
	/* Some libraries can be run, and have an interpreter for that. */
	if (dynamic_read(elf, 0, &dynamic) && dynamic.soname)
		program = false;
	return program ? bytes : 0;
}

/* Ends @dwarf and @elf as soon as they are not needed any more: there may be
 * more memory in them than in what is made of them. */
static struct variables *load(struct module *m, Dwarf *dwarf, Elf *elf,
			      var_want_fn want, var_want_fn split,
			      void *want_ctx, struct smco_err *err)
{
	struct var_build b = {
		.want = want,
		.split = split,
		.want_ctx = want_ctx,
		.steps_left = VAR_MAX_STEPS,
		.cfi = module_cfi(m),
	};
	if (b.cfi)
		cfi_complete(b.cfi);
	Elf *program = module_elf(m);
	b.tls_bytes = tls_bytes(program);
	elf_end(program);
	bool fine = var_build_begin(&b);
	if (fine)
		var_walk_file(&b, dwarf, elf);
	dwarf_end(dwarf);
	elf_end(elf);
	/* What libdw has had in many small pieces would stay. */
	malloc_trim(0);
	if (fine && !b.no_memory && var_keep_memory(&b))
		return b.v;
	var_build_drop(&b);
	smco_fail(err, SMCO_NOMEM, 0, "out of memory for the variables of %s",
		  m->path);
	return NULL;
}

/* A handle of our own on the file with the DWARF; NULL if there is none. */
Elf *var_dwarf_elf(struct sym_space *s, struct module *m)
{
	if (m->has_dwarf)
		return module_elf(m);
	if (!debugfile_of(m, s->root_fd) || !m->debug_has_dwarf)
		return NULL;
	return elf_begin(m->debug_fd, ELF_C_READ, NULL);
}

struct variables *variables_load(struct sym_space *s, uint32_t module,
				 var_want_fn want, void *want_ctx,
				 struct smco_err *err)
{
	return variables_load_split(s, module, want, NULL, want_ctx, err);
}

struct variables *variables_load_split(struct sym_space *s, uint32_t module,
				       var_want_fn want, var_want_fn split,
				       void *ctx, struct smco_err *err)
{
	struct module *m = space_module(s, module);
	if (!m || !m->is_elf) {
		smco_fail(err, SMCO_NOTFOUND, 0, "%s is not an ELF file",
			  m ? m->path : "this");
		return NULL;
	}
	Elf *elf = var_dwarf_elf(s, m);
	if (!elf) {
		smco_fail(err, SMCO_NOTFOUND, 0,
			  "%s has no debug information: compile it with -g, or "
			  "install its debug symbols (package -dbgsym)",
			  m->path);
		return NULL;
	}
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (dwarf)
		return load(m, dwarf, elf, want, split, ctx, err);
	smco_fail(err, SMCO_FORMAT, 0,
		  "the debug information of %s cannot be read: %s", m->path,
		  dwarf_errmsg(-1));
	elf_end(elf);
	return NULL;
}

bool variables_borrow(struct variables *v)
{
	v->state = calloc(1, sizeof(*v->state));
	if (v->state)
		v->state->borrowed = true;
	return v->state;
}

void variables_own(struct variables *v, void *bytes, size_t len)
{
	v->state->bytes = bytes;
	v->state->len = len;
}

bool var_build_begin(struct var_build *b)
{
	b->v = calloc(1, sizeof(*b->v));
	if (b->v && (b->v->state = calloc(1, sizeof(*b->v->state))))
		return true;
	free(b->v);
	b->v = NULL;
	return false;
}

void var_build_drop(struct var_build *b)
{
	variables_destroy(b->v);
	b->v = NULL;
	free(b->found);
	b->found = NULL;
}

void var_strings_join(struct variables *v, struct variables *from)
{
	struct chunk **end = &v->state->chunks;
	while (*end)
		end = &(*end)->next;
	*end = from->state->chunks;
	from->state->chunks = NULL;
}

void var_strings_free(struct variables *v)
{
	for (struct chunk *c = v->state ? v->state->chunks : NULL, *next; c;
	     c = next) {
		next = c->next;
		free(c);
	}
	if (v->state)
		v->state->chunks = NULL;
}

void variables_destroy(struct variables *v)
{
	if (!v)
		return;
	var_strings_free(v);
	bool borrowed = v->state && v->state->borrowed;
	if (v->state && v->state->bytes)
		munmap(v->state->bytes, v->state->len);
	free(v->state);
	if (borrowed) {
		free(v);
		return;
	}
	free(v->vars);
	free(v->places);
	free(v->ops);
	free(v->functions);
	free(v->ranges);
	free(v->enumerators);
	free(v->others);
	free(v->rows);
	free(v);
}

size_t variables_at(const struct variables *v, const struct variable *var,
		    uint64_t pc, const struct var_place **ret, size_t max)
{
	size_t n = 0;
	for (uint32_t i = 0; i < var->nr_places && n < max; i++) {
		const struct var_place *p = &v->places[var->first_place + i];
		if (p->lo > pc)
			break;
		if (pc < p->hi)
			ret[n++] = p;
	}
	return n;
}

const char *var_reason_text(enum var_reason reason)
{
	switch (reason) {
	case VAR_FINE:
		return "readable";
	case VAR_OPTIMISED_OUT:
		return "optimised out";
	case VAR_ENTRY_VALUE:
		return "known at the function's entry only";
	case VAR_THREAD_LOCAL:
		return "thread-local, in a library";
	case VAR_VECTOR:
		return "in a vector register";
	case VAR_SPLIT:
		return "in several places";
	case VAR_COMPLEX:
		return "location too complex";
	case VAR_NO_FRAME:
		return "no frame information";
	case VAR_IMPLICIT:
		return "behind an optimised-out pointer";
	case VAR_SHARED:
		return "in a register that others use, too";
	default:
		return "unknown reason";
	}
}
