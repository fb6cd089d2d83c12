/*
 * Accessed bits without CAP_SYS_NICE: process_madvise is not permitted then,
 * and the reset is a call that runs in the tracee.
 */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/syscall.h>

#include "supervisor/probe/access.h"
#include "t/unit/puppet.h"
#include "t/unit/tap.h"

#define PAGE  4096UL
#define PAGES 1024

static char *mem;
static struct puppet p;
static struct tracer *tr;

static long act_store(long first, long stride)
{
	for (long i = first; i < PAGES; i += stride)
		*(volatile char *)(mem + i * 4096) = 1;
	return 0;
}

static long act_munmap(long addr, long len)
{
	return munmap((void *)addr, (size_t)len);
}

static bool drop_nice(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2];
	if (syscall(SYS_capget, &h, d))
		return false;
	d[0].effective &= ~(1u << CAP_SYS_NICE);
	return !syscall(SYS_capset, &h, d);
}

/* puppet_do with the event loop running meanwhile. */
static long traced_do(puppet_fn fn, long arg1, long arg2)
{
	struct pollfd fd = {.fd = p.answer, .events = POLLIN};
	struct tevent ev;
	puppet_begin(&p, fn, arg1, arg2);
	while (!poll(&fd, 1, 0))
		tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev);
	return puppet_wait(&p);
}

static struct tproc *attach(struct smco_err *err)
{
	struct tracer_options opts = {0};
	struct tevent ev;
	if (tracer_create(&tr, &opts, err) || tracer_attach(tr, p.pid, err))
		return NULL;
	uint64_t deadline = smco_now_ns() + 20 * NSEC_PER_SEC;
	while (tracer_next(tr, deadline, &ev) > 0 && ev.kind != TEV_NONE)
		if (ev.kind == TEV_PROC_NEW)
			return ev.proc;
	return NULL;
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
	traced_do(act_munmap, (long)r[3].start, PAGE);
	traced_do(act_munmap, (long)r[n - 1].start, PAGE);
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

	struct page_range between = {.start = r[0].end, .end = r[1].start};
	a->ops->collect(a, &between, 1);
	check_int(between.nr_touched, 4);

	/* Pages 10, 45, 80, ...: every seventh of the ranges from 2 on. */
	int wrong = 1;
	/* The kernel may clear a bit now and then, see u-bits.c. */
	for (int k = 0; k < 5 && wrong; k++) {
		traced_do(act_store, 10, 35);
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
	mem = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return 1;
	madvise(mem, PAGES * PAGE, MADV_NOHUGEPAGE);
	if (!drop_nice() || access_bits.probe(&err)) {
		printf("# %s\n", err.msg);
		tap_skip("accessed bits are not available here");
		return tap_done();
	}
	p = puppet_start();
	puppet_do(&p, act_store, 0, 1);
	struct tproc *proc = attach(&err);
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
	check_int(puppet_do(&p, act_store, 100, 5000), 0);
	puppet_end(&p);
	return tap_done();
}
