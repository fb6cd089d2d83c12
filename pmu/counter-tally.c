/* System calls that somebody else counts, among what events have counted. */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include "pmu/counter-private.h"

/* So long a reading may take; else it is tried again, so often. */
#define MOMENT_NS    100000
#define MOMENT_TRIES 5

static bool counts_all_levels(const struct perf_event_attr *a)
{
	return !a->exclude_user && !a->exclude_kernel && !a->exclude_hv &&
	       !a->exclude_guest && !a->exclude_host && !a->exclude_idle &&
	       !a->sample_period;
}

static bool can_be_tallied(const struct pmu_event *ev)
{
	return (ev->call_classes || ev->call_plus_1) && !ev->absent[0] &&
	       counts_all_levels(&ev->attr);
}

/* Rare ones only, where nothing of ours happens: they are counted at any time.
 */
static const char *const rare[] = {"block:", "net:"};

const char *counter_can_tally_hits(const struct pmu_event *ev)
{
	if (ev->attr.type != PERF_TYPE_TRACEPOINT || ev->filter ||
	    ev->not_ours || ev->absent[0] || ev->group ||
	    !counts_all_levels(&ev->attr))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(rare); i++)
		if (!strncmp(ev->name, rare[i], strlen(rare[i])))
			return ev->name + strlen(rare[i]);
	return NULL;
}

static void become_tallied(struct pmu_event *ev)
{
	ev->attr.type = PERF_TYPE_SOFTWARE;
	ev->attr.config = PERF_COUNT_SW_DUMMY;
	ev->filter = ev->not_ours = NULL;
	ev->is_tallied = true;
}

void counter_tally_hits(struct pmu_event *ev, int column)
{
	become_tallied(ev);
	ev->is_hit = ev->is_software = true;
	ev->columns = 1u << column;
}

bool counter_can_tally(const struct pmu_event *events, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (can_be_tallied(&events[i]))
			return true;
	return false;
}

size_t counter_tally_events(struct pmu_event *events, size_t nr,
			    struct call_columns *columns)
{
	size_t nr_tallied = 0;
	for (size_t i = 0; i < nr; i++) {
		if (!can_be_tallied(&events[i]) ||
		    !call_columns_add(columns, &events[i]))
			continue;
		become_tallied(&events[i]);
		nr_tallied++;
	}
	return nr_tallied;
}

void counter_plan_tally(struct counter_plan *p,
			const struct counter_tally *tally,
			const struct call_columns *columns)
{
	p->tally = tally;
	for (size_t i = 0; i < p->nr_events; i++)
		if (p->event[i].is_tallied && !p->event[i].is_hit)
			p->event[i].columns =
				call_columns_of(columns, &p->event[i]);
}

static bool is_tallied(const struct counter_plan *p, size_t group)
{
	const struct counter_group *g = &p->group[group];
	for (size_t i = 0; i < g->nr; i++)
		if (p->event[g->first + i].is_tallied)
			return true;
	return false;
}

int counter_begin_tally(struct counter_thread *t, enum counter_since since,
			struct smco_err *err)
{
	t->place = -1;
	t->waits_for_exec = since == COUNTER_EXEC;
	if (!t->plan->tally || !t->tid)
		return 0;
	t->place = t->plan->tally->add(t->plan->tally->ctx, t->tid);
	return t->place >= 0 ? 0
			     : smco_fail(err, SMCO_UNSUPPORTED, 0,
					 "too many threads to count the system "
					 "calls of");
}

void counter_end_tally(struct counter_thread *t)
{
	if (t->place >= 0)
		t->plan->tally->remove(t->plan->tally->ctx, t->tid, t->place);
	t->place = -1;
}

int counter_thread_place(const struct counter_thread *t)
{
	return t->place;
}

static void read_now(const struct counter_thread *t, uint64_t nr[ALL_COLUMNS])
{
	t->plan->tally->read(t->plan->tally->ctx, t->place, nr);
}

void counter_thread_execs(struct counter_thread *t)
{
	if (t->waits_for_exec && t->place >= 0)
		for (size_t i = 0; i < t->nr; i++)
			read_now(t, t->open[i].uncounted);
	t->waits_for_exec = false;
}

/* One moment of a thread that may be running. */
struct moment {
	uint64_t running_ns, nr[ALL_COLUMNS];
};

/*
 * The group's time and what is tallied cannot be read at once. What is called
 * while the first is being read is half before and half after it, and if that
 * took long, for we had to give up our CPU meanwhile, it is read again.
 */
static bool read_moment(const struct counter_thread *t,
			const struct open_group *o, struct moment *ret)
{
	uint64_t best_ns = UINT64_MAX;
	for (int i = 0; i < MOMENT_TRIES && best_ns > MOMENT_NS; i++) {
		uint64_t before[ALL_COLUMNS], after[ALL_COLUMNS];
		struct counter_reading r;
		uint64_t began_ns = smco_now_ns();
		read_now(t, before);
		if (counter_read_group(o, &r) <= 0)
			return false;
		read_now(t, after);
		uint64_t took_ns = smco_now_ns() - began_ns;
		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		ret->running_ns = r.running_ns;
		for (size_t c = 0; c < ALL_COLUMNS; c++)
			ret->nr[c] = before[c] + (after[c] - before[c]) / 2;
	}
	return true;
}

static void toggle(const struct open_group *o, bool on)
{
	ioctl(o->fd[0], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* Of the group's time what was not between two moments is not counted. */
static void turn_off(struct counter_thread *t, struct open_group *o)
{
	struct moment last;
	struct counter_reading r;
	bool known = read_moment(t, o, &last);
	toggle(o, false);
	if (!known || counter_read_group(o, &r) <= 0)
		return;
	memcpy(o->paused, last.nr, sizeof(o->paused));
	o->last.running_ns += r.running_ns - last.running_ns;
}

static void turn_on(struct counter_thread *t, struct open_group *o)
{
	struct moment first;
	struct counter_reading r;
	bool known = counter_read_group(o, &r) > 0;
	toggle(o, true);
	if (!known || !read_moment(t, o, &first))
		return;
	o->last.running_ns += first.running_ns - r.running_ns;
	for (size_t i = 0; i < ALL_COLUMNS; i++)
		o->uncounted[i] += first.nr[i] - o->paused[i];
}

void counter_turn(struct counter_thread *t, struct open_group *o, bool on)
{
	if (t->place < 0 || !is_tallied(t->plan, o->group))
		toggle(o, on);
	else if (on)
		turn_on(t, o);
	else
		turn_off(t, o);
}

void counter_renew_tally(const struct counter_thread *t, struct open_group *o)
{
	if (t->place < 0 || !is_tallied(t->plan, o->group))
		return;
	read_now(t, o->uncounted);
	read_now(t, o->paused);
}

void counter_add_told(const struct counter_thread *t,
		      const struct open_group *o, const uint64_t *nr,
		      uint64_t *value)
{
	const struct counter_group *g = &t->plan->group[o->group];
	/* Of before its exec, or of before it was paused. */
	if (t->waits_for_exec)
		return;
	for (size_t i = 0; i < g->nr; i++)
		for (size_t c = 0; c < ALL_COLUMNS; c++)
			if (t->plan->event[g->first + i].columns & 1u << c &&
			    nr[c] > o->uncounted[c])
				value[i] += nr[c] - o->uncounted[c];
}

void counter_add_tally(const struct counter_thread *t,
		       const struct open_group *o, uint64_t *value)
{
	uint64_t now[ALL_COLUMNS];
	if (t->place < 0 || !is_tallied(t->plan, o->group))
		return;
	if (o->is_off)
		memcpy(now, o->paused, sizeof(now));
	else
		read_now(t, now);
	counter_add_told(t, o, now, value);
}
