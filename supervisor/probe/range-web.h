/*
 * range-web.h - whose values a register holds that several share (VAR_AMONG).
 * Pure.
 *
 * gcc, where it does not optimise, gives a variable that is to be in a register
 * one of those that calls leave alone, for all of its life; where the variable
 * is not needed others are there: variables, and what is computed on the way to
 * something else. A web is what belongs together: writes, and the reads that
 * their values come to. It is one's alone. That it is the variable's, and
 * nothing that a statement keeps for itself, is believed
 * - where no call is in it, though a register that calls do not keep was free,
 *   and it leads on to another row of the line table, or to several reads: only
 *   variables are in such a register without need, and what one instruction was
 *   given for a moment;
 * - where it goes round a loop and is used in it;
 * - where it is written from a parameter's register before anything else, by a
 *   parameter;
 * - where something comes in between whose line is before that of a read: what
 *   a statement keeps is needed by an operator, and what is computed meanwhile
 *   stands to the right of that.
 */
#ifndef SMCO_RANGE_WEB_H
#define SMCO_RANGE_WEB_H

#include "supervisor/probe/range-edge.h"

/*
 * Of each instruction of @code, whether what it writes to the register of @p, a
 * VAR_AMONG of variable @var, is a value of that: *ret, by instruction, the
 * caller's to free. @all are the places in the function, @nr of them. NULL in
 * *ret: none is. False: no memory.
 */
bool range_web_find(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *all, size_t nr,
		    uint32_t var, const struct var_place *p, bool **ret);

#endif
