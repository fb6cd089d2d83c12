/*
 * sdt.h - SystemTap probes of a file: the notes of its section .note.stapsdt.
 * The file is hostile input: what makes no sense is left out.
 */
#ifndef SMCO_SDT_H
#define SMCO_SDT_H

#include <libelf.h>

#include "reports/base.h"

struct sdt_probe {
	const char *provider, *name; /* the list's */
	uint64_t addr;	    /* of the nop, in the file's own address space */
	uint64_t semaphore; /* 16 bits, not 0 while somebody listens; 0 = none
			     */
};

struct sdt_list {
	struct sdt_probe *probe;
	size_t nr;
	char *text; /* private: the names */
};

/* None is no error. SMCO_NOMEM. The list does not need @elf any more. */
int sdt_read(Elf *elf, struct sdt_list *ret, struct smco_err *err);
void sdt_deinit(struct sdt_list *l);

#endif
