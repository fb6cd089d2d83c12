#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/debugfile.h"
#include "symbols/demangle.h"
#include "symbols/dwarflines.h"
#include "symbols/space.h"
#include "symbols/symtab.h"

/*
 * The naming side's strings: each once, with its readable form. A program
 * asks for the same few thousand functions again and again.
 */
struct text {
	uint32_t hash;
	char *raw;
	char *readable; /* same as raw if it is not mangled */
};

struct name_state {
	struct text *texts; /* open addressing */
	size_t nr, size;    /* size is a power of two */
};

void name_state_destroy(struct name_state *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->size; i++) {
		if (n->texts[i].readable != n->texts[i].raw)
			free(n->texts[i].readable);
		free(n->texts[i].raw);
	}
	free(n->texts);
	free(n);
}

static uint32_t hash_text(const char *s)
{
	uint32_t h = 2166136261u;
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h;
}

static bool grow(struct name_state *n)
{
	size_t size = n->size ? n->size * 2 : 1024;
	struct text *texts = calloc(size, sizeof(*texts));
	if (!texts)
		return false;
	for (size_t i = 0; i < n->size; i++) {
		size_t at = n->texts[i].hash & (size - 1);
		if (!n->texts[i].raw)
			continue;
		while (texts[at].raw)
			at = (at + 1) & (size - 1);
		texts[at] = n->texts[i];
	}
	free(n->texts);
	n->texts = texts;
	n->size = size;
	return true;
}

/* The one copy of @s; NULL if memory is out. */
static struct text *intern(struct sym_space *s, const char *str)
{
	if (!s->names)
		s->names = calloc(1, sizeof(*s->names));
	struct name_state *n = s->names;
	if (!n || (n->nr * 2 >= n->size && !grow(n)))
		return NULL;
	uint32_t hash = hash_text(str);
	size_t at = hash & (n->size - 1);
	for (; n->texts[at].raw; at = (at + 1) & (n->size - 1))
		if (n->texts[at].hash == hash && !strcmp(n->texts[at].raw, str))
			return &n->texts[at];
	struct text *t = &n->texts[at];
	t->raw = strdup(str);
	if (!t->raw)
		return NULL;
	t->hash = hash;
	t->readable = sym_demangle(str);
	if (!t->readable)
		t->readable = t->raw;
	n->nr++;
	return t;
}

static const char *plain(struct sym_space *s, const char *str)
{
	struct text *t = str && *str ? intern(s, str) : NULL;
	return t ? t->raw : "";
}

static const char *readable(struct sym_space *s, const char *str)
{
	struct text *t = str && *str ? intern(s, str) : NULL;
	return t ? t->readable : "";
}

static const char *dwarf_name(struct sym_space *s, const struct dwarf_frame *f)
{
	char full[512];
	if (f->linkage_name)
		return readable(s, f->linkage_name);
	if (!f->name || !f->scope[0] ||
	    snprintf(full, sizeof(full), "%s::%s", f->scope, f->name) >=
		    (int)sizeof(full))
		return plain(s, f->name);
	return plain(s, full);
}

static struct symtab *name_symtab(struct sym_space *s, struct module *m)
{
	if (m->name_symtab_tried)
		return m->name_symtab;
	m->name_symtab_tried = true;
	Elf *debug = debugfile_of(m, s->root_fd);
	Elf *own = module_elf(m);
	if (m->is_elf && (m->name_symtab = symtab_create())) {
		if (own)
			symtab_add(m->name_symtab, own, m->image_bias);
		if (debug && !symtab_has_static(m->name_symtab))
			symtab_add(m->name_symtab, debug, 0);
		symtab_finish(m->name_symtab);
	}
	if (own)
		elf_end(own);
	return m->name_symtab;
}

void sym_each_function(struct sym_space *s, uint32_t module,
		       bool (*fn)(void *ctx, const struct sym_function *f),
		       void *ctx)
{
	struct module *m = space_module(s, module);
	if (!m)
		return;
	pthread_mutex_lock(&m->name_lock);
	struct symtab *t = name_symtab(s, m);
	for (size_t i = 0; t && i < symtab_nr(t); i++) {
		const struct symtab_sym *sym = symtab_get(t, i);
		const struct sym_function f = {
			.name = symtab_string(t, sym),
			.addr = sym->addr,
			.size = sym->size,
		};
		if (!sym->ifunc && !fn(ctx, &f))
			break;
	}
	pthread_mutex_unlock(&m->name_lock);
}

char *sym_readable(const char *name)
{
	return sym_demangle(name);
}

/* Lines from the file itself or from its debug file; NULL if neither has. */
static struct dwarf_lines *lines_of(struct sym_space *s, struct module *m)
{
	if (m->lines_tried)
		return m->lines;
	m->lines_tried = true;
	if (m->has_dwarf && (m->lines_elf = module_elf(m))) {
		m->lines = dwarf_lines_create(m->lines_elf);
		if (m->lines)
			return m->lines;
		elf_end(m->lines_elf);
		m->lines_elf = NULL;
	}
	Elf *debug = debugfile_of(m, s->root_fd);
	if (debug && m->debug_has_dwarf)
		m->lines = dwarf_lines_create(debug);
	return m->lines;
}

void sym_module_info(struct sym_space *s, uint32_t module,
		     struct sym_module_info *ret)
{
	*ret = (struct sym_module_info){.path = "", .build_id = ""};
	struct module *m = space_module(s, module);
	if (!m)
		return;
	if (!m->has_symtab || !m->has_dwarf)
		debugfile_of(m, s->root_fd);
	ret->path = m->path;
	ret->build_id = m->build_id;
	ret->has_symtab = m->has_symtab || m->debug_has_symtab;
	ret->has_dwarf = m->has_dwarf || m->debug_has_dwarf;
}

static size_t name_in(struct sym_space *s, struct module *m,
		      struct sym_place place, bool is_return_address,
		      struct sym_name ret[SYM_MAX_INLINE])
{
	uint64_t addr = place.offset - is_return_address;
	struct symtab *t = name_symtab(s, m);
	const struct symtab_sym *sym = t ? symtab_at(t, addr) : NULL;
	/* Nobody calls a signal trampoline: it is returned to at its start. */
	if (!sym && t && (sym = symtab_at(t, place.offset)))
		addr = place.offset;
	struct dwarf_lines *d = lines_of(s, m);
	struct dwarf_frame frames[SYM_MAX_INLINE];
	size_t nr = d ? dwarf_lines_at(d, addr, frames, SYM_MAX_INLINE) : 0;
	for (size_t i = 0; i < nr; i++) {
		const struct dwarf_frame *f = &frames[i];
		ret[i] = (struct sym_name){
			.function = dwarf_name(s, f),
			.file = plain(s, f->file),
			.line = f->line,
			.func_offset = f->entry && addr >= f->entry
					       ? place.offset - f->entry
					       : 0,
		};
	}
	if (!nr)
		nr = 1;
	/*
	 * The last is the physical function: the symbol table knows it too, and
	 * better where DWARF has but the short name of a C++ function.
	 */
	struct sym_name *last = &ret[nr - 1];
	if (sym) {
		const char *raw = symtab_string(t, sym);
		const char *full = readable(s, raw);
		bool mangled = strcmp(raw, full) != 0;
		bool linkage =
			d && *last->function && frames[nr - 1].linkage_name;
		if (!*last->function || (mangled && !linkage))
			last->function = full;
		last->func_offset = place.offset - sym->addr;
	}
	return nr;
}

size_t sym_name(struct sym_space *s, struct sym_place place,
		bool is_return_address, struct sym_name ret[SYM_MAX_INLINE])
{
	ret[0] = (struct sym_name){.function = "", .file = ""};
	struct module *m = space_module(s, place.module);
	if (!m || !m->is_elf)
		return 1;
	pthread_mutex_lock(&m->name_lock);
	size_t nr = name_in(s, m, place, is_return_address, ret);
	pthread_mutex_unlock(&m->name_lock);
	return nr;
}
