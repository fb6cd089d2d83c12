/*
 * output.h - where the trace goes: the name that -o gives, and whether it
 * could be written, found out before the command is started.
 */
#ifndef SMCO_OUTPUT_H
#define SMCO_OUTPUT_H

#include <sys/types.h>

#include "reports/base.h"

/*
 * @pattern with %p replaced by @pid, %n by the last component of @name and
 * %% by %. The caller frees *ret. SMCO_FORMAT for any other %, SMCO_NOMEM.
 */
int output_expand(const char *pattern, pid_t pid, const char *name, char **ret,
		  struct smco_err *err);

/*
 * Could what @pattern and @name give be created, and an existing file of that
 * name be kept as PATH.old? Tries it by making and removing a file beside it.
 * Refuses what is there and not a regular file (the .old rule must never rename
 * a device). No process exists yet: any number stands for %p. SMCO_SYS,
 * message with the reason (never SMCO_PERM, which is what a command that
 * cannot be executed has); SMCO_FORMAT.
 */
int output_check(const char *pattern, const char *name, struct smco_err *err);

#endif
