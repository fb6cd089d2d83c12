/*
 * Names of the files that declarations name by number. libdw reads the whole
 * line table of a unit for them: a third of the time that reading variables
 * takes, and more memory than all that is made of them. They stand at its
 * beginning; where that is not as expected libdw is asked after all.
 */
#include "symbols/dwarfdie.h"
#include "symbols/varbuild.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/cursor.h"

#define MAX_FILES   (1u << 20)
#define MAX_COLUMNS 16
#define MAX_NAME    8192

/* What a table entry says, or a directory: its name and where it is. */
struct entry {
	const char *name;
	uint64_t dir;
};

struct column {
	uint64_t what, form;
};

struct reader {
	struct cursor c;
	struct cursor line_str, str; /* sections */
	unsigned offset_bytes;
};

struct cursor var_section(Elf *elf, const char *name)
{
	struct cursor none = {.bad = true};
	size_t names;
	Elf_Scn *scn = NULL;
	GElf_Shdr head;
	if (!elf || elf_getshdrstrndx(elf, &names))
		return none;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &head) || head.sh_type == SHT_NOBITS ||
		    head.sh_flags & SHF_COMPRESSED)
			continue;
		const char *is = elf_strptr(elf, names, head.sh_name);
		Elf_Data *d =
			is && !strcmp(is, name) ? elf_getdata(scn, NULL) : NULL;
		if (d && d->d_buf)
			return (struct cursor){.p = d->d_buf,
					       .end = (uint8_t *)d->d_buf +
						      d->d_size};
	}
	return none;
}

struct var_sections var_sections_of(Elf *elf)
{
	return (struct var_sections){
		.elf = elf,
		.line = var_section(elf, ".debug_line"),
		.line_str = var_section(elf, ".debug_line_str"),
		.str = var_section(elf, ".debug_str"),
		.loc = var_section(elf, ".debug_loc"),
		.loclists = var_section(elf, ".debug_loclists"),
	};
}

static const char *string_here(struct cursor *c)
{
	size_t left = cursor_left(c);
	const uint8_t *end = c->bad ? NULL : memchr(c->p, 0, left);
	const char *s = (const char *)c->p;
	c->bad |= !end;
	if (end)
		c->p = end + 1;
	return end ? s : "";
}

static const char *string_at(struct reader *r, const struct cursor *from,
			     uint64_t offset)
{
	struct cursor at = *from;
	cursor_take(&at, offset);
	const char *s = string_here(&at);
	r->c.bad |= at.bad;
	return s;
}

/* A field of version 5. */
static void read_field(struct reader *r, const struct column *col,
		       struct entry *ret)
{
	const char *name = NULL;
	uint64_t value = 0;
	switch (col->form) {
	case DW_FORM_string:
		name = string_here(&r->c);
		break;
	case DW_FORM_line_strp:
		name = string_at(r, &r->line_str,
				 cursor_uint(&r->c, r->offset_bytes));
		break;
	case DW_FORM_strp:
		name = string_at(r, &r->str,
				 cursor_uint(&r->c, r->offset_bytes));
		break;
	case DW_FORM_udata:
		value = cursor_uleb(&r->c);
		break;
	case DW_FORM_data1:
		value = cursor_uint(&r->c, 1);
		break;
	case DW_FORM_data2:
		value = cursor_uint(&r->c, 2);
		break;
	case DW_FORM_data4:
		value = cursor_uint(&r->c, 4);
		break;
	case DW_FORM_data8:
		value = cursor_uint(&r->c, 8);
		break;
	case DW_FORM_data16:
		cursor_take(&r->c, 16);
		break;
	case DW_FORM_block:
		cursor_take(&r->c, cursor_uleb(&r->c));
		break;
	default:
		r->c.bad = true;
		break;
	}
	if (col->what == DW_LNCT_path && name)
		ret->name = name;
	else if (col->what == DW_LNCT_directory_index && !name)
		ret->dir = value;
}

static struct entry *add_entry(struct entry **all, size_t *nr, size_t *cap)
{
	if (*nr == *cap) {
		size_t want = *cap * 2 + 16;
		struct entry *more =
			want <= MAX_FILES ? realloc(*all, want * sizeof(*more))
					  : NULL;
		if (!more)
			return NULL;
		*all = more;
		*cap = want;
	}
	struct entry *e = &(*all)[(*nr)++];
	*e = (struct entry){.name = NULL};
	return e;
}

/* A table of version 5; NULL if it is malformed. */
static struct entry *read_table(struct reader *r, size_t *nr_ret)
{
	struct column col[MAX_COLUMNS];
	struct entry *all = NULL, *e;
	size_t cap = 0;
	*nr_ret = 0;
	uint64_t nr_columns = cursor_uint(&r->c, 1);
	if (!nr_columns || nr_columns > MAX_COLUMNS)
		return NULL;
	for (size_t i = 0; i < nr_columns; i++) {
		col[i].what = cursor_uleb(&r->c);
		col[i].form = cursor_uleb(&r->c);
	}
	for (uint64_t n = cursor_uleb(&r->c); n && !r->c.bad; n--) {
		e = add_entry(&all, nr_ret, &cap);
		for (size_t i = 0; e && i < nr_columns; i++)
			read_field(r, &col[i], e);
		r->c.bad |= !e || !e->name;
	}
	if (!r->c.bad && all)
		return all;
	free(all);
	return NULL;
}

/* The tables before version 5: number 0 is the unit's own directory, and no
 * file. */
static struct entry *read_old_table(struct reader *r, bool files,
				    const char *first, size_t *nr_ret)
{
	struct entry *all = NULL, *e;
	size_t cap = 0;
	*nr_ret = 0;
	e = add_entry(&all, nr_ret, &cap);
	if (e)
		e->name = first;
	while (e && !r->c.bad) {
		const char *name = string_here(&r->c);
		if (!*name)
			break;
		e = add_entry(&all, nr_ret, &cap);
		if (!e)
			break;
		e->name = name;
		if (!files)
			continue;
		e->dir = cursor_uleb(&r->c);
		cursor_uleb(&r->c); /* when it was written */
		cursor_uleb(&r->c); /* its size */
	}
	if (!r->c.bad && e)
		return all;
	free(all);
	return NULL;
}

static const char *whole_name(struct var_build *b, const struct entry *e,
			      const struct entry *dirs, size_t nr_dirs)
{
	char full[MAX_NAME];
	if (*e->name == '/' || (e->dir < nr_dirs && !dirs[e->dir].name))
		return var_string(b, e->name);
	if (e->dir >= nr_dirs)
		return NULL;
	int n = snprintf(full, sizeof(full), "%s/%s", dirs[e->dir].name,
			 e->name);
	return n > 0 && (size_t)n < sizeof(full) ? var_string(b, full) : NULL;
}

static void keep_names(struct var_build *b, struct var_files *t,
		       const struct entry *files, size_t nr,
		       const struct entry *dirs, size_t nr_dirs, bool old)
{
	t->name = calloc(nr + 1, sizeof(*t->name));
	for (size_t i = 0; t->name && i < nr; i++) {
		t->name[i] = old && !i
				     ? files[i].name
				     : whole_name(b, &files[i], dirs, nr_dirs);
		if (t->name[i])
			continue;
		/* libdw knows what it makes of it. */
		free(t->name);
		t->name = NULL;
	}
	t->nr = t->name ? nr : 0;
}

/* The head of the line table of @cu: its files. */
static void read_files(struct var_build *b, Dwarf_Die *cu, struct var_files *t)
{
	Dwarf_Attribute mem;
	Dwarf_Word at;
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(cu->cu));
	const struct var_sections s =
		elf == b->sections.elf ? b->sections : var_sections_of(elf);
	struct reader r = {.c = s.line,
			   .line_str = s.line_str,
			   .str = s.str,
			   .offset_bytes = 4};
	if (!dwarf_attr(cu, DW_AT_stmt_list, &mem) ||
	    dwarf_formudata(&mem, &at))
		return;
	cursor_take(&r.c, at);
	uint64_t len = cursor_uint(&r.c, 4);
	if (len == UINT32_MAX) {
		r.offset_bytes = 8;
		len = cursor_uint(&r.c, 8);
	}
	r.c = cursor_take(&r.c, len);
	uint64_t version = cursor_uint(&r.c, 2);
	if (version >= 5)
		cursor_take(&r.c, 2); /* sizes of addresses and segments */
	r.c = cursor_take(&r.c, cursor_uint(&r.c, r.offset_bytes));
	cursor_take(&r.c, version >= 4 ? 5 : 4);
	uint64_t nr_opcodes = cursor_uint(&r.c, 1);
	cursor_take(&r.c, nr_opcodes ? nr_opcodes - 1 : 0);
	if (r.c.bad || version < 2 || version > 5)
		return;
	size_t nr_dirs = 0, nr = 0;
	const char *comp_dir =
		dwarf_formstring(dwarf_attr(cu, DW_AT_comp_dir, &mem));
	struct entry *dirs _cleanup_free_ =
		version == 5 ? read_table(&r, &nr_dirs)
			     : read_old_table(&r, false, comp_dir, &nr_dirs);
	struct entry *files _cleanup_free_ =
		!dirs	       ? NULL
		: version == 5 ? read_table(&r, &nr)
			       : read_old_table(&r, true, "???", &nr);
	if (files)
		keep_names(b, t, files, nr, dirs, nr_dirs, version < 5);
}

static const struct var_files *files_of(struct var_build *b, Dwarf_CU *unit,
					Dwarf_Die *cu)
{
	uint32_t index;
	if (!diemap_get(&b->files_of, unit, &index)) {
		if (!var_grow(b, (void **)&b->files, b->nr_files, &b->cap_files,
			      sizeof(*b->files)))
			return NULL;
		index = (uint32_t)b->nr_files++;
		b->files[index] = (struct var_files){.nr = 0};
		read_files(b, cu, &b->files[index]);
		if (!diemap_put(&b->files_of, unit, index))
			b->no_memory = true;
	}
	return b->files[index].name ? &b->files[index] : NULL;
}

const char *var_decl_file(struct var_build *b, Dwarf_Die *die)
{
	Dwarf_Attribute mem, *a;
	Dwarf_Word index;
	Dwarf_Die cu;
	Dwarf_Half version;
	a = dwarf_attr_integrate(die, DW_AT_decl_file, &mem);
	if (!a || dwarf_formudata(a, &index) ||
	    !dwarf_cu_die(a->cu, &cu, &version, NULL, NULL, NULL, NULL, NULL) ||
	    (!index && version < 5))
		return "";
	const struct var_files *t = files_of(b, a->cu, &cu);
	if (t)
		return index < t->nr ? t->name[index] : "";
	const char *file = die_decl_file(die);
	return var_file(b, file ? file : "");
}

void var_files_free(struct var_build *b)
{
	for (size_t i = 0; i < b->nr_files; i++)
		free(b->files[i].name);
	free(b->files);
	free(b->files_of.slots);
}
