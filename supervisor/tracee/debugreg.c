/*
 * Debug registers by ptrace. What a process wants is kept with it, what a
 * thread has with that; a thread's become the process's whenever it is about to
 * go on, so that nothing depends on who could stop when. They are out of a
 * thread before it is detached, which is done in one place only. The kernel
 * does not hand them on to threads or copies, and clears them at exec.
 */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>

#include "supervisor/tracee/debugreg.h"
#include "supervisor/tracee/internal.h"

#define TRAP_BIT (1ULL << (SIGTRAP - 1))

/* What register @i of @t is to watch; 0: nothing. */
static uint32_t wanted(const struct task *t, unsigned i)
{
	const struct tproc *p = t->proc;
	uint32_t id = p && !p->execed ? p->watch[i].id : 0;
	return id == t->watch_over[i] ? 0 : id;
}

static bool is_behind(const struct task *t)
{
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		if (t->watch[i] != wanted(t, i))
			return true;
	return false;
}

static int poke(const struct task *t, size_t at, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, t->tid, at, value) < 0 ? errno : 0;
}

void debugreg_forget(struct task *t)
{
	memset(t->watch, 0, sizeof(t->watch));
	after_drop(t->after);
	t->after = 0;
}

static int clear(struct task *t)
{
	int rc = poke(t, arch.watch_control_at, 0);
	debugreg_forget(t);
	return rc;
}

/* Those that are wanted; or none, and errno. */
static int set(struct task *t)
{
	uint64_t control = 0, mask;
	/* An address is compared with the length that is there, so none is. */
	int rc = clear(t);
	for (unsigned i = 0; i < TWATCH_MOST && !rc; i++) {
		if (!wanted(t, i))
			continue;
		const struct twatch *w = &t->proc->watch[i].what;
		rc = poke(t, arch.watch_at(i), w->addr);
		control |= arch.watch_control(i, w->bytes);
	}
	if (rc || !control)
		return rc;
	t->blocks_trap = !task_get_sigmask(t, &mask) && mask & TRAP_BIT;
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		t->watch[i] = wanted(t, i);
	t->after = after_add(t->tid);
	rc = poke(t, arch.watch_control_at, control);
	if (rc)
		clear(t);
	return rc;
}

void debugreg_sync(struct task *t)
{
	int rc = is_behind(t) ? set(t) : 0;
	if (!rc || rc == ESRCH || !t->proc)
		return;
	/* What one thread writes unseen is not watched. */
	smco_debug("ptrace", "debug registers of %d: %s", t->tid, strerror(rc));
	memset(t->proc->watch, 0, sizeof(t->proc->watch));
}

void debugreg_leave(struct task *t)
{
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		if (t->watch[i]) {
			clear(t);
			return;
		}
}

bool debugreg_any(const struct tproc *p)
{
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		if (p->watch[i].id)
			return true;
	return false;
}

bool debugreg_hit(struct task *t)
{
	uint64_t mask;
	bool any = false;
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		any |= t->watch[i] != 0;
	if (!any || !t->proc)
		return false;
	errno = 0;
	long status =
		ptrace(PTRACE_PEEKUSER, t->tid, arch.watch_status_at, NULL);
	unsigned hits = errno ? 0 : arch.watch_hits((uint64_t)status);
	/* To have it delivered the kernel has unblocked it. */
	if (t->blocks_trap && !task_get_sigmask(t, &mask))
		task_set_sigmask(t, mask | TRAP_BIT);
	for (unsigned i = 0; i < TWATCH_MOST; i++) {
		/* What the machine has lost may have been any of them. */
		if (!t->watch[i] || (hits && !(hits & 1U << i)) ||
		    t->watch[i] != wanted(t, i))
			continue;
		const struct twatch w = t->proc->watch[i].what;
		w.hit(t, t->stop_ns, w.arg);
	}
	return true;
}

int tproc_may_watch(struct tproc *p, struct smco_err *err)
{
	static const char *const fields[] = {"SigCgt", "SigIgn"};
	uint64_t set;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (proc_status_u64(tproc_live_tid(p), fields[i], 16, &set) &&
		    set & TRAP_BIT)
			return smco_fail(err, SMCO_UNSUPPORTED, 0,
					 "process %d handles or ignores "
					 "SIGTRAP, which it would lose",
					 (int)p->pid);
	return 0;
}

static int refuse(const struct task *t, int sys_errno, struct smco_err *err)
{
	if (sys_errno == ENOSPC || sys_errno == EBUSY)
		return smco_fail(err, SMCO_BUSY, 0,
				 "debug registers of thread %d are in use "
				 "(perf, a debugger)",
				 (int)t->tid);
	return smco_fail(err, SMCO_SYS, sys_errno,
			 "debug registers of thread %d", (int)t->tid);
}

/* In those that stand; 0 or an error. */
static int set_all(struct tproc *p, struct smco_err *err)
{
	for (struct task *t = p->tasks; t; t = t->next) {
		int rc = t->state == TASK_STOPPED && is_behind(t) ? set(t) : 0;
		if (rc && rc != ESRCH)
			return refuse(t, rc, err);
	}
	return 0;
}

int tproc_watch(struct tproc *p, const struct twatch *w, uint32_t *id_ret,
		struct smco_err *err)
{
	unsigned i = 0;
	while (i < TWATCH_MOST && p->watch[i].id)
		i++;
	if (i == TWATCH_MOST)
		return smco_fail(err, SMCO_BUSY, 0,
				 "all debug registers of process %d are in use",
				 (int)p->pid);
	if (p->leaving || p->execed || !p->tasks)
		return smco_fail(err, SMCO_GONE, 0, "process %d has ended",
				 (int)p->pid);
	if (tproc_may_watch(p, err))
		return SMCO_UNSUPPORTED;
	if (tproc_stop_briefly(p, err))
		return SMCO_SYS;
	p->watch[i].what = *w;
	p->watch[i].id = ++p->tr->last_watch;
	int rc = set_all(p, err);
	if (rc) {
		p->watch[i].id = 0;
		set_all(p, NULL);
	}
	tproc_cont(p);
	*id_ret = p->watch[i].id;
	return rc;
}

bool tproc_is_watched(const struct tproc *p, uint32_t id)
{
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		if (id && p->watch[i].id == id)
			return true;
	return false;
}

void tproc_unwatch(struct tproc *p, uint32_t id)
{
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		if (id && p->watch[i].id == id)
			p->watch[i].id = 0;
}

void task_unwatch(struct task *t, uint32_t id)
{
	for (unsigned i = 0; i < TWATCH_MOST; i++)
		if (t->proc && t->proc->watch[i].id == id)
			t->watch_over[i] = id;
}
