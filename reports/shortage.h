/*
 * shortage.h - whether memory has run out in this process, ever. A document is
 * made of very many small allocations, some of them a library's, and a part
 * that could not be had may be left out where nobody can pass an error on. So
 * who allocates tells, and who ends a document asks: one that is not all there
 * must not look as if it were. Any thread may call these.
 */
#ifndef SMCO_SHORTAGE_H
#define SMCO_SHORTAGE_H

#include "reports/base.h"

void shortage_tell(void);
bool shortage_any(void);
/* SMCO_NOMEM and what it means for what was printed, if it has. */
int shortage_check(struct smco_err *err);
/* What jansson cannot have is told, too. Before it is first used. */
void shortage_watch_jansson(void);

#endif
