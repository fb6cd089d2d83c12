/*
 * dynamic.h - what an ELF file offers to the dynamic linker, found as the
 * linker finds it: by the program headers. For files without section headers
 * and for images copied out of memory. Internal to symbols/.
 */
#ifndef SYMBOLS_DYNAMIC_H
#define SYMBOLS_DYNAMIC_H

#include <gelf.h>

#include "reports/base.h"

struct dynamic {
	const Elf64_Sym *syms; /* may be unaligned */
	size_t nr_syms;
	const char *strings; /* ends with a NUL */
	size_t strings_len;
	const char *soname; /* NULL if none */
	bool has_needed;
	bool is_library;   /* no program, though some can be run */
	bool is_symbolic;  /* its own symbols come first for it */
	const void *relas; /* Elf64_Rela, may be unaligned */
	size_t nr_relas;
	bool has_text_relocs; /* the linker will write into its code */
};

/*
 * Fill *ret from @elf, whose memory it points into. @bias: what the linker
 * added to the addresses in an image from memory, 0 for a file. False if there
 * is no (sound) dynamic section.
 */
bool dynamic_read(Elf *elf, uint64_t bias, struct dynamic *ret);

#endif
