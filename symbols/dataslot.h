/*
 * dataslot.h - how a library reaches data that other files may have instead of
 * it: by words (slots of the global offset table) that the dynamic linker fills
 * in with where the data is, here or in a copy of the program's. Internal to
 * those who know ELF; addresses are the file's own.
 */
#ifndef SYMBOLS_DATASLOT_H
#define SYMBOLS_DATASLOT_H

#include <libelf.h>

#include "reports/base.h"

/* A word that leads to data of the file, if nobody has other data of that name
 * in its place. The program does not change it. */
struct data_slot {
	uint64_t slot;
	uint64_t addr; /* of the data */
};

/* Data that may be elsewhere. */
struct data_export {
	uint64_t addr;
	uint64_t size;
	uint64_t slot; /* 0: the file itself does not use it by name */
};

struct data_slots {
	struct data_slot *slot; /* by slot */
	size_t nr;
	struct data_export *export; /* by addr */
	size_t nr_exports;
};

/* Of a program there are no exports: what it has nobody has before it. 0 or
 * SMCO_NOMEM; a file without any has none. */
int data_slots_read(struct data_slots *ret, Elf *elf);
void data_slots_deinit(struct data_slots *s);

/* What the word at @slot leads to; false: it is no slot. */
bool data_slots_find(const struct data_slots *s, uint64_t slot,
		     uint64_t *addr_ret);
/* The export that has @addr; NULL: none. */
const struct data_export *data_export_find(const struct data_slots *s,
					   uint64_t addr);

#endif
