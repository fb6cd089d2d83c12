/*
 * varstore.h - variables kept in a file for the next time, see store.h.
 */
#ifndef SMCO_VARSTORE_H
#define SMCO_VARSTORE_H

#include "symbols/store.h"
#include "symbols/variable.h"

/*
 * A number that is the same only while all bytes are from which variables_load
 * and the code behind them come: of the module's file, and of its separate
 * debug file. False: more files than those are read (split debug information),
 * or one cannot be.
 */
bool variables_sign(struct sym_space *s, uint32_t module, uint64_t *ret);

void variables_put(struct store_out *o, const struct variables *v);
/*
 * What was put, in place: NULL if it is malformed (all indices, kinds and
 * lengths are looked at) or memory is out. The bytes must stay until it is
 * destroyed, or become its own.
 */
struct variables *variables_take(struct store_in *in);
/* From now on @bytes, from mmap, @len of them, go with @v. */
void variables_own(struct variables *v, void *bytes, size_t len);

#endif
