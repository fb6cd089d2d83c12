/* Which processes the phases' monitor hears of, and when. */
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/command.h"
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

/* All files that are mapped executable. */
static int expect_mapped(struct session *s, pid_t pid, struct smco_err *err)
{
	struct tmaps maps;
	char path[64];
	int rc = tmaps_read(pid, &maps, err);
	if (rc)
		return rc == SMCO_GONE ? 0 : rc;
	for (size_t i = 0; !rc && i < maps.nr; i++) {
		const struct tmap *m = &maps.maps[i];
		if (!(m->prot & PROT_EXEC) || !m->inode)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx",
			 (int)pid, (unsigned long long)m->start,
			 (unsigned long long)m->end);
		rc = phases_expect(s->phases,
				   access(path, R_OK) ? m->path : path, err);
	}
	tmaps_deinit(&maps);
	return rc;
}

/* What the linker will load is asked of it: it lists, and runs nothing. */
static int expect_libraries(struct session *s, const char *path,
			    struct smco_err *err)
{
	char line[4096], list[8300];
	int rc = 0;
	if (strchr(path, '\'') || strlen(path) > 4096)
		return 0;
	snprintf(list, sizeof(list),
		 "/lib64/ld-linux-x86-64.so.2 --list '%s' "
		 "2>/dev/null </dev/null",
		 path);
	FILE *f = popen(list, "re");
	while (f && !rc && fgets(line, sizeof(line), f)) {
		char *from = strchr(line, '/'), *to = strstr(line, " (0x");
		if (!from || !to || to < from)
			continue;
		*to = '\0';
		rc = phases_expect(s->phases, from, err);
	}
	if (f)
		pclose(f);
	return rc;
}

static int expect(struct session *s, struct smco_err *err)
{
	const struct options *o = s->opt;
	int rc = 0;
	if (o->command) {
		_cleanup_free_ char *found = command_find(o->command[0]);
		_cleanup_free_ char *path =
			found ? realpath(found, NULL) : NULL;
		if (!path) /* what cannot be run is said by whoever tries */
			return 0;
		rc = phases_expect(s->phases, path, err);
		if (!rc)
			rc = expect_libraries(s, path, err);
	}
	for (size_t i = 0; !rc && i < o->nr_pids; i++)
		rc = expect_mapped(s, o->pids[i], err);
	if (!rc && o->if_available)
		phases_wait(s->phases);
	else if (!rc)
		rc = phases_check(s->phases, err);
	return rc;
}

int session_phases_create(struct session *s, struct smco_err *err)
{
	const struct phases_params p = {
		.name = s->opt->phase,
		.nr = s->opt->nr_phases,
		.start_ns = s->start_ns,
		.span_ns = s->opt->interval_ns,
		.m_t_ppb = s->opt->is_unlimited ? INT64_MAX
						: control_m_from_overhead(
							  s->opt->target_ppb),
		.pid_of = pid_of,
		.emit = session_emit,
		.put_meta = put_meta,
		.ctx = s,
	};
	if (!(s->opt->monitors & MONITOR_PHASES))
		return 0;
	int rc = phases_create(&p, s->ledger, &s->phases, err);
	if (!rc)
		rc = expect(s, err);
	if (rc && err) /* not "the command is not found" */
		err->code = SMCO_UNSUPPORTED;
	return rc;
}

/* Is its linker still to come, which tells when all is there? */
static bool is_dynamic(const struct tproc *p)
{
	struct tmaps maps;
	const char *first = NULL;
	bool several = false;
	if (tmaps_read(tproc_pid(p), &maps, NULL))
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
	/* What is there by now, and libraries later, if others will plant. */
	if (ev->kind == TEV_PROC_NEW && ev->why != TPROC_ATTACHED &&
	    !s->range && is_dynamic(w->proc))
		return;
	if (!watched_update_modules(w, NULL))
		phases_plant(s->phases, &w->phases, w->proc, w->space);
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
