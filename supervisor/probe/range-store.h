/*
 * range-store.h - a plan kept in a file for the next time, see store.h.
 */
#ifndef SMCO_RANGE_STORE_H
#define SMCO_RANGE_STORE_H

#include "supervisor/probe/range.h"
#include "symbols/store.h"

void range_plan_put(struct store_out *o, const struct range_plan *plan);
/*
 * What was put, for the same variables and the same bytes of the module's file;
 * in place: the bytes must stay until the plan is destroyed. SMCO_FORMAT: it is
 * malformed; what cannot be told without decoding a function is looked at when
 * it is decoded. SMCO_NOTFOUND, SMCO_NOMEM as for range_plan_create.
 */
int range_plan_take(struct range_plan **ret, struct store_in *in,
		    struct sym_space *s, uint32_t module,
		    const struct variables *v, struct smco_err *err);

#endif
