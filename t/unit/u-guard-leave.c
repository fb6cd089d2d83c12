/*
 * A thread that blocks SIGSEGV stands at the fault of a guard when its process
 * is left: the kernel has unblocked the signal and reset its handler for that,
 * and afterwards both are as the program had them.
 */
#include <signal.h>
#include <unistd.h>

#define PAGES 16
#include "t/unit/pages.h"
#include "t/unit/traced.h"

static void on_segv(int sig)
{
	_exit(sig);
}

static long act_block(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	sigset_t set;
	struct sigaction sa = {.sa_handler = on_segv};
	sigaction(SIGSEGV, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGSEGV);
	return sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Bit 0: blocked, bit 1: the handler is its own. */
static long act_look(long unused1, long unused2)
{
	(void)unused1, (void)unused2;
	sigset_t set;
	struct sigaction sa;
	sigaction(SIGSEGV, NULL, &sa);
	sigprocmask(SIG_BLOCK, NULL, &set);
	return sigismember(&set, SIGSEGV) | (sa.sa_handler == on_segv) << 1;
}

static void leave_at_fault(bool is_blocked)
{
	struct tracer *tr = NULL;
	struct access *a = NULL;
	struct smco_err err = {0};
	struct tproc *proc = NULL;

	start_with_pages();
	if (is_blocked)
		puppet_do(&pup, act_block, 0, 0);
	if (!tracer_create(&tr, NULL, &err))
		proc = traced_attach(tr, pup.pid, &err);
	if (!check_msg(proc != NULL, "attached %s", err.msg))
		return;
	int r = access_mprotect.open(proc, &a, &err);
	check_msg(r == 0, "opened %s", err.msg);
	struct page_range all = range_at(mem, PAGES);
	if (r == 0)
		check_int(access_mprotect.arm(a, &all, 1), 0);
	check_int(all.nr_reset, PAGES);
	tproc_resume_new(proc);
	puppet_begin(&pup, act_store, 3, 100);
	struct tevent ev;
	for (int i = 0; i < 10000; i++) {
		struct access_hit hit;
		uint64_t soon = smco_now_ns() + NSEC_PER_MSEC;
		if (tracer_next(tr, soon, &ev) < 1 || ev.kind == TEV_NONE)
			continue;
		if (ev.kind == TEV_FAULT)
			break;
		if (!access_mprotect.on_event(a, &ev, &hit) && ev.task)
			tracer_resume(tr, ev.task, 0);
	}
	check_int(ev.kind, TEV_FAULT);
	check_int(tproc_detach(proc, &err), 0);
	if (a)
		access_mprotect.forget(a);
	check_int(puppet_wait(&pup), 0);
	check_int(puppet_do(&pup, act_look, 0, 0), is_blocked ? 3 : 0);
	tracer_destroy(tr);
	puppet_end(&pup);
}

int main(void)
{
	leave_at_fault(true);
	leave_at_fault(false);
	return tap_done();
}
