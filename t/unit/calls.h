/* calls.h - how many reading calls this process makes. */
#ifndef T_CALLS_H
#define T_CALLS_H

#include <stdio.h>
#include <string.h>

#include "reports/base.h"
#include "t/unit/tap.h"

/* So far, as the kernel counts them; 0 if it does not. Asking takes some, too:
 * as many each time. */
static inline unsigned long reading_calls(void)
{
	char text[512];
	unsigned long nr = 0;
	const char *at = smco_slurp("/proc/self/io", text, sizeof(text)) > 0
				 ? strstr(text, "syscr:")
				 : NULL;
	if (!at || sscanf(at, "syscr: %lu", &nr) != 1)
		return 0;
	return nr;
}

/* Since reading_calls() gave @then, without what asking takes. */
static inline unsigned long reading_calls_since(unsigned long then)
{
	unsigned long now = reading_calls(), later = reading_calls();
	return now - then - (later - now);
}

#endif
