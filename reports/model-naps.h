/*
 * model-naps.h - the naps of the traces while they are loaded: the last record
 * of each, those selected, summed. Only for model-load.c.
 */
#ifndef SMCO_MODEL_NAPS_H
#define SMCO_MODEL_NAPS_H

#include "reports/model.h"

/* Before the first nap, s->select is set. */
void model_naps_begin(struct summary *s);
/* A record of a nap; takes the place of an earlier one of the same. SMCO_NOMEM.
 */
int model_naps_take(struct summary *s, const struct model_nap *nap);
/* Once, after the last one: select and add up; kept in s->naps unless only sums
 * are wanted. SMCO_NOMEM; SMCO_SYS: a temporary file cannot be read. */
int model_naps_finish(struct summary *s);
/* Also after a failure of the above. */
void model_naps_free(struct summary *s);

#endif
