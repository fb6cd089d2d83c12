/*
 * What takes long and is the same for all programs is done before one stands:
 * the thousands of mutexes that guards by page protection need, made page by
 * page, and what page-scan costs on this machine, which a child helps to
 * measure. Told by the page faults of this thread and of children that have
 * ended, for time says nothing.
 */
#include <sys/resource.h>

#define PAGES 4
#include "supervisor/watched.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

/* Making all of the mutexes takes some four thousand, measuring page-scan some
 * hundreds. */
#define FEW 200

static long faults(int of)
{
	struct rusage u;
	getrusage(of, &u);
	return u.ru_minflt;
}

static void is_ready(struct tproc *proc, const struct access_ops *ops)
{
	struct smco_err err = {0};
	struct access *a = NULL;
	long before = faults(RUSAGE_THREAD);
	long children = faults(RUSAGE_CHILDREN);
	int r = ops->open(proc, &a, &err);
	long now = faults(RUSAGE_THREAD);
	check_msg(r == 0, "%s: opened %s", ops->name, err.msg);
	check_msg(now - before < FEW, "%s: with %ld page faults", ops->name,
		  now - before);
	check_msg(faults(RUSAGE_CHILDREN) == children, "%s: and no child",
		  ops->name);
	if (a)
		ops->close(a);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	struct tproc *proc = NULL;

	start_with_pages();
	watched_prepare(MECHANISM_MPROTECT);
	watched_prepare(MECHANISM_PAGESCAN);
	if (!tracer_create(&tr, NULL, &err))
		proc = traced_attach(tr, pup.pid, &err);
	if (!check_msg(proc != NULL, "attached %s", err.msg))
		return tap_done();
	is_ready(proc, &access_mprotect);
	is_ready(proc, &access_pagescan);
	check_int(tproc_detach(proc, &err), 0);
	tracer_destroy(tr);
	watched_unprepare();
	puppet_end(&pup);
	return tap_done();
}
