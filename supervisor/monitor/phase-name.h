/*
 * phase-name.h - names of phases, and what they mean: sdt:PROVIDER:NAME probes,
 * anything else functions.
 */
#ifndef SMCO_PHASE_NAME_H
#define SMCO_PHASE_NAME_H

#include "pmu/nearest.h"
#include "symbols/sdt.h"

struct phase_name {
	const char *function; /* NULL: of probes */
	char provider[64], name[128];
};
/* False: it is of neither form. @text must stay. */
bool phase_name_split(const char *text, struct phase_name *ret);

enum mark_kind { MARK_NONE, MARK_POINT, MARK_BEGIN, MARK_END };
/* What @probe is to the phase called @n; MARK_NONE: nothing. */
enum mark_kind phase_name_matches(const struct phase_name *n,
				  const struct sdt_probe *probe);
/* How the phase that @probe belongs to could be asked for. */
void phase_name_offer(struct nearest *n, const struct sdt_probe *probe);

/*
 * Is the function whose symbol is @symbol meant by @n, as the file has it or as
 * people write it, with parameters or without? What a compiler has made of it
 * for certain callers is it, too; a part of it is not.
 */
bool phase_name_is_function(const struct phase_name *n, const char *symbol);
/* Where a function goes on elsewhere: gcc's and clang's name for that. */
bool phase_name_is_part(const char *symbol);
void phase_name_offer_function(struct nearest *n, const char *symbol);

#endif
