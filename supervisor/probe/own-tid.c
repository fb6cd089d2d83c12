#include "supervisor/probe/own-tid.h"

#include "supervisor/probe/hook-plan.h"

/* Most threads have it: where several do not, none does. */
#define MOST_TRIES 16

static size_t read_tracee(void *ctx, taddr_t addr, void *buf, size_t len)
{
	return tmem_read_some(ctx, addr, buf, len);
}

uint32_t own_tid_offset(struct tproc *p)
{
	struct user_regs_struct regs;
	uint32_t off = 0;
	int tries = MOST_TRIES;
	for (struct task *t = tproc_first_task(p); t && !off && tries--;
	     t = task_next(t))
		if (!task_get_regs(t, &regs))
			off = hook_tid_offset(regs.fs_base,
					      (uint32_t)task_own_tid(t),
					      read_tracee, p);
	return off;
}

uint32_t own_tid_there(struct task *t, uint32_t offset)
{
	struct user_regs_struct regs;
	uint32_t tid;
	if (task_get_regs(t, &regs) ||
	    tmem_read(task_proc(t), regs.fs_base + offset, &tid, sizeof(tid)))
		return 0;
	return tid;
}
