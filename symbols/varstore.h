/*
 * varstore.h - variables kept in a file for the next time, see store.h.
 */
#ifndef SMCO_VARSTORE_H
#define SMCO_VARSTORE_H

#include "symbols/store.h"
#include "symbols/variable.h"

/*
 * The files whose bytes are all that variables_load and the code behind them
 * come from: the module's, and, if there is one with debug information, its
 * separate one. How many; 0: more than those are read (split debug
 * information), or one cannot be. The descriptors are the module's.
 */
size_t variables_files(struct sym_space *s, uint32_t module, int ret[2]);

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
