/*
 * Guards are seen by another process that reads the memory with
 * process_vm_readv: where both are watched the guards go before it reads, and
 * that process is not guarded any more. (By calls of its own: where the
 * reader's code imports it, none are made, t3000.)
 */
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGES 16
#include "supervisor/probe/guard.h"
#include "t/unit/pages.h"
#include "t/unit/traced.h"

static struct tracer *tr;

struct side {
	struct puppet pup;
	struct tproc *proc;
	struct access *a;
};
static struct side reader, read_from;

static long act_read_other(long pid, long unused)
{
	static char own[PAGES * PAGE];
	struct iovec l = {own, sizeof(own)}, r = {mem, sizeof(own)};
	(void)unused;
	return syscall(SYS_process_vm_readv, pid, &l, 1, &r, 1, 0);
}

static long act_write_other(long pid, long unused)
{
	static char own[PAGES * PAGE];
	struct iovec l = {own, sizeof(own)}, r = {mem, sizeof(own)};
	(void)unused;
	return syscall(SYS_process_vm_writev, pid, &l, 1, &r, 1, 0);
}

static void pump(void)
{
	struct tevent ev;
	struct access_hit hit;
	if (tracer_next(tr, smco_now_ns() + NSEC_PER_MSEC, &ev) < 1 || !ev.task)
		return;
	struct access *a = ev.proc == reader.proc ? reader.a : read_from.a;
	bool ours = access_mprotect.on_event(a, &ev, &hit);
	tracer_resume(tr, ev.task, ev.kind == TEV_FAULT && !ours ? SIGSEGV : 0);
}

static void start(struct side *s)
{
	struct smco_err err = {0};
	s->pup = puppet_start();
	puppet_do(&s->pup, act_store, 0, 1);
	s->proc = traced_attach(tr, s->pup.pid, &err);
	if (!s->proc || access_mprotect.open(s->proc, &s->a, &err))
		exit(2);
	tproc_resume_new(s->proc);
}

/* Pages that are guarded then. */
static unsigned arm(struct side *s)
{
	struct page_range all = range_at(mem, PAGES);
	while (access_mprotect.arm(s->a, &all, 1) == SMCO_BUSY)
		pump();
	return all.nr_reset == UINT32_MAX ? 0 : all.nr_reset;
}

static long run(struct side *s, puppet_fn fn, long pid)
{
	struct pollfd fd = {.fd = s->pup.answer, .events = POLLIN};
	puppet_begin(&s->pup, fn, pid, 0);
	while (poll(&fd, 1, 0) <= 0)
		pump();
	return puppet_wait(&s->pup);
}

static void stop(struct side *s)
{
	struct smco_err err = {0};
	access_mprotect.close(s->a);
	check_int(tproc_detach(s->proc, &err), 0);
	puppet_end(&s->pup);
}

/* As though its code did not import it, which ours does. */
static void forget_imports(struct side *s)
{
	struct guard *g = (struct guard *)s->a;
	check(g->refusal[0] && g->looks);
	g->refusal[0] = 0;
	g->looks = false;
	g->look_again_ns = UINT64_MAX;
}

static void look(puppet_fn fn)
{
	start(&reader);
	start(&read_from);
	forget_imports(&reader);
	forget_imports(&read_from);
	check_int(arm(&reader), PAGES);
	check_int(arm(&read_from), PAGES);
	/* Its own memory is nobody else's. */
	check_int(run(&reader, act_read_other, reader.pup.pid), PAGES * PAGE);
	check(!access_mprotect.refusal(reader.a));
	check_int(run(&reader, fn, read_from.pup.pid), PAGES * PAGE);
	check(!access_mprotect.refusal(reader.a));
	check(access_mprotect.refusal(read_from.a) != NULL);
	check_int(arm(&read_from), 0);
	stop(&reader);
	stop(&read_from);
}

int main(void)
{
	struct smco_err err = {0};
	mem = map_anon(PAGES * PAGE, MAP_PRIVATE);
	check_int(tracer_create(&tr, NULL, &err), 0);
	look(act_read_other);
	look(act_write_other);
	tracer_destroy(tr);
	return tap_done();
}
