#include "supervisor/monitor/range-monitor.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/nap.h"
#include "supervisor/monitor/range-private.h"
#include "supervisor/probe/hop.h"
#include "supervisor/probe/range-cost.h"

#define IDLE_NS (20 * NSEC_PER_MSEC)
/* So much counts of what waking up took. */
#define MOST_WAKE_NS (200 * NSEC_PER_USEC)

/* At first, with more than one CPU, looking is taken to cost little: a program
 * begins with all sensors in. */
static uint32_t taken_at_first(void)
{
	cpu_set_t set;
	bool one =
		sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) < 2;
	return one ? TAKEN_ALL : TAKEN_ALL / 8;
}

struct range_monitor *range_monitor_create(const struct range_params *params,
					   struct ledger *l)
{
	struct range_monitor *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->p = *params;
	m->ledger = l;
	taken_init(&m->taken, taken_at_first());
	m->cache_dir = params->use_cache ? cachedir_open() : -1;
	/* Before this thread begins to follow the program to its CPU. */
	sched_getaffinity(0, sizeof(m->cpus), &m->cpus);
	hop_prepare();
	/* It takes milliseconds, which the program would stand for later. */
	range_cost_here();
	m->buf = malloc(RANGE_POLL_BYTES);
	if (m->buf)
		return m;
	range_monitor_destroy(m);
	return NULL;
}

void range_monitor_destroy(struct range_monitor *m)
{
	if (!m)
		return;
	range_reader_busy(m, UINT64_MAX);
	for (struct range_part *rp = m->parts, *next; rp; rp = next) {
		next = rp->next;
		range_watch_stop(m, rp);
		range_part_free(rp);
	}
	for (struct range_proc *p = m->procs, *next; p; p = next) {
		next = p->next;
		free(p->part);
		free(p);
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

int range_expect(struct range_monitor *m, const char *path, const char *open,
		 bool is_library, struct smco_err *err)
{
	if (is_library && !range_library_selected(&m->p.select, path))
		return 0;
	m->has_library |= is_library;
	if (!range_unit_get(m, path, open, is_library))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	/* Whatever it begins may want them, and would have to stand for it. */
	range_watch_open(m);
	return 0;
}

static bool has_elements(const struct range_unit *u)
{
	for (size_t i = 0; u->vars && i < u->vars->nr_vars; i++)
		if (u->vars->vars[i].flags & VAR_ELEMENT)
			return true;
	return false;
}

static int explain_elements(const struct range_monitor *m, struct smco_err *err)
{
	struct range_nearest n = {.select = &m->p.select};
	for (const struct range_unit *u = m->units; u; u = u->next)
		for (size_t i = 0; u->vars && i < u->vars->nr_vars; i++)
			range_nearest_see_array(&n, &u->vars->vars[i]);
	return range_nearest_explain_elements(&n, err);
}

int range_check(const struct range_monitor *m, struct smco_err *err)
{
	const struct range_unit *known = NULL, *none = NULL;
	uint64_t found = 0, nr = m->p.select.paths.nr;
	/* The program's is the last. */
	const struct range_unit *first = NULL;
	bool any_elements = false;
	for (const struct range_unit *u = m->units; u; u = u->next) {
		any_elements |= m->p.select.elements.nr && has_elements(u);
		if (u->vars && !u->no_match)
			known = u;
		if (u->no_match)
			none = u;
		if (u->vars)
			first = u;
		found |= u->found_paths;
	}
	const struct range_globs *libraries = &m->p.select.libraries;
	if (libraries->nr && strcmp(libraries->glob[0], "none") != 0 &&
	    !m->has_library)
		return smco_fail(err, SMCO_FORMAT, 0,
				 "--library '%.60s': it is linked with no such "
				 "library (--if-available waits for those that "
				 "are loaded later)",
				 libraries->glob[0]);
	const struct range_globs *elements = &m->p.select.elements;
	if (elements->nr && known && !any_elements)
		return explain_elements(m, err);
	if (none && !known && range_select_any(&m->p.select))
		return smco_fail(err, SMCO_FORMAT, 0, "%s", none->why);
	if (nr && first && (nr == 64 ? ~found : found + 1 != 1ULL << nr))
		return smco_fail(err, SMCO_FORMAT, 0, "--watch %s",
				 first->why_not.msg);
	return 0;
}

/* Others may have done something of their own meanwhile. */
static void learn_wake(struct range_monitor *m)
{
	uint64_t cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (m->left_cpu_ns)
		m->wake_ns = (m->wake_ns * 7 +
			      min_u64(cpu_ns - m->left_cpu_ns, MOST_WAKE_NS)) /
			     8;
}

/* Somebody is to look at what sensors cost. */
static bool any_steps(const struct range_monitor *m, uint64_t now_ns)
{
	for (const struct range_proc *p = m->procs; p; p = p->next)
		for (size_t i = 0; i < p->nr; i++)
			if (range_part_steps(p->part[i], now_ns, false))
				return true;
	return false;
}

void range_tick(struct range_monitor *m, uint64_t now_ns, uint64_t taken_ns)
{
	learn_wake(m);
	taken_learn(&m->taken, smco_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		    taken_ns);
	m->next_tick_ns = now_ns + IDLE_NS;
	range_reader_busy(m, 0);
	bool steps = any_steps(m, now_ns);
	for (struct range_proc *p = m->procs; p; p = p->next) {
		range_proc_wake(m, p, now_ns);
		range_proc_look(m, p, now_ns);
		for (size_t i = 0; i < p->nr; i++)
			range_part_tick(m, p->part[i], now_ns);
		if (steps)
			range_proc_step(m, p, now_ns);
		for (size_t i = 0; i < p->nr; i++) {
			uint64_t due_ns = range_part_due_ns(p->part[i]);
			m->next_tick_ns = min_u64(m->next_tick_ns, due_ns);
		}
	}
	m->left_cpu_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t range_due_ns(const struct range_monitor *m)
{
	return m->procs ? m->next_tick_ns : UINT64_MAX;
}
