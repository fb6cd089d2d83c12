/*
 * Waits whose time-out is no argument of the call but the socket's or
 * terminal's: begun anew after a stop they have all of it once more. So a
 * thread that waits in one is stopped when its time is over, which ends the
 * wait (mend.c, is_expired).
 */
#include "supervisor/tracee/mend.h"

void expiry_note(struct task *t)
{
	struct tracer *tr = tproc_tracer(t->proc);
	t->mend.has_expiry = true;
	if (!tr->expires_ns || t->mend.end_ns < tr->expires_ns)
		tr->expires_ns = t->mend.end_ns;
}

/* Those that have waited long enough by now, and when the next one has. */
static uint64_t end_waits(struct tracer *tr, uint64_t now_ns)
{
	uint64_t next_ns = 0;
	for (struct tproc *p = tr->procs; p; p = p->next)
		for (struct task *t = p->tasks; t; t = t->next) {
			struct mend *m = &t->mend;
			if (!m->has_expiry)
				continue;
			m->has_expiry = m->call && m->end_ns > now_ns;
			if (!m->has_expiry && m->call &&
			    t->state == TASK_RUNNING)
				task_interrupt(t);
			if (m->has_expiry && (!next_ns || m->end_ns < next_ns))
				next_ns = m->end_ns;
		}
	return next_ns;
}

uint64_t expiry_look(struct tracer *tr, uint64_t deadline_ns)
{
	if (!tr->expires_ns)
		return deadline_ns;
	uint64_t now_ns = smco_now_ns();
	if (now_ns >= tr->expires_ns)
		tr->expires_ns = end_waits(tr, now_ns);
	return tr->expires_ns && tr->expires_ns < deadline_ns ? tr->expires_ns
							      : deadline_ns;
}
