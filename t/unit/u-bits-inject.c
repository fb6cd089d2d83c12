/*
 * Accessed bits without CAP_SYS_NICE: process_madvise is not permitted then,
 * and the reset is a call that runs in the tracee.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#define PAGES 1024
#include "t/unit/pages.h"
#include "t/unit/traced.h"

static struct tracer *tr;

static bool drop_nice(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	if (syscall(SYS_capget, &h, d))
		return false;
	d[0].effective &= ~(1u << CAP_SYS_NICE);
	return !syscall(SYS_capset, &h, d);
}

/* Every fifth page is a range; two of them are gone. */
static void test_reset(struct access *a)
{
	struct page_range r[PAGES / 5] = {0};
	const size_t n = ARRAY_SIZE(r);
	for (size_t i = 0; i < n; i++) {
		r[i].start = (uintptr_t)mem + i * 5 * PAGE;
		r[i].end = r[i].start + PAGE;
	}
	traced_do(tr, &pup, act_munmap, (long)r[3].start, PAGE);
	traced_do(tr, &pup, act_munmap, (long)r[n - 1].start, PAGE);
	size_t touched = 1;
	for (int k = 0; k < 200 && touched; k++) {
		check_int(a->ops->arm(a, r, n), 0);
		if (a->ops->collect(a, r, n))
			break;
		touched = 0;
		for (size_t i = 0; i < n; i++)
			touched += r[i].nr_touched;
		if (touched)
			usleep(20000);
	}
	check_int(touched, 0);

	/* What lies between them is not reset. The kernel may clear a bit now
	 * and then, see u-bits.c. */
	struct page_range between = {.start = r[0].end, .end = r[1].start};
	for (int k = 0; k < 5 && between.nr_touched != 4; k++) {
		for (long page = 1; page < 5; page++)
			traced_do(tr, &pup, act_store, page, PAGES);
		check_int(a->ops->arm(a, r, n), 0);
		a->ops->collect(a, &between, 1);
	}
	check_int(between.nr_touched, 4);

	/* Pages 10, 45, 80, ...: every seventh of the ranges from 2 on. */
	int wrong = 1;
	for (int k = 0; k < 5 && wrong; k++) {
		traced_do(tr, &pup, act_store, 10, 35);
		check_int(a->ops->collect(a, r, n), 0);
		wrong = 0;
		for (size_t i = 0; i < n; i++)
			wrong += r[i].nr_touched != (i % 7 == 2);
	}
	check_int(wrong, 0);
}

int main(void)
{
	struct smco_err err = {0};
	struct access *a = NULL;
	if (!drop_nice() || access_bits.probe(&err)) {
		printf("# %s\n", err.msg);
		tap_skip("accessed bits are not available here");
		return tap_done();
	}
	start_with_pages();
	struct tproc *proc = NULL;
	if (!tracer_create(&tr, NULL, &err))
		proc = traced_attach(tr, pup.pid, &err);
	if (!check_msg(proc != NULL, "attached %s", err.msg))
		return tap_done();
	int r = access_bits.open(proc, &a, &err);
	tproc_resume_new(proc);
	if (check_msg(r == 0, "opened %s", err.msg)) {
		uint64_t stops = tracer_nr_stops(tr);
		test_reset(a);
		check_msg(tracer_nr_stops(tr) > stops,
			  "the tracee was stopped for it: not by "
			  "process_madvise");
		a->ops->close(a);
	}
	tracer_destroy(tr);
	check_int(puppet_do(&pup, act_store, 100, 5000), 0);
	puppet_end(&pup);
	return tap_done();
}
