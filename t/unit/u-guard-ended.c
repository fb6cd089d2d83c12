/*
 * Whoever has killed the helper in the program: it is not waited for, and the
 * guards are opened without it.
 */
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES 16
#include "supervisor/probe/guard.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

/* How often we have waited for somebody. */
static long nr_waits(void)
{
	struct rusage u;
	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nvcsw;
}

static void kill_helper(struct access *a)
{
	pid_t helper = warden_table(((struct guard *)a)->w)->pid;
	check_int(kill(helper, SIGKILL), 0);
	for (char s = 0; s != 'Z' && (s = puppet_state(helper));)
		usleep(1000);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct access *a = NULL;
	struct smco_err err = {0};
	struct tproc *proc = NULL;
	start_with_pages();
	if (!tracer_create(&tr, NULL, &err))
		proc = traced_attach(tr, pup.pid, &err);
	if (!proc || access_mprotect.open(proc, &a, &err)) {
		printf("Bail out! %s\n", err.msg);
		return 1;
	}
	struct page_range all = range_at(mem, PAGES);
	check_int(access_mprotect.arm(a, &all, 1), 0);
	check_int(all.nr_reset, PAGES);
	kill_helper(a);
	long before = nr_waits();
	check_int(tproc_detach(proc, &err), 0);
	access_mprotect.forget(a);
	/* For three seconds, each time it is asked for something, it was 150
	 * times and more. */
	long waits = nr_waits() - before;
	check_msg(waits < 75, "waited %ld times", waits);
	check_int(puppet_do(&pup, act_store, 0, 1), 0);
	tracer_destroy(tr);
	puppet_end(&pup);
	return tap_done();
}
