/*
 * ehframe.h - the call frame information of an ELF file: finds .eh_frame (or
 * .debug_frame), and splits it into entries. What the instructions in them
 * mean is cfi.h's business. Internal to symbols/, unwinding side.
 */
#ifndef SYMBOLS_EHFRAME_H
#define SYMBOLS_EHFRAME_H

#include <libelf.h>

#include "symbols/cursor.h"

struct ehframe_section {
	uint8_t *data; /* malloc'ed */
	size_t len;
	uint64_t vaddr; /* of data[0] in the file's address space */
	bool is_debug_frame;
	bool open_ended; /* other things may follow after a terminator */
};

struct ehframe_cie {
	uint64_t offset; /* in the section: what FDEs refer to it by */
	bool usable;	 /* false: its FDEs are skipped */
	uint64_t code_align;
	int64_t data_align;
	uint8_t ra_reg;
	uint8_t encoding;      /* DW_EH_PE_* of the FDEs' addresses */
	uint8_t lsda_encoding; /* of what is for the language; omit: none */
	bool has_augmentation_length;
	bool is_signal_frame;
	struct cursor program;
};

struct ehframe_fde {
	uint64_t start;
	uint64_t end;  /* exclusive */
	uint32_t cie;  /* index */
	uint64_t lsda; /* what is for the language, file address; 0: none */
	struct cursor program;
};

/* Everything in one section; FDEs sorted by start. Points into the section. */
struct ehframe {
	struct ehframe_cie *cies;
	size_t nr_cies, cap_cies;
	struct ehframe_fde *fdes;
	size_t nr_fdes, cap_fdes;
	uint32_t *cie_hash; /* private: index + 1 by offset */
	size_t cie_hash_size;
};

/* False if the file has neither section. */
bool ehframe_load(struct ehframe_section *ret, Elf *elf);
void ehframe_section_deinit(struct ehframe_section *s);

/* Malformed entries are skipped; false only if memory is out. */
bool ehframe_parse(struct ehframe *ret, const struct ehframe_section *s);
void ehframe_deinit(struct ehframe *e);

/* Read a pointer in DW_EH_PE_ @encoding; @vaddr is the address of c->p. */
uint64_t ehframe_pointer(struct cursor *c, uint8_t encoding, uint64_t vaddr);

#endif
