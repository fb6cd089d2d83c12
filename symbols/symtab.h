/*
 * symtab.h - function symbols of one module, by address and by name. Internal
 * to symbols/. Takes what it needs out of the ELF file; the Elf handle may be
 * ended afterwards.
 */
#ifndef SYMBOLS_SYMTAB_H
#define SYMBOLS_SYMTAB_H

#include <gelf.h>

#include "reports/base.h"

struct symtab;

struct symtab_sym {
	uint64_t addr;	/* st_value */
	uint64_t size;	/* 0 if the file does not say */
	uint64_t limit; /* end of its section */
	uint32_t name;	/* offset into the strings */
	uint8_t bind;	/* STB_* */
	bool dynamic;	/* from .dynsym */
	bool ifunc;
	bool old_version; /* a non-default version: name@VER, not name@@VER */
};

struct symtab *symtab_create(void);
void symtab_destroy(struct symtab *t);

/* Add what @elf has in .symtab and .dynsym, or, without section headers, what
 * the dynamic linker sees (@bias: see dynamic.h). Malformed parts are skipped.
 */
void symtab_add(struct symtab *t, Elf *elf, uint64_t bias);
/* Sort, for symtab_at; call once after the last symtab_add. */
void symtab_finish(struct symtab *t);

const char *symtab_string(const struct symtab *t, const struct symtab_sym *s);
bool symtab_has_static(const struct symtab *t); /* a .symtab was added */
size_t symtab_nr(const struct symtab *t);
/* Number @i of them, in an order of their own. */
const struct symtab_sym *symtab_get(const struct symtab *t, size_t i);

/* The function that contains @addr; NULL if none is known to. */
const struct symtab_sym *symtab_at(const struct symtab *t, uint64_t addr);

/*
 * The symbol called @name exactly, a default version before an old one, a
 * global before a local. @dynamic: only what .dynsym defines.
 */
const struct symtab_sym *symtab_named(struct symtab *t, const char *name,
				      bool dynamic);

#endif
