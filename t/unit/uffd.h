/* uffd.h - a puppet that is attached to, with userfaultfd for its guards. */
#ifndef UFFD_TEST_H
#define UFFD_TEST_H

#include <stdlib.h>

#include "supervisor/probe/access.h"
#include "t/unit/tap.h"
#include "t/unit/traced.h"

/* It still stands: tproc_resume_new(). Ends the test where there is no
 * userfaultfd, or it cannot be attached to. */
static inline struct tproc *uffd_attach(const struct puppet *pup,
					struct tracer **tr, struct access **a)
{
	struct smco_err err = {0};
	struct tproc *p = NULL;
	if (!tracer_create(tr, NULL, &err))
		p = traced_attach(*tr, pup->pid, &err);
	if (!p) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
	if (access_uffd.open(p, a, &err)) {
		printf("1..0 # SKIP %s\n", err.msg);
		exit(0);
	}
	return p;
}

#endif
