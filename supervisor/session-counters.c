/* Which threads the counters' monitor hears of, and when. */
#include <string.h>

#include "supervisor/session-private.h"

static uint64_t nr_stops(const void *task)
{
	return task_nr_stops(task);
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	struct session *s = ctx;
	trace_put_meta(s->trace, key, value);
}

void session_counters_before_exec(struct session *s, pid_t pid)
{
	if (s->counters)
		counters_add(s->counters, pid, pid, NULL, COUNTER_EXEC);
}

int session_counters_create(struct session *s, struct tracer_options *topt,
			    struct smco_err *err)
{
	const struct counters_params p = {
		.events = s->opt->events,
		.if_available = s->opt->if_available,
		.follows = s->opt->follow,
		.interval_ns = s->opt->interval_ns,
		.every_nr = s->opt->every_nr,
		.every_event = s->opt->every_event,
		.target_overhead_ppb = s->opt->target_ppb,
		.start_ns = s->start_ns,
		.nr_stops = nr_stops,
		.emit = session_emit,
		.put_meta = put_meta,
		.ctx = s,
	};
	if (!(s->opt->monitors & MONITOR_COUNTERS))
		return 0;
	int rc = counters_create(&p, s->ledger, &s->counters, err);
	if (rc && err) /* not "the command is not found" */
		err->code = SMCO_UNSUPPORTED;
	if (rc)
		return rc;
	topt->leaves_cpus = s->opt->monitors == MONITOR_COUNTERS;
	topt->hold_new_tasks = true;
	topt->hold_creators = counters_want_creators(s->counters);
	return 0;
}

/* @t is born: its creator stands, or has been let go, for @t had to wait for a
 * CPU for too long; then it stands again meanwhile. */
static void born(struct session *s, const struct tevent *ev, struct task *t)
{
	struct user_regs_struct regs;
	struct task *by = ev->creator;
	bool stopped =
		by && counters_want_creators(s->counters) && task_stop(by) == 0;
	if (stopped) /* and has left its CPU */
		task_get_regs(by, &regs);
	counters_born(s->counters, tproc_pid(ev->proc), task_tid(t), t,
		      by ? task_tid(by) : 0);
	if (stopped)
		tracer_resume(s->tracer, by, 0);
}

/* By what the kernel keeps of who is not followed: no moment is to be missed.
 */
static bool is_counted_already(const struct session *s, pid_t pid)
{
	return session_births_took(s, pid) || session_away_was(s, pid);
}

void session_counters_process(struct session *s, const struct tevent *ev)
{
	if (!s->counters)
		return;
	pid_t pid = tproc_pid(ev->proc);
	struct task *t = tproc_first_task(ev->proc);
	if (ev->why == TPROC_ATTACHED) {
		/* What it did up to now is counted, or is from its birth. */
		for (; t && is_counted_already(s, pid); t = task_next(t))
			counters_add(s->counters, pid, task_tid(t), t,
				     session_away_was(s, pid) ? COUNTER_AGAIN
							      : COUNTER_BIRTH);
		return;
	}
	if (ev->why == TPROC_LAUNCHED || ev->why == TPROC_EXECED) {
		counters_exec(s->counters, pid, task_tid(t), t, ev->stop_ns);
		return;
	}
	for (; t; t = task_next(t))
		born(s, ev, t);
}

/* With a thousand threads it takes a fifth of a second, in which none stands.
 */
void session_counters_attached(struct session *s, struct tproc *p)
{
	if (!s->counters || is_counted_already(s, tproc_pid(p)))
		return;
	for (struct task *t = tproc_first_task(p); t; t = task_next(t))
		counters_add(s->counters, tproc_pid(p), task_tid(t), t,
			     COUNTER_NOW);
	smco_debug("stop", "counters of %d are open", (int)tproc_pid(p));
}

void session_counters_task(struct session *s, const struct tevent *ev)
{
	pid_t tid = task_tid(ev->task);
	if (s->counters && ev->kind == TEV_TASK_NEW)
		born(s, ev, ev->task);
	else if (s->counters)
		counters_gone(s->counters, tid, smco_now_ns());
}

uint64_t session_counters_due_ns(const struct session *s)
{
	return s->counters ? counters_due_ns(s->counters) : UINT64_MAX;
}

void session_counters_finish(struct session *s)
{
	if (!s->counters)
		return;
	session_births_count(s, true);
	counters_finish(s->counters, smco_now_ns());
}
