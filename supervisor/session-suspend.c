/* Job control: a shell waits for us, its job is the command as well. */
#include <signal.h>

#include "supervisor/session-private.h"

/* The command may do something first, as editors do, or go on. */
#define SUSPEND_WAIT_NS (5 * NSEC_PER_SEC)
#define SUSPEND_LOOK_NS NSEC_PER_MSEC

void session_suspend(struct session *s)
{
	s->is_suspend_asked = 1;
	tracer_wake(s->tracer);
}

uint64_t session_suspend_due_ns(const struct session *s)
{
	return s->is_suspend_asked ? smco_now_ns() + SUSPEND_LOOK_NS
				   : UINT64_MAX;
}

/* As if nobody had caught the signal. Returns after SIGCONT. */
static void stand_still(void)
{
	const struct sigaction by_default = {.sa_handler = SIG_DFL};
	struct sigaction ours;
	sigaction(SIGTSTP, &by_default, &ours);
	raise(SIGTSTP);
	sigaction(SIGTSTP, &ours, NULL);
}

void session_suspend_tick(struct session *s, uint64_t now_ns)
{
	if (!s->is_suspend_asked)
		return;
	if (!s->suspend_until_ns)
		s->suspend_until_ns = now_ns + SUSPEND_WAIT_NS;
	bool stands = tracer_is_in_group_stop(s->tracer, s->command_pid) ||
		      session_away_stands(s, s->command_pid);
	if (!stands && now_ns < s->suspend_until_ns)
		return;
	s->is_suspend_asked = 0;
	s->suspend_until_ns = 0;
	if (stands)
		stand_still();
}
