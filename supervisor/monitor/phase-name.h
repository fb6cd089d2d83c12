/*
 * phase-name.h - names of phases, sdt:PROVIDER:NAME, and which probes they
 * mean.
 */
#ifndef SMCO_PHASE_NAME_H
#define SMCO_PHASE_NAME_H

#include "pmu/nearest.h"
#include "symbols/sdt.h"

struct phase_name {
	char provider[64], name[128];
};
/* False: it is not of that form. */
bool phase_name_split(const char *text, struct phase_name *ret);

enum mark_kind { MARK_NONE, MARK_POINT, MARK_BEGIN, MARK_END };
/* What @probe is to the phase called @n; MARK_NONE: nothing. */
enum mark_kind phase_name_matches(const struct phase_name *n,
				  const struct sdt_probe *probe);
/* How the phase that @probe belongs to could be asked for. */
void phase_name_offer(struct nearest *n, const struct sdt_probe *probe);

#endif
