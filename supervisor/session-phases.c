/* Which processes the phases' monitor hears of, and when. */
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/session-private.h"

/* A process that had no CPU to stop on is not asked again at once. */
#define TRIM_AGAIN_NS (100 * NSEC_PER_MSEC)

static void put_meta(void *ctx, const char *key, const char *value)
{
	struct session *s = ctx;
	trace_put_meta(s->trace, key, value);
}

static uint32_t pid_of(void *ctx, uint32_t tid)
{
	struct session *s = ctx;
	for (size_t i = 0; i < s->nr_ws; i++) {
		struct task *t = tproc_first_task(s->ws[i]->proc);
		for (; t; t = task_next(t))
			if ((uint32_t)task_tid(t) == tid)
				return (uint32_t)s->ws[i]->pid;
	}
	return 0;
}

static uint32_t tid_in(const struct watched *w, uint32_t own)
{
	for (struct task *t = tproc_first_task(w->proc); t; t = task_next(t))
		if ((uint32_t)task_own_tid(t) == own)
			return (uint32_t)task_tid(t);
	return 0;
}

static uint32_t tid_of(void *ctx, uint32_t pid, uint32_t own)
{
	struct session *s = ctx;
	uint32_t tid = 0;
	for (size_t i = 0; i < s->nr_ws && !tid; i++)
		if ((uint32_t)s->ws[i]->pid == pid)
			tid = tid_in(s->ws[i], own);
	for (size_t i = 0; i < s->nr_ws && !tid; i++)
		tid = tid_in(s->ws[i], own);
	return tid;
}

static int expect_file(struct session *s, const char *path, const char *open,
		       bool is_library, struct smco_err *err)
{
	(void)path;
	(void)is_library;
	return phases_expect(s->phases, open, err);
}

static int expect(struct session *s, struct smco_err *err)
{
	const struct options *o = s->opt;
	bool any;
	int rc = session_each_file(s, expect_file, &any, err);
	if (!rc && !any) /* what cannot be run is said by whoever tries */
		return 0;
	if (!rc && o->if_available)
		phases_wait(s->phases);
	else if (!rc)
		rc = phases_check(s->phases, err);
	return rc;
}

int session_phases_create(struct session *s, struct tracer_options *topt,
			  struct smco_err *err)
{
	const struct phases_params p = {
		.name = s->opt->phase,
		.nr = s->opt->nr_phases,
		.start_ns = s->start_ns,
		.span_ns = s->opt->interval_ns,
		.m_t_ppb = s->opt->is_unlimited ? INT64_MAX
						: control_m_from_overhead(
							  s->opt->target_ppb),
		.m_most_ppb = control_m_from_overhead(
			control_bound_ppb(s->opt->target_ppb)),
		.pid_of = pid_of,
		.tid_of = tid_of,
		.emit = session_emit,
		.put_meta = put_meta,
		.ctx = s,
	};
	if (!(s->opt->monitors & MONITOR_PHASES))
		return 0;
	topt->hold_new_tasks = true;
	int rc = phases_create(&p, s->ledger, &s->phases, err);
	if (!rc)
		rc = expect(s, err);
	if (rc && err) /* not "the command is not found" */
		err->code = SMCO_UNSUPPORTED;
	return rc;
}

/* Is its linker still to come, which tells when all is there? */
static bool is_dynamic(struct tproc *p)
{
	struct tmaps maps;
	const char *first = NULL;
	bool several = false;
	if (tproc_code_maps(p, &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.nr; i++) {
		const struct tmap *m = &maps.maps[i];
		if (!(m->prot & PROT_EXEC) || !m->inode)
			continue;
		several |= first && strcmp(first, m->path) != 0;
		first = m->path;
	}
	tmaps_deinit(&maps);
	return several;
}

void session_phases_process(struct session *s, struct watched *w,
			    const struct tevent *ev)
{
	struct watched *parent = ev->parent ? tproc_user(ev->parent) : NULL;
	if (!s->phases)
		return;
	w->libs_seen_ns = smco_now_ns();
	if (ev->kind == TEV_PROC_NEW && ev->why == TPROC_FORKED) {
		w->phases = phases_fork(
			s->phases, parent ? parent->phases : NULL, w->proc);
		return;
	}
	if (ev->kind == TEV_PROC_NEW && parent) /* no longer in its memory */
		phases_thread_gone(s->phases, parent->phases,
				   tproc_first_task(w->proc));
	/* What is there by now, and libraries later, if others will plant. */
	if (ev->kind == TEV_PROC_NEW && ev->why != TPROC_ATTACHED &&
	    !s->range && is_dynamic(w->proc))
		return;
	if (!watched_update_modules(w, NULL))
		phases_plant(s->phases, &w->phases, w->proc, w->space);
}

void session_phases_task(struct session *s, const struct tevent *ev)
{
	struct watched *w = ev->proc ? tproc_user(ev->proc) : NULL;
	if (!s->phases)
		return;
	if (ev->kind == TEV_TASK_NEW)
		phases_new_thread(s->phases, w ? w->phases : NULL, ev->task);
	else if (w)
		phases_thread_gone(s->phases, w->phases, ev->task);
}

void session_phases_drop(struct session *s, struct watched *w, bool gone)
{
	if (s->phases)
		phases_drop(s->phases, w->phases, gone);
	w->phases = NULL;
}

/* Libraries that @w has loaded, or unloaded, since. */
static void follow_libraries(struct session *s, struct watched *w)
{
	uint64_t since_ns = w->libs_seen_ns;
	bool is_other = linkmap_changed(&w->linkmap, w->proc);
	if (!is_other && !w->libs_changed && !phases_has_lost(w->phases)) {
		w->libs_seen_ns = smco_now_ns();
		return;
	}
	w->libs_changed = true; /* until it is done */
	if (session_is_far_overdrawn(s) || watched_update_modules(w, NULL))
		return;
	if (phases_reload(s->phases, w->phases, w->space, false, since_ns)) {
		tracer_stops_are(s->tracer, "to plant sensors");
		if (tproc_stop_briefly(w->proc, NULL))
			return;
		/* Others may be there by now. */
		if (!watched_update_modules(w, NULL)) {
			phases_reload(s->phases, w->phases, w->space, true,
				      since_ns);
			phases_plant(s->phases, &w->phases, w->proc, w->space);
		}
		tproc_cont(w->proc);
	}
	w->libs_changed = false;
	w->libs_seen_ns = smco_now_ns();
}

void session_phases_tick(struct session *s, uint64_t now_ns)
{
	phases_tick(s->phases, now_ns);
	for (size_t i = 0; i < s->nr_ws; i++)
		if (s->ws[i]->phases)
			follow_libraries(s, s->ws[i]);
	if (s->range)
		range_phases_tick(s->range, now_ns);
	if (now_ns < s->next_trim_ns)
		return;
	for (size_t i = 0; i < s->nr_ws; i++) {
		struct watched *w = s->ws[i];
		if (!phases_wants_trim(w->phases))
			continue;
		tracer_stops_are(s->tracer, "to take sensors out");
		if (tproc_stop_briefly(w->proc, NULL)) {
			s->next_trim_ns = now_ns + TRIM_AGAIN_NS;
			continue;
		}
		phases_trim(s->phases, w->phases);
		tproc_cont(w->proc);
	}
}

uint64_t session_phases_due_ns(const struct session *s)
{
	return s->phases ? phases_due_ns(s->phases) : UINT64_MAX;
}
