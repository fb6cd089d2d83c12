/* Which processes the range monitor hears of, and when. */
#include <stdlib.h>

#include "supervisor/control/fixed.h"
#include "supervisor/session-private.h"

/* Of the 20 ms that no stop takes longer than. */
#define MOST_STAND_NS (8 * NSEC_PER_MSEC)

/* There may be a hundred thousand at once: what has no room has it later. */
static bool emit(void *ctx, const struct record *r)
{
	struct session *s = ctx;
	if (!s->is_over && !s->trace_failed && !trace_has_room(s->trace))
		return false;
	session_emit(s, r);
	return true;
}

static void put_stack(void *ctx, uint32_t id, const struct trace_frame *frames,
		      size_t nr)
{
	struct session *s = ctx;
	if (!s->trace_failed && trace_put_stack(s->trace, id, frames, nr))
		s->trace_failed = true;
}

static void put_meta(void *ctx, const char *key, const char *value)
{
	struct session *s = ctx;
	if (s->trace)
		trace_put_meta(s->trace, key, value);
}

static void look(void *ctx, struct tproc *p)
{
	struct session *s = ctx;
	struct watched *w = tproc_user(p);
	if (s->phases && w && w->phases)
		phases_look(s->phases, w->phases);
}

static void presence(void *ctx, struct tproc *p, enum range_presence *ret)
{
	static const enum range_presence as[] = {
		[PHASE_NOT_IN] = RANGE_OUT,
		[PHASE_IN_PARTLY] = RANGE_PARTLY,
		[PHASE_IN] = RANGE_ALL,
	};
	struct session *s = ctx;
	struct watched *w = tproc_user(p);
	for (size_t i = 0; i < s->opt->nr_phases; i++)
		ret[i] = s->phases && w && w->phases
				 ? as[phases_presence(s->phases, w->phases, i)]
				 : RANGE_OUT;
}

static int expect_file(struct session *s, const char *path, const char *open,
		       bool is_library, struct smco_err *err)
{
	/* As mappings will have it: links are followed. */
	_cleanup_free_ char *real = realpath(path, NULL);
	return range_expect(s->range, real ? real : path, real ? real : open,
			    is_library, err);
}

static int expect(struct session *s, struct smco_err *err)
{
	bool any;
	int rc = session_each_file(s, expect_file, &any, err);
	/* What is selected may be in a library that is loaded later. */
	return rc || s->opt->if_available ? rc : range_check(s->range, err);
}

int session_range_create(struct session *s, struct tracer_options *topt,
			 struct smco_err *err)
{
	static const enum controller_kind kinds[] = {
		[CONTROLLER_CASCADE] = CONTROL_CASCADE,
		[CONTROLLER_ADHOC] = CONTROL_ADHOC,
		[CONTROLLER_GLOBAL] = CONTROL_GLOBAL,
	};
	const struct range_params p = {
		.select = s->opt->select,
		.kind = kinds[s->opt->controller],
		.target_overhead_ppb = s->opt->target_ppb,
		.start_ns = s->start_ns,
		.use_cache = !s->opt->no_cache,
		.ptrace_watch = s->opt->ptrace_watch,
		.emit = emit,
		.put_stack = put_stack,
		.put_meta = put_meta,
		.nr_phases = s->opt->monitors & MONITOR_PHASES
				     ? s->opt->nr_phases
				     : 0,
		.look = look,
		.presence = presence,
		.ctx = s,
	};
	if (!(s->opt->monitors & MONITOR_RANGE))
		return 0;
	s->range = range_monitor_create(&p, s->ledger);
	if (!s->range)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	/* Of a large file much is done by one thread. */
	meter_load();
	int rc = expect(s, err);
	meter_loaded();
	topt->hold_new_tasks |= range_wants_tasks(s->range);
	return rc;
}

/* How long a process that begins a program may stand until that is read. */
static uint64_t may_stand_ns(const struct session *s, const struct tevent *ev)
{
	if (ev->why == TPROC_LAUNCHED || s->opt->is_unlimited)
		return UINT64_MAX;
	int64_t most_ns = allowance_credit_ns(session_budget_ppb(s));
	return session_is_far_overdrawn(s) && !session_is_asked_for(s, ev)
		       ? 0
		       : (uint64_t)clamp_i64(most_ns, 1, MOST_STAND_NS);
}

void session_range_process(struct session *s, struct watched *w,
			   const struct tevent *ev)
{
	struct watched *parent = ev->parent ? tproc_user(ev->parent) : NULL;
	if (!s->range)
		return;
	if (ev->why == TPROC_FORKED)
		w->range = range_proc_fork(
			s->range, parent ? parent->range : NULL, w->proc);
	else
		w->range = range_proc_create(s->range, w->proc,
					     may_stand_ns(s, ev));
	if (ev->why == TPROC_ATTACHED)
		range_proc_libraries(s->range, w->range, false);
}

void session_range_libraries(struct session *s, struct watched *w)
{
	if (s->range)
		range_proc_libraries(s->range, w->range, true);
}

void session_range_drop(struct session *s, struct watched *w, bool gone)
{
	s->nr_unwatched += range_proc_is_late(w->range) && !w->late_ns;
	if (s->range)
		range_proc_destroy(s->range, w->range, gone);
	w->range = NULL;
}

void session_range_task(struct session *s, const struct tevent *ev)
{
	struct watched *w = ev->proc ? tproc_user(ev->proc) : NULL;
	if (!s->range || !w)
		return;
	if (ev->kind == TEV_TASK_NEW)
		range_task_new(s->range, w->range, task_tid(ev->task));
	else
		range_task_gone(w->range, task_tid(ev->task));
}

uint64_t session_range_due_ns(const struct session *s)
{
	return s->range ? range_due_ns(s->range) : UINT64_MAX;
}
