/*
 * varlocs.h - what a location attribute says, one entry after the other. libdw
 * keeps each expression that it has read in a tree, until the end: a fifth of
 * the time that reading variables takes, and much memory. What has nothing
 * unusual in it is read here, where it stands; libdw is asked for the rest.
 * Internal to symbols/.
 */
#ifndef SYMBOLS_VARLOCS_H
#define SYMBOLS_VARLOCS_H

#include <elfutils/libdw.h>

#include "symbols/cursor.h"

/* What all attributes of a unit have in common; of the last one asked for. */
struct var_locs_unit {
	Dwarf_CU *cu;	 /* NULL: of none */
	bool is_plain;	 /* expressions have addresses as they are here */
	bool has_lists;	 /* and its lists are in the section that is given */
	Dwarf_Addr base; /* of these */
};

#define VAR_LOCS_MAX_OPS 16

/* Begins with all 0 but attr; what is private goes from entry to entry. */
struct var_locs {
	Dwarf_Attribute *attr;
	Dwarf_Addr lo, hi; /* exclusive; 0 and -1: all of the scope */
	const Dwarf_Op *ops;
	size_t nr; /* of ops; 0: it is nowhere */
	/* private: */
	ptrdiff_t at;
	Dwarf_Addr base;
	Dwarf_Op own[VAR_LOCS_MAX_OPS];
};

/*
 * The next entry; its ops live until the next call, or until the file is
 * closed. @lists is .debug_loclists of @elf, .bad if there is none, and @unit
 * is kept from call to call, all 0 at first. 1: there it is; 0: there is none;
 * -1: the attribute is damaged.
 */
int var_locs_next(struct var_locs *l, Elf *elf, const struct cursor *lists,
		  struct var_locs_unit *unit);

#endif
