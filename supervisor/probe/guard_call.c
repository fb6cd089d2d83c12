/* System calls in flight: memory that must not become guarded meanwhile. */
#include "reports/procfs.h"
#include "supervisor/probe/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t guard_read(void *ctx, taddr_t addr, void *buf, size_t len)
{
	struct guard *g = ctx;
	return tmem_read_some(g->base.proc, addr, buf, len);
}

struct guard_call *guard_call_of(struct guard *g, struct task *t)
{
	pid_t tid = task_tid(t);
	for (size_t i = 0; i < g->nr_calls; i++)
		if (g->calls[i]->task == t && g->calls[i]->tid == tid)
			return g->calls[i];
	if (g->nr_calls == g->cap_calls) {
		size_t cap = g->cap_calls ? g->cap_calls * 2 : 16;
		struct guard_call **v =
			realloc(g->calls, cap * sizeof(struct guard_call *));
		if (!v)
			return NULL;
		g->calls = v;
		g->cap_calls = cap;
	}
	struct guard_call *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->task = t;
	c->tid = tid;
	g->calls[g->nr_calls++] = c;
	return c;
}

static void call_free(struct guard_call *c)
{
	sysranges_deinit(&c->ranges);
	free(c);
}

void guard_calls_free(struct guard *g)
{
	for (size_t i = 0; i < g->nr_calls; i++)
		call_free(g->calls[i]);
	free(g->calls);
	g->calls = NULL;
	g->nr_calls = g->cap_calls = 0;
}

static bool exists(struct guard *g, const struct guard_call *c)
{
	for (struct task *t = tproc_first_task(g->base.proc); t;
	     t = task_next(t))
		if (t == c->task && task_tid(t) == c->tid)
			return true;
	return false;
}

void guard_calls_prune(struct guard *g)
{
	for (size_t i = 0; i < g->nr_calls;) {
		if (exists(g, g->calls[i])) {
			i++;
			continue;
		}
		call_free(g->calls[i]);
		g->calls[i] = g->calls[--g->nr_calls];
	}
}

/* A thread that cannot be stopped now (waiting for a disk, or for the child
 * of its vfork): the kernel tells what it waits in. */
static bool blocked_call(struct guard *g, pid_t tid, long *nr, uint64_t args[6],
			 taddr_t *sp)
{
	char path[PROCFS_PATH], buf[256];
	procfs_path(path, sizeof(path), tproc_pid(g->base.proc),
		    "task/%d/syscall", (int)tid);
	if (smco_slurp(path, buf, sizeof(buf)) <= 0)
		return false;
	unsigned long long a[7];
	if (sscanf(buf, "%ld %llx %llx %llx %llx %llx %llx %llx", nr, &a[0],
		   &a[1], &a[2], &a[3], &a[4], &a[5], &a[6]) != 8)
		return false;
	for (int i = 0; i < 6; i++)
		args[i] = a[i];
	*sp = a[6];
	return true;
}

/* --- who blocks SIGSEGV --- */

void guard_call_mask(struct guard_call *c, struct task *t, long nr)
{
	uint64_t mask;
	if (c->mask == GUARD_MASK_UNKNOWN && task_get_sigmask(t, &mask) == 0)
		c->mask = mask >> (SIGSEGV - 1) & 1 ? GUARD_MASK_BLOCKED
						    : GUARD_MASK_OPEN;
	if (nr == SYS_rt_sigprocmask || nr == SYS_rt_sigreturn)
		c->mask = GUARD_MASK_UNKNOWN; /* until its end */
}

void guard_call_handler(struct guard *g, struct task *t)
{
	struct guard_call *c = guard_call_of(g, t);
	if (c && c->mask == GUARD_MASK_OPEN)
		c->mask = GUARD_MASK_UNKNOWN;
}

bool guard_call_blocks(struct guard *g, struct task *t, bool was_reset)
{
	const struct guard_call *c = guard_call_of(g, t);
	if (!c || !g->traced) /* what it has done since is not known */
		return false;
	if (c->mask != GUARD_MASK_UNKNOWN)
		return c->mask == GUARD_MASK_BLOCKED;
	for (struct task *o = tproc_first_task(g->base.proc); o && was_reset;
	     o = task_next(o)) {
		const struct guard_call *other = guard_call_of(g, o);
		if (o != t && (!other || other->mask != GUARD_MASK_OPEN))
			was_reset = false;
	}
	return was_reset;
}

void guard_call_look(struct guard *g, struct task *t)
{
	struct guard_call *c = guard_call_of(g, t);
	struct user_regs_struct r;
	uint64_t args[6];
	taddr_t sp;
	long nr;
	if (!c)
		return;
	c->mask = GUARD_MASK_UNKNOWN;
	guard_call_mask(c, t, -1);
	c->active = c->all = false;
	if (task_get_regs(t, &r) == 0) {
		nr = (long)r.orig_rax;
		if (!sysargs_in_flight(nr, r.rax))
			return;
		args[0] = r.rdi, args[1] = r.rsi, args[2] = r.rdx;
		args[3] = r.r10, args[4] = r.r8, args[5] = r.r9;
		sp = r.rsp;
	} else if (!blocked_call(g, task_tid(t), &nr, args, &sp)) {
		c->active = c->all = true;
		return;
	}
	c->active = true;
	c->all = sysargs_get(nr, args, sp, guard_read, g, &c->ranges) !=
		 SYSARGS_KNOWN;
}

bool guard_call_conflict(const struct guard *g, taddr_t start, taddr_t end)
{
	for (size_t i = 0; i < g->nr_calls; i++) {
		const struct guard_call *c = g->calls[i];
		if (!c->active)
			continue;
		if (c->all)
			return true;
		for (size_t k = 0; k < c->ranges.nr; k++)
			if (c->ranges.v[k].start < end &&
			    c->ranges.v[k].end > start)
				return true;
	}
	return false;
}
