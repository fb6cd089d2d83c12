/* calls.h - how many reading and writing calls this process makes. */
#ifndef T_CALLS_H
#define T_CALLS_H

#include <stdio.h>
#include <string.h>

#include "reports/base.h"
#include "t/unit/tap.h"

/* Those that the kernel has counted as @name so far; 0 if it does not count. */
static inline unsigned long calls_so_far(const char *name)
{
	char text[512];
	unsigned long nr = 0;
	const char *at = smco_slurp("/proc/self/io", text, sizeof(text)) > 0
				 ? strstr(text, name)
				 : NULL;
	if (!at || sscanf(at + strlen(name), ": %lu", &nr) != 1)
		return 0;
	return nr;
}

/* Asking takes some, too: as many each time. */
static inline unsigned long reading_calls(void)
{
	return calls_so_far("syscr");
}

/* Since reading_calls() gave @then, without what asking takes. */
static inline unsigned long reading_calls_since(unsigned long then)
{
	unsigned long now = reading_calls(), later = reading_calls();
	return now - then - (later - now);
}

static inline unsigned long writing_calls(void)
{
	return calls_so_far("syscw");
}

#endif
