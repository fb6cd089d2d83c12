/* Why attaching fails, in a sentence a person can act on. */
#include <string.h>

#include "supervisor/tracee/internal.h"

void tracer_explain_attach(pid_t pid, int sys_errno, struct smco_err *err)
{
	smco_fail(err, SMCO_PERM, sys_errno, "cannot attach to process %d",
		  pid);
}
