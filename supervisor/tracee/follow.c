/* The event loop runs on the CPU of the task it serves. */
#include "supervisor/tracee/internal.h"

void tracer_follow_cpu(struct tracer *tr, bool on)
{
	tr->follow.on = on;
	if (!on)
		follow_rest(tr);
}

void follow_stop(struct task *t)
{
	(void)t;
}

void follow_rest(struct tracer *tr)
{
	(void)tr;
}
