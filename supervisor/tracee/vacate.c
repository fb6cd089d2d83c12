/* Waiting until all tasks have left a place that is to go. */
#include <errno.h>
#include <stdlib.h>

#include "supervisor/tracee/internal.h"

#define ROUNDS	     40
#define ROUND_NS     (2 * NSEC_PER_MSEC)
#define MAX_ROUND_NS (32 * NSEC_PER_MSEC)
#define BOUND_NS     (3 * NSEC_PER_SEC)

/* Where a task stood that computes, before a round. */
struct stand {
	pid_t tid;
	taddr_t pc, sp;
};

/* It may sleep there for ever. One that has its result is on its way out. */
static bool is_in_call(const struct user_regs_struct *regs)
{
	int64_t ret = arch.syscall_ret(regs);
	return arch.syscall_nr(regs) >= 0 &&
	       (arch.restart_pending(regs) || ret == -EINTR || ret == -ENOSYS);
}

static bool stand_of(struct task *t, struct stand *ret)
{
	struct user_regs_struct regs;
	if (t->in_group_stop || task_get_regs(t, &regs) || is_in_call(&regs))
		return false;
	*ret = (struct stand){task_tid(t), regs.rip, regs.rsp};
	return true;
}

static size_t stands(struct tproc *p, struct stand *ret)
{
	size_t nr = 0;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		nr += stand_of(t, &ret[nr]);
	return nr;
}

/* One of them has not made a step since. */
static bool anyone_starved(struct tproc *p, const struct stand *before,
			   size_t nr)
{
	struct stand now;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t)) {
		if (!stand_of(t, &now))
			continue;
		for (size_t i = 0; i < nr; i++)
			if (before[i].tid == now.tid &&
			    before[i].pc == now.pc && before[i].sp == now.sp)
				return true;
	}
	return false;
}

/* Nobody is anywhere any more, and what was there is gone with its memory: it
 * may not be readable for saying that nobody is in it. */
static bool has_ended(struct tproc *p)
{
	return !tproc_first_task(p) || tproc_memory_gone(p);
}

bool tproc_vacate(struct tproc *p, bool (*is_empty)(void *ctx), void *ctx)
{
	uint64_t until_ns = smco_now_ns() + BOUND_NS, round_ns = ROUND_NS;
	bool empty = has_ended(p) || is_empty(ctx);

	/* Who is held until it is told of is not let run. */
	if (!p->stop_depth)
		return empty;
	for (int i = 0; i < ROUNDS && !empty && smco_now_ns() < until_ns; i++) {
		struct stand *before =
			calloc(tproc_nr_tasks(p) + 1, sizeof(*before));
		size_t nr = before ? stands(p, before) : 0;
		bool starved = tproc_let_run(p, round_ns, NULL) < 0 ||
			       anyone_starved(p, before, nr);
		free(before);
		empty = has_ended(p) || is_empty(ctx);
		if (starved) {
			i--;
			if (round_ns < MAX_ROUND_NS)
				round_ns *= 2;
		}
	}
	return empty;
}
