/* Which events are counted, and how the trace names them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmu/open.h"
#include "supervisor/monitor/counters-private.h"

/* No event that can be typed is called so. */
#define HIDDEN "(context-switches)"

/* Context switches are counted in any case, where they may be: each costs a
 * little more with counters, which the ledger has to know. */
static void add_switches(const struct pmu_event *events, size_t nr,
			 bool if_available, const struct counter_every *every,
			 struct counter_plan *plan)
{
	struct counter_plan more;
	_cleanup_free_ struct pmu_event *all = calloc(nr + 1, sizeof(*all));
	for (size_t i = 0; i < plan->nr_events; i++)
		if (plan->event[i].role == PMU_SWITCHES)
			return;
	if (!all || nr == PMU_MAX_EVENTS ||
	    pmu_event_parse("context-switches", &all[nr], NULL) ||
	    pmu_try(&all[nr], NULL))
		return;
	memcpy(all, events, nr * sizeof(*all));
	snprintf(all[nr].name, sizeof(all[nr].name), HIDDEN);
	if (counter_plan_make(all, nr + 1, if_available, every, &more, NULL))
		return;
	counter_plan_deinit(plan);
	*plan = more;
}

static int make_plan(const struct counters_params *p,
		     const struct counter_every *every,
		     struct counter_plan *ret, struct smco_err *err)
{
	struct pmu_event *events;
	size_t nr;
	if (!p->events)
		return counter_plan_default(every, ret, err);
	if (!strcmp(p->events, "os"))
		return counter_plan_os(every, ret, err);
	int rc = pmu_event_parse_list(p->events, &events, &nr, err);
	if (rc)
		return rc;
	rc = counter_plan_make(events, nr, p->if_available, every, ret, err);
	if (!rc)
		add_switches(events, nr, p->if_available, every, ret);
	free(events);
	return rc;
}

/* Where context switches are counted, of both levels. */
static void find_switches(struct counters *c)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < c->plan.group[g].nr; i++) {
			const struct pmu_event *ev =
				&c->plan.event[c->plan.group[g].first + i];
			if (ev->role != PMU_SWITCHES ||
			    ev->attr.exclude_kernel || ev->attr.exclude_user)
				continue;
			c->has_switches = true;
			c->is_hidden = !strcmp(ev->name, HIDDEN);
			c->switch_group = g;
			c->switch_index = i;
			return;
		}
}

int counters_plan(struct counters *c, struct smco_err *err)
{
	if (c->p.every_nr) {
		int rc = pmu_event_parse(c->p.every_event, &c->every.ev, err);
		if (rc)
			return rc;
		c->every.nr = c->p.every_nr;
	}
	int rc =
		make_plan(&c->p, c->every.nr ? &c->every : NULL, &c->plan, err);
	if (!rc)
		find_switches(c);
	return rc;
}

size_t counters_nr_shown(const struct counters *c, size_t group)
{
	const struct counter_group *g = &c->plan.group[group];
	bool hides = c->is_hidden && group == c->switch_group;
	return g->nr - hides - g->has_every;
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
