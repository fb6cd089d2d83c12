/* Which events are counted, and how the trace names them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pmu/open.h"
#include "supervisor/monitor/counters-private.h"

/* No event that can be typed is called so. */
#define HIDDEN_SWITCHES "(context-switches)"
#define HIDDEN_CALLS	"(system calls)"

static bool is_call(const struct pmu_event *ev)
{
	return !strcmp(ev->name, "raw_syscalls:sys_enter") ||
	       !strcmp(ev->name, HIDDEN_CALLS);
}

/* Are there some whose price is that of all calls, and not all? */
static bool lacks_calls(const struct counter_plan *plan)
{
	bool any = false;
	for (size_t i = 0; i < plan->nr_events; i++) {
		any |= plan->event[i].call_classes ||
		       (plan->event[i].is_tallied && !plan->event[i].is_hit);
		if (is_call(&plan->event[i]))
			return false;
	}
	return any;
}

static bool lacks_switches(const struct counter_plan *plan)
{
	for (size_t i = 0; i < plan->nr_events; i++)
		if (plan->event[i].role == PMU_SWITCHES)
			return false;
	return true;
}

static bool append(struct counters *c, struct pmu_event *all, size_t *nr,
		   const char *name, const char *hidden, bool with_creator)
{
	struct pmu_event *ev = &all[*nr];
	if (*nr == PMU_MAX_EVENTS || pmu_event_parse(name, ev, NULL))
		return false;
	counters_tally_events(c, ev, 1);
	if (pmu_try(ev, NULL))
		return false;
	snprintf(ev->name, sizeof(ev->name), "%s", hidden);
	ev->is_hidden = true;
	ev->is_with_creator = with_creator;
	++*nr;
	return true;
}

/* What is allocated for a child's counters is allocated in its creator's name:
 * once more for each kind of event that it inherits. */
static bool counts_allocations(const struct pmu_event *events, size_t nr)
{
	static const char memory[] = "kmem:";
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(events[i].name, memory, sizeof(memory) - 1))
			return true;
	return false;
}

/*
 * Context switches are counted in any case, where they may be: each costs a
 * little more with counters, which the ledger has to know. So does each system
 * call if those of a class are counted. Another one of the first stands beside
 * tracepoints: a reading of these then tells whether the thread had left its
 * CPU, so that it is not read again for nothing; not where it would be seen.
 */
static void add_hidden(struct counters *c, const struct pmu_event *events,
		       size_t nr, const struct counter_every *every,
		       struct counter_plan *plan)
{
	struct counter_plan more;
	_cleanup_free_ struct pmu_event *all = calloc(nr + 3, sizeof(*all));
	if (!all)
		return;
	memcpy(all, events, nr * sizeof(*all));
	bool any =
		lacks_switches(plan) &&
		append(c, all, &nr, "context-switches", HIDDEN_SWITCHES, false);
	any |= lacks_calls(plan) &&
	       append(c, all, &nr, "raw_syscalls:sys_enter", HIDDEN_CALLS,
		      false);
	any |= any && !every && !counts_allocations(events, nr) &&
	       append(c, all, &nr, "context-switches", HIDDEN_SWITCHES, true);
	if (!any ||
	    counter_plan_make(all, nr, c->p.if_available, every, &more, NULL))
		return;
	counter_plan_deinit(plan);
	*plan = more;
}

static int make_plan(struct counters *c, const struct counter_every *every,
		     struct counter_plan *ret, struct smco_err *err)
{
	const struct counters_params *p = &c->p;
	struct pmu_event *events;
	size_t nr;
	if (!p->events)
		return counter_plan_default(every, ret, err);
	int rc = pmu_event_parse_list(p->events, &events, &nr, err);
	if (rc)
		return rc;
	counters_tally_events(c, events, nr);
	rc = counter_plan_make(events, nr, p->if_available, every, ret, err);
	if (!rc)
		add_hidden(c, events, nr, every, ret);
	free(events);
	return rc;
}

bool counters_has_stops(const struct pmu_event *ev)
{
	return ev->role == PMU_SWITCHES ||
	       !strcmp(ev->name, "sched:sched_switch");
}

/* A stop is answered by us, who are woken up by it, perhaps on another CPU;
 * registers and the rseq area go along at each switch. */
static const char *const of_stops[] = {
	"sched:sched_waking",
	"sched:sched_wakeup",
	"sched:sched_migrate_task",
	"sched:sched_stat_runtime",
	"ipi:ipi_send_cpu",
	"csd:csd_queue_cpu",
	"irq_vectors:reschedule_entry",
	"irq_vectors:reschedule_exit",
	"rseq:rseq_update",
	"x86_fpu:x86_fpu_regs_activated",
	"x86_fpu:x86_fpu_regs_deactivated",
	"rcu:rcu_utilization",
	NULL,
};

/* Who is let go where we run is taken to another CPU, if the scheduler likes
 * that better. Not said where nobody was moved. */
static const char *const of_moves[] = {"cpu-migrations", "migrations", NULL};

/* The kernel interrupts a thread that runs to read its counters. */
static const char *const of_readings[] = {
	"irq_vectors:call_function_single_entry",
	"irq_vectors:call_function_single_exit",
	"csd:csd_function_entry",
	"csd:csd_function_exit",
	NULL,
};

static bool is_in(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

/* ", up to 5 @what of ours are in each of A, B" behind @len bytes of @buf, if
 * events that are counted are in @names and are not left out. */
static size_t say_ours(const struct counters *c, const char *const *names,
		       uint64_t nr, const char *what, char *buf, size_t size,
		       size_t len)
{
	bool any = false;
	for (size_t i = 0; nr && i < c->plan.nr_events; i++) {
		const char *name = c->plan.event[i].name;
		if (!is_in(name, names) || len >= size ||
		    (counters_is_sieved(c, i) &&
		     (names != of_readings || c->heeds_calls)))
			continue;
		if (!any)
			len += (size_t)snprintf(
				buf + len, size - len,
				"%sup to %ju %s of ours are in each of ",
				len ? "; " : "", (uintmax_t)nr, what);
		if (len < size)
			len += (size_t)snprintf(buf + len, size - len, "%s%s",
						any ? ", " : "", name);
		any = true;
	}
	return len;
}

bool counters_say_ours(const struct counters *c, char *buf, size_t size)
{
	size_t len = say_ours(c, of_stops, c->nr_stops, "stops", buf, size, 0);
	len = say_ours(c, of_moves, c->nr_moves ? c->nr_stops : 0, "stops", buf,
		       size, len);
	len = say_ours(c, of_readings, c->nr_readings, "readings", buf, size,
		       len);
	return len > 0;
}

static bool counts_all(const struct pmu_event *ev)
{
	return !ev->attr.exclude_kernel && !ev->attr.exclude_user;
}

/* Where context switches are counted, of both levels, and system calls. */
static void find_charged(struct counters *c)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < c->plan.group[g].nr; i++) {
			const struct pmu_event *ev =
				&c->plan.event[c->plan.group[g].first + i];
			if (!c->has_switches && ev->role == PMU_SWITCHES &&
			    counts_all(ev) && !ev->is_with_creator) {
				c->has_switches = true;
				c->switch_group = g;
				c->switch_index = i;
			} else if (!c->has_calls && is_call(ev)) {
				c->has_calls = true;
				c->call_group = g;
				c->call_index = i;
			} else if (!c->has_moves && is_in(ev->name, of_moves)) {
				c->has_moves = true;
				c->move_group = g;
				c->move_index = i;
			}
		}
}

/* What the scheduler's statistics count is ns (__perf_count), and how often
 * they are hit is not known. */
static bool is_time(const struct pmu_event *ev)
{
	static const char statistics[] = "sched:sched_stat_";
	return !strncmp(ev->name, statistics, sizeof(statistics) - 1);
}

static bool is_hit(const struct pmu_event *ev)
{
	return ev->attr.type == PERF_TYPE_TRACEPOINT && !ev->filter &&
	       !is_call(ev) && !is_time(ev);
}

uint64_t counters_nr_hits(const struct counters *c, size_t group,
			  const struct counter_sum *sum)
{
	const struct counter_group *g = &c->plan.group[group];
	uint64_t nr = 0;
	for (size_t i = 0; i < g->nr; i++)
		if (is_hit(&c->plan.event[g->first + i]))
			nr += sum->value[i];
	return nr;
}

/* That of system calls, which we can have happen. */
uint64_t counters_hit_cost_ns(const struct counters *c)
{
	struct counter_plan one;
	struct pmu_event call;
	bool any = false;
	for (size_t i = 0; i < c->plan.nr_events; i++)
		any |= is_hit(&c->plan.event[i]);
	if (!any || pmu_event_parse("raw_syscalls:sys_enter", &call, NULL) ||
	    counter_plan_make(&call, 1, false, NULL, &one, NULL))
		return 0;
	int fd = counters_sieve_one(c, &call);
	uint64_t cost_ns = counter_call_cost_ns(&one, COUNTER_ALL, NULL);
	if (fd >= 0)
		close(fd);
	counter_plan_deinit(&one);
	return cost_ns;
}

int counters_plan(struct counters *c, struct smco_err *err)
{
	if (c->p.every_nr) {
		int rc = pmu_event_parse(c->p.every_event, &c->every.ev, err);
		if (rc)
			return rc;
		c->every.nr = c->p.every_nr;
	}
	int rc = make_plan(c, c->every.nr ? &c->every : NULL, &c->plan, err);
	if (rc)
		return rc;
	rc = counters_tally_open(c, err);
	if (rc) {
		counter_plan_deinit(&c->plan);
		return rc;
	}
	find_charged(c);
	c->inherits = counter_plan_inherit(&c->plan, c->p.follows);
	counters_jot_open(c);
	counters_sieve_open(c);
	return 0;
}

uint64_t counters_read_cost_ns(const struct counter_plan *plan)
{
	struct counter_thread *self;
	struct counter_sum sum;
	uint64_t best_ns = UINT64_MAX;
	if (counter_thread_open(plan, gettid(), COUNTER_NOW, &self, NULL))
		return 0;
	for (int i = 0; i < 20; i++) {
		uint64_t began_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (size_t g = 0; g < plan->nr_groups; g++)
			counter_thread_take(self, g, &sum, NULL);
		uint64_t took_ns =
			smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
		if (took_ns < best_ns)
			best_ns = took_ns;
	}
	counter_thread_close(self);
	return best_ns;
}

size_t counters_nr_shown(const struct counters *c, size_t group)
{
	const struct counter_group *g = &c->plan.group[group];
	size_t nr = g->nr - g->has_every;
	/* They were added as the last. */
	while (nr && c->plan.event[g->first + nr - 1].name[0] == '(')
		nr--;
	return nr;
}

static void put(struct counters *c, const char *key, const char *what,
		const char *value)
{
	char whole[96];
	snprintf(whole, sizeof(whole), "%s%s", key, what);
	c->p.put_meta(c->p.ctx, whole, value);
}

static const char *level_of(const struct pmu_event *ev)
{
	if (ev->attr.exclude_kernel == ev->attr.exclude_user ||
	    !strcmp(ev->unit, "ns"))
		return NULL; /* both; clocks know no levels */
	return ev->attr.exclude_kernel ? "user" : "kernel";
}

static void put_event(struct counters *c, size_t group, size_t i)
{
	const struct pmu_event *ev =
		&c->plan.event[c->plan.group[group].first + i];
	char key[64], text[40];
	snprintf(key, sizeof(key), "counter.%zu.%zu", group, i);
	put(c, key, "", ev->name);
	put(c, key, ".role", pmu_role_name(ev->role));
	if (*ev->unit)
		put(c, key, ".unit", ev->unit);
	if (ev->scale != 1) {
		snprintf(text, sizeof(text), "%.17g", ev->scale);
		put(c, key, ".scale", text);
	}
	if (level_of(ev))
		put(c, key, ".level", level_of(ev));
}

void counters_put_meta(struct counters *c)
{
	char text[32];
	snprintf(text, sizeof(text), "%ju", (uintmax_t)c->p.interval_ns);
	put(c, "counters", ".interval_ns", text);
	if (c->every.nr) {
		snprintf(text, sizeof(text), "%ju", (uintmax_t)c->every.nr);
		put(c, "counters", ".every", text);
		put(c, "counters", ".every_event", c->every.ev.name);
	}
	if (c->plan.missing[0])
		put(c, "counters", ".missing", c->plan.missing);
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < counters_nr_shown(c, g); i++)
			put_event(c, g, i);
}
