/* What one process has of one file: range-private.h, struct range_part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "reports/procfs.h"
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"
#include "supervisor/probe/range-cost.h"

/* A stop to put sensors in or out, before one was measured. */
#define FIRST_STOP_NS (60 * NSEC_PER_USEC)
/* Windows whose memory is on its way at once. */
#define AHEAD 64
/* How often it is asked how long the process ran. */
#define ASK_NS (20 * NSEC_PER_MSEC)
/* The command has just begun, and its first stops are not to wait until all
 * that is known of a large program was told. */
#define FIRST_EMIT_NS (100 * NSEC_PER_MSEC)

void range_part_free(struct range_part *rp)
{
	ranges_destroy(rp->ranges);
	range_duty_deinit(&rp->duty);
	range_trial_free(&rp->trial);
	free(rp->hits);
	free(rp->had_turn);
	free(rp->value);
	free(rp->fresh);
	free(rp->in_phase);
	free(rp->polled);
	free(rp->first);
	free(rp->export);
	free(rp->turns);
	free(rp);
}

/* --- where it is --- */

static bool is_text_of(const struct tmap *t, const char *path)
{
	return t->prot & PROT_EXEC && t->inode && !strcmp(t->path, path);
}

/* The mapping @t is of the unit's very file: what to add to its addresses. */
static bool is_same_file(struct range_part *rp, const struct tmap *t,
			 uint64_t *bias_ret)
{
	const struct sym_mapping map = {
		.start = t->start,
		.end = t->end,
		.offset = t->offset,
		.inode = t->inode,
		.exec = true,
		.deleted = t->deleted,
		.path = t->path,
	};
	char root[PROCFS_PATH];
	procfs_path(root, sizeof(root), procfs_holder(rp->pid), "root");
	struct sym_space *space =
		sym_space_create((pid_t)rp->pid, root, NULL, NULL);
	if (!space || sym_space_update(space, &map, 1, NULL)) {
		sym_space_destroy(space);
		return false;
	}
	struct sym_place at = sym_pin(space, t->start);
	struct sym_module_info info;
	sym_module_info(space, at.module, &info);
	*bias_ret = t->start - at.offset;
	bool is_same = at.module && rp->unit->build_id &&
		       !strcmp(info.build_id, rp->unit->build_id);
	sym_space_destroy(space);
	return is_same;
}

/* The first mapping of it decides. */
static bool find_bias(struct range_part *rp, const struct tmaps *maps)
{
	for (size_t i = 0; i < maps->nr; i++) {
		const struct tmap *t = &maps->maps[i];
		if (!is_text_of(t, rp->unit->path) ||
		    !is_same_file(rp, t, &rp->bias))
			continue;
		rp->text = t->start;
		rp->inode = t->inode;
		range_loaded_at(rp);
		return true;
	}
	return false;
}

bool range_part_static(const struct range_part *rp, uint64_t addr, taddr_t *ret)
{
	const struct data_slots *slots = &rp->unit->slots;
	const struct data_export *x = data_export_find(slots, addr);
	*ret = addr + rp->bias;
	if (!x)
		return true;
	taddr_t *known = &rp->export[x - slots->export];
	/* The linker fills it in, and nobody changes it then. */
	if ((!*known || rp->can_go) &&
	    (!x->slot ||
	     tmem_read(rp->proc, x->slot + rp->bias, known, sizeof(*known))))
		*known = 0;
	*ret = *known + (addr - x->addr);
	return *known;
}

bool range_part_is_mapped(const struct range_part *rp, const struct tmaps *maps)
{
	const struct tmap *t = tmaps_find(maps, rp->text);
	return t && t->start == rp->text && t->inode == rp->inode &&
	       is_text_of(t, rp->unit->path);
}

/* --- it comes --- */

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

static struct range_part *new_part(struct range_monitor *m,
				   struct range_unit *u, struct range_proc *p,
				   bool can_go)
{
	struct range_part *rp = calloc(1, sizeof(*rp));
	if (!rp)
		return NULL;
	uint64_t now_ns = smco_now_ns();
	*rp = (struct range_part){
		.owner = p,
		.proc = p->proc,
		.pid = (uint32_t)tproc_pid(p->proc),
		.unit = u,
		.stop_ns = FIRST_STOP_NS,
		.born_ns = now_ns,
		.charged_ns = now_ns,
		.run_ns = tproc_cpu_ns(p->proc),
		.next_poll_ns = now_ns,
		.can_go = can_go,
		.nr_sharing = 1,
	};
	range_rate_init(&rp->rate, now_ns);
	int rc = range_duty_init(&rp->duty, &m->cheap, m->p.kind,
				 m->p.target_overhead_ppb, u->most_windows,
				 now_ns);
	rp->hits = calloc(u->most_windows + 1, sizeof(*rp->hits));
	rp->had_turn = calloc(u->vars->nr_functions / 8 + 1, 1);
	rp->value = calloc(range_unit_nr(u) + 1, sizeof(*rp->value));
	rp->polled = malloc(u->poll_bytes + 1);
	rp->first = calloc(u->nr_firsts + 1, sizeof(*rp->first));
	rp->export = calloc(u->slots.nr_exports + 1, sizeof(*rp->export));
	range_phases_begin(m, rp);
	if (!rc && rp->hits && rp->had_turn && rp->value && rp->polled &&
	    rp->first && rp->export && grow(m, u->most_windows))
		return rp;
	range_part_free(rp);
	return NULL;
}

static bool is_there(void *part)
{
	return range_loaded(part);
}

/* How many windows go in at once. */
static size_t first_windows(const struct range_monitor *m,
			    const struct range_part *rp)
{
	if (target_is_unlimited(m->p.target_overhead_ppb))
		return SIZE_MAX;
	return rp->owner->is_begun || rp->can_go ? RANGE_NEXT_WINDOWS
						 : RANGE_FIRST_WINDOWS;
}

static void install(struct range_monitor *m, struct range_part *rp)
{
	struct smco_err err = {0};
	struct range_unit *u = rp->unit;
	if (u->most_windows &&
	    ranges_install(&rp->ranges, rp->proc, u->plan, rp->bias, &err)) {
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
		m->p.put_meta(m->p.ctx, "range.missing", err.msg);
		rp->ranges = NULL;
	}
	if (rp->ranges && m->p.nr_phases)
		ranges_heed_others(rp->ranges);
	if (rp->ranges && rp->can_go)
		ranges_guard(rp->ranges, is_there, rp);
	if (rp->ranges)
		range_start_first(rp, first_windows(m, rp));
	range_watch_start(m, rp, rp->can_go);
	range_firsts_look(m, rp);
	/* What is there before the program's first instruction is a value of
	 * those, too, that are only looked at; at once if nothing is to be
	 * missed, else at the first tick. */
	if (target_is_unlimited(m->p.target_overhead_ppb))
		range_poll(m, rp, smco_now_ns());
	m->next_tick_ns = 0;
}

static void keep(struct range_monitor *m, struct range_part *rp)
{
	rp->next = m->parts;
	m->parts = rp;
	m->next_tick_ns = 0;
	if (!m->next_emit_ns)
		m->next_emit_ns = smco_now_ns() + FIRST_EMIT_NS;
}

struct range_part *range_part_create(struct range_monitor *m,
				     struct range_proc *p, struct range_unit *u,
				     bool can_go, const struct tmaps *maps)
{
	struct range_part *rp = new_part(m, u, p, can_go);
	if (!rp)
		return NULL;
	if (!find_bias(rp, maps)) {
		smco_debug("range", "pid %u: not mapped: %s", rp->pid, u->path);
		range_part_free(rp);
		return NULL;
	}
	install(m, rp);
	/* Until now it stood, and nothing was missed, however long that took.
	 */
	rp->born_ns = smco_now_ns();
	keep(m, rp);
	return rp;
}

struct range_part *range_part_fork(struct range_monitor *m,
				   struct range_part *parent,
				   struct range_proc *p)
{
	struct smco_err err = {0};
	struct range_part *rp = new_part(m, parent->unit, p, parent->can_go);
	if (!rp)
		return NULL;
	rp->bias = parent->bias;
	rp->text = parent->text;
	rp->inode = parent->inode;
	rp->build_id = parent->build_id;
	rp->is_unloaded = parent->is_unloaded;
	if (parent->ranges &&
	    ranges_fork(&rp->ranges, parent->ranges, p->proc, &err)) {
		smco_debug("range", "pid %u: %s", rp->pid, err.msg);
		rp->ranges = NULL;
	}
	if (rp->ranges && rp->can_go)
		ranges_guard(rp->ranges, is_there, rp);
	if (rp->ranges)
		range_start_fork(rp, parent);
	if (rp->is_unloaded)
		rp->died_ns = rp->born_ns;
	else
		range_sleep(rp, parent);
	keep(m, rp);
	return rp;
}

bool range_part_reopen(struct range_monitor *m, struct range_part *rp,
		       const struct tmaps *maps)
{
	uint64_t now_ns = smco_now_ns();
	if (!find_bias(rp, maps))
		return false;
	rp->is_unloaded = false;
	/* It was not there in between. */
	rp->born_ns += now_ns - rp->died_ns;
	rp->died_ns = 0;
	rp->charged_ns = rp->next_poll_ns = now_ns;
	rp->next_function = 0;
	memset(rp->export, 0, rp->unit->slots.nr_exports * sizeof(*rp->export));
	memset(rp->had_turn, 0, rp->unit->vars->nr_functions / 8 + 1);
	install(m, rp);
	return true;
}

/* How many threads may have run since the last look. */
static unsigned nr_threads(struct range_part *rp)
{
	unsigned before = rp->nr_threads;
	rp->nr_threads = rp->proc ? tproc_nr_tasks(rp->proc) : 0;
	rp->nr_threads += rp->nr_asleep;
	return (unsigned)max_u64(max_u64(before, rp->nr_threads), 1);
}

/* What was passed since the last time, @all or what a glance shows: to the
 * ledger, and to m->cost, how many that are. */
size_t range_part_charge(struct range_monitor *m, struct range_part *rp,
			 bool all)
{
	uint64_t sum_ps = 0, now_ns = smco_now_ns();
	uint64_t gone_ns = now_ns - rp->charged_ns;
	size_t nr = 0;
	rp->charged_ns = now_ns;
	if (rp->ranges)
		nr = all ? ranges_news(rp->ranges, m->news)
			 : ranges_glance(rp->ranges, m->news);
	uint64_t stray_ps = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct range_news *n = &m->news[i];
		m->cost[i] = (struct range_duty_cost){
			.window = n->window,
			.cost_ps = sat_add_u64(
				range_rate_of(&rp->rate, n->hits, n->cost_ps),
				range_cost_cold(n->hits, gone_ns)),
		};
		rp->hits[n->window] += n->hits;
		m->cost[i].hits = rp->hits[n->window];
	}
	range_alone_add(m->cost, m->news, nr, range_rate_alone(&rp->rate));
	range_trial_price(rp, m->cost, nr);
	for (size_t i = 0; i < nr; i++) {
		if (!rp->duty.window[m->cost[i].window].is_in)
			stray_ps = sat_add_u64(stray_ps, m->cost[i].cost_ps);
		sum_ps = sat_add_u64(sum_ps, m->cost[i].cost_ps);
	}
	sum_ps =
		range_duty_bound(m->cost, nr, sum_ps, gone_ns * nr_threads(rp));
	ledger_charge(m->ledger, LEDGER_AGENT, RANGE_MONITOR, sum_ps / 1000);
	range_rate_charged(&rp->rate, sum_ps / 1000);
	range_stray(m, rp, min_u64(stray_ps, sum_ps));
	return nr;
}

/* What hits cost now, where one of its threads runs, another each time. */
static void measure(struct range_part *rp)
{
	unsigned i = rp->next_task;
	struct task *t = tproc_first_task(rp->proc);
	while (t && i--)
		t = task_next(t);
	if (!t)
		t = tproc_first_task(rp->proc);
	rp->next_task = t && task_next(t) ? rp->next_task + 1 : 0;
	if (t)
		range_rate_measure(&rp->rate, task_cpu(t));
}

/* What is still to be expected of the @nr in m->cost. With phases values are
 * taken again and again. */
static void weigh(struct range_monitor *m, struct range_part *rp, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (rp->fresh) {
			m->cost[i].worth = CONTROL_WHOLE;
			continue;
		}
		if (i % AHEAD == 0)
			ranges_worth_ahead(rp->ranges, m->news + i,
					   min_u64(nr - i, AHEAD));
		__builtin_prefetch(&rp->duty.window[m->news[i].window]);
		m->cost[i].worth =
			ranges_worth(rp->ranges, m->cost[i].window,
				     m->news[i].hits, &m->cost[i].news);
	}
}

void range_part_close(struct range_monitor *m, struct range_part *rp,
		      enum range_end end)
{
	uint64_t now_ns = smco_now_ns();
	if (rp->is_unloaded)
		return;
	if (!rp->is_asleep) {
		range_part_charge(m, rp, true);
		range_watch_stop(m, rp);
		rp->next_poll_ns = 0;
		if (end == RANGE_LEFT)
			range_poll(m, rp, now_ns);
	}
	range_sleep_end(m, rp);
	/* Of text that is not there any more nothing is written. */
	struct smco_err err = {0};
	if (end != RANGE_GONE && rp->ranges && ranges_remove(rp->ranges, &err))
		smco_debug("range", "pid %d: sensors stay until we leave: %s",
			   tproc_pid(rp->proc), err.msg);
	if (rp->fresh)
		range_phases_step(m, rp);
	range_collect(rp);
	range_beside_take(rp);
	ranges_destroy(rp->ranges);
	rp->ranges = NULL;
	rp->died_ns = now_ns;
	rp->is_unloaded = end == RANGE_UNLOADED;
	range_duty_rest(&rp->duty, now_ns);
	rp->trial.is_on = false;
}

/* --- time goes by --- */

/* The processor time of @rp since this was asked last; 0 in between, but where
 * nothing says that it ran. */
static uint64_t ran_ns(const struct range_monitor *m, struct range_part *rp,
		       uint64_t now_ns, bool any)
{
	if (any && now_ns < rp->asked_ns + ASK_NS)
		return 0;
	uint64_t run_ns = tproc_cpu_ns(rp->proc);
	uint64_t ran = sat_sub_u64(run_ns, rp->run_ns);
	rp->run_ns = run_ns;
	rp->asked_ns = now_ns;
	return ran + range_asleep_ns(m, rp);
}

unsigned range_part_sharing(const struct range_monitor *m,
			    const struct range_part *rp)
{
	return (unsigned)max_u64(rp->nr_sharing, range_cheap_nr(&m->cheap));
}

/* @rp's part of @ns that its process has run: each window that costs something
 * has as much of that as any other one, of whichever file. */
static uint64_t share_of(const struct range_part *rp, uint64_t ns)
{
	uint64_t own = range_duty_nr_plants(&rp->duty), all = 0;
	for (size_t i = 0; i < rp->owner->nr; i++)
		all += range_duty_nr_plants(&rp->owner->part[i]->duty);
	return own >= all ? ns : max_u64(ns * own / all, ns > 0);
}

void range_part_tick(struct range_monitor *m, struct range_part *rp,
		     uint64_t now_ns)
{
	if (rp->is_unloaded || rp->is_asleep)
		return;
	range_poll(m, rp, now_ns);
	range_watch_more(m, rp);
	range_watch_tick(m, rp, now_ns);
}

bool range_part_steps(const struct range_part *rp, uint64_t now_ns, bool early)
{
	if (rp->trial.is_on)
		return now_ns >= rp->trial.until_ns;
	return rp->ranges && !rp->is_unloaded && !rp->is_asleep &&
	       now_ns >= (early ? range_duty_early_ns(&rp->duty)
				: range_duty_due_ns(&rp->duty));
}

size_t range_part_step(struct range_monitor *m, struct range_part *rp,
		       uint64_t now_ns)
{
	uint64_t cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	size_t nr = range_part_charge(m, rp, false);
	weigh(m, rp, nr);
	const struct range_duty_state s = {
		.now_ns = now_ns,
		.run_ns = share_of(rp, ran_ns(m, rp, now_ns, nr)),
		.base_ns = ledger_base_ns(m->ledger),
		.room_ns = ledger_room_ns(m->ledger),
		.window_room_ns = ledger_window_room_ns(m->ledger),
		.stop_ns = rp->stop_ns,
		.took_ns = rp->took_ns,
		.look_ns = rp->look_ns * range_part_sharing(m, rp),
		.taken_ppk = m->taken.ppk,
		.nr_threads = (unsigned)max_u64(rp->nr_threads, 1),
	};
	rp->changes = range_duty_step(&rp->duty, m->cost, nr, &s);
	cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	rp->look_ns = (rp->look_ns * 7 + cpu_ns) / 8;
	rp->has_stepped = true;
	return nr;
}

void range_part_stepped(struct range_part *rp, uint64_t now_ns, int64_t room_ns)
{
	rp->has_stepped = false;
	if (range_rate_is_due(&rp->rate, now_ns))
		measure(rp);
	range_start_some(rp, smco_now_ns(), room_ns);
}

uint64_t range_part_due_ns(const struct range_part *rp)
{
	uint64_t due_ns = UINT64_MAX;
	if (rp->is_unloaded || rp->is_asleep)
		return due_ns;
	if (rp->ranges)
		due_ns = range_duty_due_ns(&rp->duty);
	if (rp->trial.is_on)
		due_ns = rp->trial.until_ns;
	if (rp->unit->nr_polls || rp->unit->nr_pointees)
		due_ns = min_u64(due_ns, rp->next_poll_ns);
	if (rp->turn_control)
		due_ns = min_u64(due_ns, rp->watch_due_ns);
	return due_ns;
}
