/* mark-function.h - a file's code as marks need it; mark-*.c only. */
#ifndef SMCO_MARK_FUNCTION_H
#define SMCO_MARK_FUNCTION_H

#include "supervisor/probe/mark-plan.h"
#include "supervisor/probe/range-text.h"

/* Decode the file, unless that is done. SMCO_NOMEM, SMCO_FORMAT. */
int mark_code_load(struct mark_code *mc, struct smco_err *err);
/* Once loaded. */
const struct range_image *mark_code_image(const struct mark_code *mc);
/* The stretch of code that @addr is in; where nothing says, @size bytes from
 * there on. False: not known. Once loaded. */
bool mark_code_part(const struct mark_code *mc, uint64_t addr, uint64_t size,
		    struct range_chunk *ret);
/* The nop at @addr is no padding, nor what stands behind it a landing pad, for
 * nothing falls into one. It is loaded. */
void mark_code_is_code(struct mark_code *mc, uint64_t addr);
/* @n bytes of the file's code; not loaded is fine. False: it has them not. */
bool mark_code_bytes(const struct mark_code *mc, uint64_t addr, uint8_t *ret,
		     size_t n);

void mark_plan_refuse(struct mark_plan *plan, uint64_t at, const char *why);

#endif
