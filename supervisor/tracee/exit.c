/*
 * A process that is about to end, told before its memory goes. Only its first
 * thread is asked to stop for that: whoever ends the process ends it, too, and
 * as long as it stands the memory is there. All others would stop as well, each
 * of a thousand, so what it makes does not take that over from it.
 */
#include <sys/ptrace.h>

#include "supervisor/tracee/internal.h"

static void set_options(struct task *t, unsigned long more)
{
	unsigned long o = trace_options(t->tr, t->proc->launched) | more;
	ptrace(PTRACE_SETOPTIONS, t->tid, NULL, o);
}

void tproc_tell_end(struct tproc *p)
{
	struct task *t = task_find(p->tr, p->pid);
	if (!t || t->proc != p || t->state != TASK_STOPPED)
		return;
	p->tr->tells_ends = true;
	set_options(t, PTRACE_O_TRACEEXIT);
}

void exit_untold(struct task *t)
{
	if (t->tr->tells_ends)
		set_options(t, 0);
}

void exit_act(struct task *t)
{
	/* Killed before its first stop: nobody was told of it. */
	if (t->is_new || !t->announced) {
		task_restart(t);
		return;
	}
	event_push(t->tr, TEV_PROC_ENDING, t->proc, t);
	t->held = true;
}
