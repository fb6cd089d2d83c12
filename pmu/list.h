/*
 * list.h - every event that can be named here, and whether it can be counted.
 */
#ifndef SMCO_PMU_LIST_H
#define SMCO_PMU_LIST_H

#include "reports/base.h"

struct pmu_listed {
	const char *name;	    /* as pmu_event_parse takes it */
	const char *kind;	    /* "software", "tracepoint", "icl", ... */
	const char *desc;	    /* one line; "" if there is none */
	bool is_here;		    /* could be opened just now */
	const struct smco_err *why; /* why not, if not */
};

/*
 * Those whose names match the shell pattern @glob, without regard to case, with
 * the name of the PMU ("skl::") or without; NULL is all. A pattern without
 * "*?[" is one with a "*" on both sides; a "." is a ":", too. One of a PMU that
 * this machine does not have ("skl::*") lists that PMU's events; one that
 * nothing of this machine matches, those of all other CPUs. Where tracepoints
 * are not to be known, SYSTEM:NAME stands for them and says why, among all and
 * for a pattern with a ":" that nothing matches. Returns how many there were;
 * strings are valid during the call only.
 *
 * Tracepoints are opened one in each system, for to open one costs the whole
 * machine a few milliseconds, and permission is the same for all of a system.
 */
size_t pmu_list(const char *glob,
		void (*each)(void *ctx, const struct pmu_listed *l), void *ctx);

#endif
