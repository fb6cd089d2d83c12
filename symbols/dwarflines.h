/*
 * dwarflines.h - source lines and inlined functions of one module, by libdw.
 * Internal to symbols/, naming side.
 *
 * Compilation units are found by their own ranges, not by .debug_aranges,
 * which some compilers leave out. What a unit contains is read when the first
 * address in it is asked for.
 */
#ifndef SYMBOLS_DWARFLINES_H
#define SYMBOLS_DWARFLINES_H

#include <libelf.h>

#include "reports/base.h"

struct dwarf_lines;

/* @elf (with .debug_info) must live longer. NULL if there is nothing in it. */
struct dwarf_lines *dwarf_lines_create(Elf *elf);
void dwarf_lines_destroy(struct dwarf_lines *d);

struct dwarf_frame {
	const char *linkage_name; /* NULL if unknown */
	const char *name;	  /* NULL if unknown */
	const char *file;	  /* NULL if unknown */
	uint32_t line;		  /* 0 if unknown */
	uint64_t entry;		  /* address of the function's first byte */
	/*
	 * The namespaces and classes that @name is in, "a::b"; "" if none or
	 * not known. Only where there is no linkage name, which says it better.
	 */
	char scope[256];
};

/*
 * The functions at @addr, innermost inlined one first, the physical one last;
 * with more than @max the ones in the middle are left out. 0 if no unit
 * covers @addr; a unit with lines but no function for it gives one frame
 * without a name. Strings live as long as @d.
 */
size_t dwarf_lines_at(struct dwarf_lines *d, uint64_t addr,
		      struct dwarf_frame *ret, size_t max);

#endif
