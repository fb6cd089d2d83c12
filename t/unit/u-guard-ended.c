/*
 * Whoever has killed the helper in the program, be it before its first answer:
 * it is not waited for, and the guards are opened without it.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGES 16
#include "supervisor/probe/guard.h"
#include "t/fixtures/forbid.h"
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

/* The first call that the helper makes, and nobody else. What is inherited is
 * no sandbox of the program's own. */
static const unsigned close_all[] = {SYS_close_range};

static struct access *attach(struct tracer *tr, struct tproc **proc_ret)
{
	struct access *a = NULL;
	struct smco_err err = {0};
	*proc_ret = traced_attach(tr, pup.pid, &err);
	if (*proc_ret && !access_mprotect.open(*proc_ret, &a, &err))
		return a;
	printf("Bail out! %s\n", err.msg);
	exit(1);
}

/* For three seconds, each time it is asked for something, it was 150 times and
 * more. */
static void check_waits(long since)
{
	long waits = nr_waits() - since;
	check_msg(waits < 75, "waited %ld times", waits);
}

static void killed_later(struct tracer *tr)
{
	struct tproc *proc;
	struct access *a = attach(tr, &proc);
	struct page_range all = range_at(mem, PAGES);
	check_int(access_mprotect.arm(a, &all, 1), 0);
	check_int(all.nr_reset, PAGES);
	kill_helper(a);
	long before = nr_waits();
	check_int(tproc_detach(proc, NULL), 0);
	access_mprotect.forget(a);
	check_waits(before);
	check_int(puppet_do(&pup, act_store, 0, 1), 0);
}

static void killed_at_once(struct tracer *tr)
{
	struct tproc *proc;
	struct access *a = attach(tr, &proc);
	struct page_range all = range_at(mem, PAGES);
	long before = nr_waits();
	check_int(access_mprotect.arm(a, &all, 1), SMCO_UNSUPPORTED);
	check_int(tproc_detach(proc, NULL), 0);
	access_mprotect.forget(a);
	check_waits(before);
	check_int(puppet_do(&pup, act_store, 0, 1), 0);
}

int main(void)
{
	struct tracer *tr = NULL;
	struct smco_err err = {0};
	if (tracer_create(&tr, NULL, &err)) {
		printf("Bail out! %s\n", err.msg);
		return 1;
	}
	start_with_pages();
	killed_later(tr);
	puppet_end(&pup);
	check_int(forbid(close_all, ARRAY_SIZE(close_all)), 0);
	start_with_pages();
	killed_at_once(tr);
	puppet_end(&pup);
	tracer_destroy(tr);
	return tap_done();
}
