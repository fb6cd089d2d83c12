/*
 * newest.h - which trace a user means who names none.
 */
#ifndef SMCO_NEWEST_H
#define SMCO_NEWEST_H

#include "reports/base.h"

/* Name (without @dir if that is ".") of the most recently written *.trace
 * file in @dir. SMCO_NOTFOUND: there is none; SMCO_SYS. */
int newest_trace(const char *dir, char *ret, size_t size, struct smco_err *err);

#endif
