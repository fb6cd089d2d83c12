#include "supervisor/monitor/range-monitor.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"
#include "supervisor/probe/range-cost.h"

/* A stop to put sensors in or out, before one was measured. */
#define FIRST_STOP_NS (60 * NSEC_PER_USEC)
/* To stop and to go on, alone. */
#define STOP_NS (10 * NSEC_PER_USEC)
#define IDLE_NS (20 * NSEC_PER_MSEC)

struct range_monitor *range_monitor_create(const struct range_params *params,
					   struct ledger *l)
{
	struct range_monitor *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->p = *params;
	m->ledger = l;
	m->cache_dir = params->use_cache ? cachedir_open() : -1;
	m->buf = malloc(RANGE_POLL_BYTES);
	if (m->buf)
		return m;
	range_monitor_destroy(m);
	return NULL;
}

void range_proc_free(struct range_proc *rp)
{
	ranges_destroy(rp->ranges);
	range_duty_deinit(&rp->duty);
	free(rp->hits);
	free(rp->had_turn);
	free(rp->value);
	free(rp->fresh);
	free(rp->in_phase);
	free(rp->polled);
	free(rp->turns);
	free(rp);
}

void range_monitor_destroy(struct range_monitor *m)
{
	if (!m)
		return;
	for (struct range_proc *rp = m->procs, *next; rp; rp = next) {
		next = rp->next;
		range_watch_stop(m, rp);
		range_proc_free(rp);
	}
	for (struct range_unit *u = m->units, *next; u; u = next) {
		next = u->next;
		range_unit_destroy(u);
	}
	watchpoints_close(m->watchpoints);
	if (m->cache_dir >= 0)
		close(m->cache_dir);
	free(m->buf);
	free(m->news);
	free(m->cost);
	free(m);
}

int range_expect(struct range_monitor *m, const char *path,
		 struct smco_err *err)
{
	struct range_unit *u = range_unit_get(m, path, path);
	if (!u)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (u->no_match)
		return smco_fail(err, SMCO_FORMAT, 0, "%s", u->why);
	/* Whatever it begins may want them, and would have to stand for it. */
	range_watch_open(m);
	return 0;
}

/* --- processes --- */

/* Where the program's file is mapped: what to add to its addresses. */
static bool find_bias(struct range_proc *rp, const char *path,
		      const struct range_unit *u)
{
	struct sym_space *space = NULL;
	struct tmaps maps;
	bool found = false;
	if (tmaps_read((pid_t)rp->pid, &maps, NULL))
		return false;
	for (size_t i = 0; i < maps.nr && !found; i++) {
		const struct tmap *t = &maps.maps[i];
		if (!(t->prot & PROT_EXEC) || strcmp(t->path, path))
			continue;
		const struct sym_mapping map = {
			.start = t->start,
			.end = t->end,
			.offset = t->offset,
			.inode = t->inode,
			.exec = true,
			.deleted = t->deleted,
			.path = t->path,
		};
		char root[64];
		snprintf(root, sizeof(root), "/proc/%u/root", rp->pid);
		space = sym_space_create((pid_t)rp->pid, root, NULL, NULL);
		if (!space || sym_space_update(space, &map, 1, NULL))
			break;
		struct sym_place at = sym_pin(space, t->start);
		struct sym_module_info info;
		sym_module_info(space, at.module, &info);
		found = at.module && !strcmp(info.build_id, u->build_id);
		rp->bias = t->start - at.offset;
	}
	sym_space_destroy(space);
	tmaps_deinit(&maps);
	return found;
}

static void change(struct range_proc *rp)
{
	struct smco_err err = {0};
	const struct range_duty *d = &rp->duty;
	uint64_t cost_ns = 0;
	if (ranges_choose(rp->ranges, d->changed, d->nr_changed, d->want,
			  &cost_ns, &err))
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
	if (cost_ns)
		rp->stop_ns = (rp->stop_ns * 7 + cost_ns + STOP_NS) / 8;
	uint64_t now_ns = smco_now_ns();
	for (size_t i = 0; i < d->nr_changed; i++) {
		uint32_t w = d->changed[i];
		range_duty_put(&rp->duty, w, ranges_window_is_in(rp->ranges, w),
			       now_ns);
	}
}

/* Room for a step of @nr windows. */
static bool grow(struct range_monitor *m, size_t nr)
{
	if (m->news && nr <= m->max_windows)
		return true;
	struct range_news *news = realloc(m->news, (nr + 1) * sizeof(*m->news));
	m->news = news ? news : m->news;
	struct range_duty_cost *cost =
		realloc(m->cost, (nr + 1) * sizeof(*m->cost));
	m->cost = cost ? cost : m->cost;
	if (!news || !cost)
		return false;
	m->max_windows = nr;
	return true;
}

static struct range_proc *new_proc(struct range_monitor *m,
				   struct range_unit *u, struct tproc *p)
{
	struct range_proc *rp = calloc(1, sizeof(*rp));
	if (!rp)
		return NULL;
	uint64_t now_ns = smco_now_ns();
	*rp = (struct range_proc){
		.proc = p,
		.pid = (uint32_t)tproc_pid(p),
		.unit = u,
		.stop_ns = FIRST_STOP_NS,
		.born_ns = now_ns,
		.charged_ns = now_ns,
		.next_poll_ns = now_ns,
	};
	int rc = range_duty_init(&rp->duty, m->p.kind, m->p.target_overhead_ppb,
				 u->most_windows, now_ns);
	rp->hits = calloc(u->most_windows + 1, sizeof(*rp->hits));
	rp->had_turn = calloc(u->vars->nr_functions / 8 + 1, 1);
	rp->value = calloc(range_unit_nr(u) + 1, sizeof(*rp->value));
	rp->polled = malloc(u->poll_bytes + 1);
	range_phases_begin(m, rp);
	if (!rc && rp->hits && rp->had_turn && rp->value && rp->polled &&
	    grow(m, u->most_windows))
		return rp;
	range_proc_free(rp);
	return NULL;
}

static void keep(struct range_monitor *m, struct range_proc *rp)
{
	rp->next = m->procs;
	m->procs = rp;
	m->next_tick_ns = 0;
}

struct range_proc *range_proc_create(struct range_monitor *m, struct tproc *p)
{
	char exe[64], path[PATH_MAX], full[PATH_MAX + 64];
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)tproc_pid(p));
	ssize_t n = readlink(exe, path, sizeof(path) - 1);
	if (n <= 0 || !m->p.target_overhead_ppb)
		return NULL;
	path[n] = '\0';
	/* It may have another root directory than we. */
	snprintf(full, sizeof(full), "/proc/%d/root%s", (int)tproc_pid(p),
		 path);
	struct range_unit *u =
		range_unit_get(m, path, access(path, R_OK) ? full : path);
	if (!u || !u->vars)
		return NULL;
	struct range_proc *rp = new_proc(m, u, p);
	if (!rp)
		return NULL;
	if (!find_bias(rp, path, u)) {
		smco_debug("range", "pid %u: not mapped: %s", rp->pid, path);
		range_proc_free(rp);
		return NULL;
	}
	struct smco_err err = {0};
	if (u->most_windows &&
	    ranges_install(&rp->ranges, p, u->plan, rp->bias, &err)) {
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
		m->p.put_meta(m->p.ctx, "range.missing", err.msg);
		rp->ranges = NULL;
	}
	if (rp->ranges)
		range_start_first(
			rp, target_is_unlimited(m->p.target_overhead_ppb));
	range_watch_start(m, rp, false);
	keep(m, rp);
	return rp;
}

struct range_proc *range_proc_fork(struct range_monitor *m,
				   struct range_proc *parent, struct tproc *p)
{
	struct smco_err err = {0};
	if (!parent)
		return NULL;
	struct range_proc *rp = new_proc(m, parent->unit, p);
	if (!rp)
		return NULL;
	rp->bias = parent->bias;
	if (parent->ranges &&
	    ranges_fork(&rp->ranges, parent->ranges, p, &err)) {
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
		rp->ranges = NULL;
	}
	if (rp->ranges)
		range_start_fork(rp, parent);
	range_watch_start(m, rp, true);
	keep(m, rp);
	return rp;
}

/* What was passed since the last time, @all or what a glance shows: to the
 * ledger, and to m->cost, how many that are. */
static size_t charge(struct range_monitor *m, struct range_proc *rp, bool all)
{
	uint64_t sum_ps = 0, now_ns = smco_now_ns();
	uint64_t gone_ns = now_ns - rp->charged_ns;
	size_t nr = 0;
	rp->charged_ns = now_ns;
	if (rp->ranges)
		nr = all ? ranges_news(rp->ranges, m->news)
			 : ranges_glance(rp->ranges, m->news);
	for (size_t i = 0; i < nr; i++) {
		const struct range_news *n = &m->news[i];
		m->cost[i] = (struct range_duty_cost){
			.window = n->window,
			.cost_ps = sat_add_u64(
				n->cost_ps, range_cost_cold(n->hits, gone_ns)),
		};
		rp->hits[n->window] += n->hits;
		sum_ps = sat_add_u64(sum_ps, m->cost[i].cost_ps);
	}
	ledger_charge(m->ledger, LEDGER_AGENT, RANGE_MONITOR, sum_ps / 1000);
	return nr;
}

void range_proc_destroy(struct range_monitor *m, struct range_proc *rp,
			bool gone)
{
	if (!rp)
		return;
	uint64_t now_ns = smco_now_ns();
	charge(m, rp, true);
	range_watch_stop(m, rp);
	if (!gone) {
		rp->next_poll_ns = 0;
		range_poll(m, rp, now_ns);
		if (rp->ranges)
			ranges_remove(rp->ranges);
	}
	if (rp->fresh)
		range_phases_step(m, rp);
	range_collect(rp);
	ranges_destroy(rp->ranges);
	rp->ranges = NULL;
	rp->proc = NULL;
	rp->died_ns = now_ns;
}

void range_proc_home(const struct range_proc *rp, struct user_regs_struct *regs)
{
	if (rp && rp->ranges)
		ranges_home(rp->ranges, regs);
}

/* --- time goes by --- */

#define ASK_NS (20 * NSEC_PER_MSEC)

/* The processor time of @rp since this was asked last; 0 in between. */
static uint64_t ran_ns(struct range_proc *rp, uint64_t now_ns)
{
	if (now_ns < rp->asked_ns + ASK_NS)
		return 0;
	uint64_t run_ns = tproc_cpu_ns(rp->proc);
	uint64_t ran = sat_sub_u64(run_ns, rp->run_ns);
	rp->run_ns = run_ns;
	rp->asked_ns = now_ns;
	return ran;
}

static void tick_proc(struct range_monitor *m, struct range_proc *rp,
		      uint64_t now_ns)
{
	range_poll(m, rp, now_ns);
	range_watch_tick(m, rp, now_ns);
	if (!rp->ranges || now_ns < range_duty_due_ns(&rp->duty))
		return;
	uint64_t cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	size_t nr = charge(m, rp, false);
	cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	rp->look_ns = (rp->look_ns * 7 + cpu_ns) / 8;
	const struct range_duty_state s = {
		.now_ns = now_ns,
		.run_ns = ran_ns(rp, now_ns),
		.room_ns = ledger_room_ns(m->ledger),
		.window_room_ns = ledger_window_room_ns(m->ledger),
		.stop_ns = rp->stop_ns,
		.look_ns = rp->look_ns,
	};
	if (range_duty_step(&rp->duty, m->cost, nr, &s))
		change(rp);
	range_start_some(rp, smco_now_ns(), s.room_ns);
}

void range_tick(struct range_monitor *m, uint64_t now_ns)
{
	m->next_tick_ns = now_ns + IDLE_NS;
	for (struct range_proc *rp = m->procs; rp; rp = rp->next) {
		if (!rp->proc)
			continue;
		tick_proc(m, rp, now_ns);
		uint64_t due_ns = UINT64_MAX;
		if (rp->ranges)
			due_ns = range_duty_due_ns(&rp->duty);
		if ((rp->unit->nr_polls || rp->unit->nr_pointees) &&
		    rp->next_poll_ns < due_ns)
			due_ns = rp->next_poll_ns;
		if (rp->turn_control && rp->watch_due_ns < due_ns)
			due_ns = rp->watch_due_ns;
		if (due_ns < m->next_tick_ns)
			m->next_tick_ns = due_ns;
	}
}

uint64_t range_due_ns(const struct range_monitor *m)
{
	for (const struct range_proc *rp = m->procs; rp; rp = rp->next)
		if (rp->proc)
			return m->next_tick_ns;
	return UINT64_MAX;
}
