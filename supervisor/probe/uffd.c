#include "supervisor/probe/access.h"

static int uffd_open(struct tproc *p, struct access **ret, struct smco_err *err)
{
	(void)p;
	(void)ret;
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "userfaultfd guards are not written yet");
}

const struct access_ops access_uffd = {.name = "uffd", .open = uffd_open};
