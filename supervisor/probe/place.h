/*
 * place.h - is this the program's own memory, of which a guard may make what
 * it needs? Private anonymous mappings from end to end, no stack, nothing of
 * the kernel's.
 */
#ifndef SMCO_PLACE_H
#define SMCO_PLACE_H

#include "supervisor/tracee/tracee.h"

/*
 * Why [start, end) must not be guarded; NULL if it may as far as its mappings
 * go: then *any_prot_ret is what some of it permits (PROT_ bits), and
 * *all_prot_ret what all of it does.
 */
const char *place_check(const struct tmaps *maps, taddr_t start, taddr_t end,
			uint32_t *any_prot_ret, uint32_t *all_prot_ret);

#endif
