/*
 * kallsyms.h - names of the running kernel's functions, of /proc/kallsyms. That
 * has addresses only for those who may see them (kernel.kptr_restrict).
 */
#ifndef SMCO_KALLSYMS_H
#define SMCO_KALLSYMS_H

#include "reports/base.h"

struct kallsyms;

/*
 * Read @path; NULL is /proc/kallsyms. Tens of milliseconds. SMCO_PERM: all
 * addresses are hidden. SMCO_SYS, SMCO_NOMEM; SMCO_FORMAT: it holds no symbol.
 */
int kallsyms_load(const char *path, struct kallsyms **ret,
		  struct smco_err *err);
void kallsyms_destroy(struct kallsyms *k); /* NULL is fine */

struct kallsyms_name {
	const char *function; /* "" if unknown; strings are the table's */
	const char *module;   /* "[kernel]", or of a loadable one "[ext4]" */
	uint64_t offset;      /* of the address, in the function */
};
/* @addr below the first symbol has no name. */
struct kallsyms_name kallsyms_find(const struct kallsyms *k, taddr_t addr);

#endif
