/*
 * gnuhash.h - does a module export a name? Asked of the hash section that the
 * dynamic linker uses (SHT_GNU_HASH), which takes a microsecond where reading
 * the symbols of a large program takes a tenth of a second. Internal to
 * symbols/.
 */
#ifndef SYMBOLS_GNUHASH_H
#define SYMBOLS_GNUHASH_H

#include <libelf.h>

#include "reports/base.h"

struct gnuhash {
	uint8_t *data; /* NULL: there is none */
	size_t len;
	uint8_t *defined; /* a bit for each of the symbols it is about */
	size_t nr_syms;
};

/* Copy out of @elf what is needed. */
void gnuhash_read(struct gnuhash *h, Elf *elf);
void gnuhash_deinit(struct gnuhash *h);

/*
 * False only if no exported symbol has that name. True is no promise: another
 * name may have the same hash, and without a (sound) section nothing is known.
 */
bool gnuhash_may_have(const struct gnuhash *h, const char *name);

#endif
