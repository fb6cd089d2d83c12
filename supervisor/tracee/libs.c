/* When the dynamic linker has mapped the program's libraries. */
#include "supervisor/tracee/internal.h"

void libs_start(struct tproc *p)
{
	(void)p;
}

bool libs_on_sigtrap(struct task *t)
{
	(void)t;
	return false;
}
