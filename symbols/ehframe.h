/*
 * ehframe.h - the call frame information of an ELF file: finds .eh_frame (or
 * .debug_frame), and splits it into entries. What the instructions in them
 * mean is cfi.h's business. Internal to symbols/, unwinding side.
 */
#ifndef SYMBOLS_EHFRAME_H
#define SYMBOLS_EHFRAME_H

#include <libelf.h>

#include "symbols/cursor.h"
#include "symbols/pieces.h"

struct ehframe_section {
	struct pieces bytes;
	uint64_t vaddr; /* of the first one in the file's address space */
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
/* The same, to be read where it is looked at: @fd, the file of @elf, stays open
 * until then; -1 as above. */
bool ehframe_open(struct ehframe_section *ret, Elf *elf, int fd);
/* How many bytes that would be, compressed as they may be; quick. */
uint64_t ehframe_bytes(Elf *elf, int fd);
void ehframe_section_deinit(struct ehframe_section *s);

/* All of @s, which is read for that. Malformed entries are skipped; false only
 * if memory is out, or the thread has given up. */
bool ehframe_parse(struct ehframe *ret, struct ehframe_section *s);
/* One FDE, that at file address @vaddr; it is not put among the others. False
 * if there is none, or nothing is known by it. @e is all 0 at first. */
bool ehframe_fde_at(struct ehframe *e, struct ehframe_section *s,
		    uint64_t vaddr, struct ehframe_fde *ret);
void ehframe_deinit(struct ehframe *e);
/* What the calling thread does now and then, some ten times a millisecond,
 * while it parses; NULL = nothing. Where that returns false it gives up: this
 * time and all later ones. */
#define EHFRAME_PAUSE 1024 /* entries at a stretch */
void ehframe_set_pause(bool (*fn)(void *ctx), void *ctx);
bool ehframe_has_given_up(void);

/* Read a pointer in DW_EH_PE_ @encoding; @vaddr is the address of c->p. */
uint64_t ehframe_pointer(struct cursor *c, uint8_t encoding, uint64_t vaddr);

#endif
