/*
 * cfiexpr.h - DWARF expressions as call frame information uses them: a small
 * stack machine over registers and memory. Internal to symbols/.
 */
#ifndef SYMBOLS_CFIEXPR_H
#define SYMBOLS_CFIEXPR_H

#include "symbols/cursor.h"

/* Read a word of the tracee; false if that is not possible. */
typedef bool (*cfiexpr_read_fn)(void *ctx, uint64_t addr, uint64_t *ret);

/*
 * Evaluate @expr. @regs: 17 registers by DWARF number. @push: value on the
 * stack to begin with (the CFA), NULL for none. False if the expression is
 * malformed, too long, or uses what does not occur in frame information.
 */
bool cfiexpr_eval(struct cursor expr, const uint64_t *regs,
		  const uint64_t *push, cfiexpr_read_fn read, void *ctx,
		  uint64_t *ret);

#endif
