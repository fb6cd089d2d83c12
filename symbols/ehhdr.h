/*
 * ehhdr.h - .eh_frame_hdr: where the frame information is, and a table of which
 * entry is for which code, by address, that linkers make for those who unwind.
 * Read where it is looked at; the file is hostile input. Internal to symbols/.
 */
#ifndef SYMBOLS_EHHDR_H
#define SYMBOLS_EHHDR_H

#include <libelf.h>

#include "symbols/pieces.h"

struct ehhdr {
	uint64_t frame_vaddr; /* of .eh_frame, in the file's address space */
	size_t nr;	      /* entries; 0: there is no table */
	/* private: */
	struct pieces bytes;
	uint64_t vaddr; /* of the first byte */
	size_t table;	/* where the entries are */
};

/* @fd: the file of @elf, which stays open; -1: it is in memory, or in @elf
 * only. False: there is none. */
bool ehhdr_open(struct ehhdr *ret, Elf *elf, int fd);
void ehhdr_close(struct ehhdr *h);
/* Entry @i: code from *start_ret on is what the FDE at *fde_ret is for. Both
 * are addresses of the file's. False if it cannot be read. */
bool ehhdr_entry(struct ehhdr *h, size_t i, uint64_t *start_ret,
		 uint64_t *fde_ret);

#endif
