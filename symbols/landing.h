/*
 * landing.h - landing pads: where the unwinder enters functions in the middle
 * when an exception passes. From .gcc_except_table, which C++, Rust and others
 * share.
 */
#ifndef SYMBOLS_LANDING_H
#define SYMBOLS_LANDING_H

#include <libelf.h>

#include "reports/base.h"

/*
 * Tells @fn the file address of every landing pad of @elf, some of them more
 * than once. Tables that are malformed are left where they stop making sense.
 */
void landing_pads(Elf *elf, void (*fn)(void *ctx, uint64_t addr), void *ctx);

#endif
