/*
 * range-read.h - variables that are said to be in memory which no sensor may
 * read, behind a pointer: what the program itself reads there is their value.
 * Pure.
 */
#ifndef SMCO_RANGE_READ_H
#define SMCO_RANGE_READ_H

#include "supervisor/probe/range-site.h"

/*
 * To @out sites of the variable @s->var in @s->place: where the program has
 * just loaded it from there into a register, or, where that place begins, did
 * so shortly before. None where it is in no such memory, or where that is is
 * not understood. *@failed is set when there is no memory for them.
 */
void range_read_sites(const struct range_code *code, const struct variables *v,
		      const struct range_site *s, struct range_sites *out,
		      bool *failed);
/* The same of a place without an instruction (VAR_POINT), where the program
 * loads it shortly behind that: its site, in *s. */
bool range_read_point(const struct range_code *code, const struct variables *v,
		      struct range_site *s);

#endif
