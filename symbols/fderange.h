/*
 * fderange.h - which stretches of a file's code belong together, by its frame
 * information: functions, and parts of functions that lie elsewhere. There for
 * stripped files, too. The file is hostile input.
 */
#ifndef SYMBOLS_FDERANGE_H
#define SYMBOLS_FDERANGE_H

#include <libelf.h>

#include "reports/base.h"

struct fde_range {
	uint64_t start; /* in the file's own address space */
	uint64_t end;	/* exclusive; more than start */
};

/* *ret, by start, is the caller's to free; a file that has none gives none.
 * SMCO_NOMEM. */
int fde_ranges(Elf *elf, struct fde_range **ret, size_t *nr_ret,
	       struct smco_err *err);

#endif
