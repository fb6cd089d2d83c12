/*
 * Why no helper of the page guards was made: for good, or only this time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/warden.h"
#include "t/unit/tap.h"

static void check_result(int32_t program_pid, int32_t spawn_error, int want,
			 const char *says)
{
	struct smco_err err = {0};
	struct warden_shared *s = calloc(1, sizeof(*s));
	if (!check(s != NULL))
		return;
	s->program_pid = program_pid;
	s->spawn_error = spawn_error;
	check_int(warden_spawn_result(s, &err), want);
	check_int(err.sys_errno,
		  want == SMCO_UNSUPPORTED && spawn_error > WARDEN_ADOPTS
			  ? -spawn_error
			  : 0);
	check_msg(!!strstr(err.msg, says) == (want != 0), "\"%s\"", err.msg);
	free(s);
}

int main(void)
{
	check_result(4711, 0, 0, "-");
	/* Our code says first who it is. What else is there is older. */
	check_result(0, 0, SMCO_BUSY, "has not run our code");
	check_result(0, -EPERM, SMCO_BUSY, "has not run our code");
	check_result(0, WARDEN_ADOPTS, SMCO_BUSY, "has not run our code");
	check_result(4711, WARDEN_ADOPTS, SMCO_UNSUPPORTED, "adopts orphans");
	check_result(1, WARDEN_ADOPTS, SMCO_UNSUPPORTED, "adopts orphans");
	check_result(4711, -EAGAIN, SMCO_UNSUPPORTED, "cannot create");
	return tap_done();
}
