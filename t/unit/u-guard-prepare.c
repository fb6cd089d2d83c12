/*
 * What guards by page protection need beforehand, thousands of mutexes that
 * are made page by page, is there before a program stands: no program waits
 * for it. Told by the page faults of this thread, for time says nothing.
 */
#include <sys/resource.h>

#define PAGES 4
#include "supervisor/watched.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

/* Making all of them takes some four thousand. */
#define FEW 500

static long faults(void)
{
	struct rusage u;
	getrusage(RUSAGE_THREAD, &u);
	return u.ru_minflt;
}

int main(void)
{
	struct tracer *tr = NULL;
	struct access *a = NULL;
	struct smco_err err = {0};
	struct tproc *proc = NULL;

	start_with_pages();
	watched_prepare(MECHANISM_MPROTECT);
	if (!tracer_create(&tr, NULL, &err))
		proc = traced_attach(tr, pup.pid, &err);
	if (!check_msg(proc != NULL, "attached %s", err.msg))
		return tap_done();
	long before = faults();
	int r = access_mprotect.open(proc, &a, &err);
	long now = faults();
	check_msg(r == 0, "opened %s", err.msg);
	check_msg(now - before < FEW, "with %ld page faults", now - before);
	if (a)
		access_mprotect.close(a);
	check_int(tproc_detach(proc, &err), 0);
	tracer_destroy(tr);
	watched_unprepare();
	puppet_end(&pup);
	return tap_done();
}
