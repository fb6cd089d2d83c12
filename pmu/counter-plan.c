/* Which events stand in which group. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pmu/counter-private.h"
#include "pmu/event-private.h"
#include "pmu/open.h"

/* Events of different kinds never share a group: where one has to wait for a
 * counter, the whole group does. */
static uint64_t kind_of(const struct pmu_event *ev)
{
	switch (ev->attr.type) {
	case PERF_TYPE_SOFTWARE:
	case PERF_TYPE_TRACEPOINT:
		return 1ull << 32;
	case PERF_TYPE_HARDWARE:
	case PERF_TYPE_HW_CACHE:
	case PERF_TYPE_RAW:
		return 1ull << 33;
	default:
		/* The kernel reads it as it reads its clocks. */
		return ev->role == PMU_TSC ? 1ull << 32 : ev->attr.type;
	}
}

/* Subsystems of tracepoints that have to do with time, CPUs and others, not
 * only with what a thread gets done. */
static const char *const of_time[] = {
	"sched:",	"timer:",   "timer_migration:",
	"hrtimer:",	"tick:",    "irq:",
	"irq_vectors:", "rcu:",	    "ipi:",
	"csd:",		"msr:",	    "tlb:",
	"workqueue:",	"power:",   "lock:",
	"rseq:",	"x86_fpu:", "xen:",
	"hyperv:",	"nmi:",	    "context_tracking",
	NULL,
};

static bool goes_by_work(const struct pmu_event *ev)
{
	for (const char *const *s = of_time; *s; s++)
		if (!strncmp(ev->name, *s, strlen(*s)))
			return false;
	return ev->attr.type == PERF_TYPE_TRACEPOINT ||
	       (ev->is_tallied && !ev->is_hit);
}

/* Can the machine count these at once? Tried on this thread, not counting. */
static bool fit_together(const struct pmu_event *const *evs, size_t nr)
{
	int fd[COUNTER_GROUP_MAX];
	size_t n = 0;
	for (; n < nr; n++) {
		struct perf_event_attr attr = evs[n]->attr;
		attr.disabled = n == 0;
		attr.pinned = n == 0 && attr.pinned;
		attr.exclusive = n == 0 && attr.exclusive;
		attr.read_format = PERF_FORMAT_GROUP;
		if (evs[0]->attr.sample_period)
			counter_every_clock(&attr);
		fd[n] = pmu_open(&attr, 0, -1, n ? fd[0] : -1);
		if (fd[n] < 0)
			break;
	}
	for (size_t i = 0; i < n; i++)
		close(fd[i]);
	return n == nr;
}

struct builder {
	const struct pmu_event *every; /* NULL = none; beside each group's */
	const struct pmu_event *member[COUNTER_MAX_GROUPS][COUNTER_GROUP_MAX];
	bool is_closed[COUNTER_MAX_GROUPS]; /* it is as somebody wants it */
	size_t nr[COUNTER_MAX_GROUPS];
	size_t nr_groups;
};

static bool may_share(const struct builder *b, const struct pmu_event *leader,
		      const struct pmu_event *ev)
{
	/* One that inherits has the whole group do so; who samples does not.
	 * What costs each call much is counted less often than all calls. */
	if (!b->every &&
	    (counter_has_history(ev) != counter_has_history(leader) ||
	     !ev->filter != !leader->filter))
		return false;
	/* Their times are not told alike. */
	bool needs_none = b->every ? ev->is_hidden : ev->is_with_creator;
	if (!needs_none && goes_by_work(ev) != goes_by_work(leader))
		return false;
	return !ev->is_machine_wide && !leader->is_machine_wide &&
	       kind_of(leader) == kind_of(ev) && !ev->attr.exclusive &&
	       !leader->attr.exclusive &&
	       leader->attr.pinned == ev->attr.pinned;
}

/* Is there room for @ev in group @g, and for what ends intervals? */
static bool join(struct builder *b, size_t g, const struct pmu_event *ev)
{
	const struct pmu_event *all[COUNTER_GROUP_MAX];
	size_t nr = b->nr[g] + 1;
	if (nr + !!b->every > COUNTER_GROUP_MAX)
		return false;
	b->member[g][nr - 1] = ev;
	all[0] = b->every;
	memcpy(all + !!b->every, b->member[g], nr * sizeof(all[0]));
	if (!fit_together(all, nr + !!b->every))
		return false;
	b->nr[g] = nr;
	return true;
}

static int no_room(struct smco_err *err)
{
	return smco_fail(err, SMCO_UNSUPPORTED, 0,
			 "more than %d groups of events", COUNTER_MAX_GROUPS);
}

/* One that tells of the first group what other hidden ones by themselves know:
 * no harm if there is no place for it. */
static void place_with_creators(struct builder *b, const struct pmu_event *ev)
{
	if (b->nr_groups && b->member[b->nr_groups - 1][0]->is_hidden &&
	    may_share(b, b->member[0][0], ev))
		join(b, 0, ev);
}

static bool place(struct builder *b, const struct pmu_event *ev)
{
	if (ev->is_with_creator) {
		place_with_creators(b, ev);
		return true;
	}
	for (size_t g = 0; g < b->nr_groups; g++)
		if ((!b->is_closed[g] || ev->is_hidden) &&
		    may_share(b, b->member[g][0], ev) && join(b, g, ev))
			return true;
	if (b->nr_groups == COUNTER_MAX_GROUPS)
		return false;
	b->member[b->nr_groups][0] = ev;
	b->nr[b->nr_groups++] = 1;
	return true;
}

/* The first @nr stand together because somebody wants it, whatever they are;
 * SMCO_FORMAT: they cannot. */
static int place_group(struct builder *b, const struct pmu_event *evs,
		       size_t nr, struct smco_err *err)
{
	size_t g = b->nr_groups;
	if (g == COUNTER_MAX_GROUPS)
		return no_room(err);
	if (nr + !!b->every > COUNTER_GROUP_MAX)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "the group of '%.80s' has more than %d events",
				 evs[0].name, COUNTER_GROUP_MAX - !!b->every);
	for (size_t i = 0; i < nr; i++)
		if (evs[i].is_machine_wide)
			return smco_fail(err, SMCO_FORMAT, 0,
					 "'%.100s' is counted for the machine, "
					 "not for a thread: it stands in no "
					 "group",
					 evs[i].name);
	for (size_t i = 0; i < nr; i++)
		if (!join(b, g, &evs[i])) {
			b->nr[g] = 0;
			return smco_fail(err, SMCO_UNSUPPORTED, 0,
					 "the group of '%.80s' cannot be "
					 "counted at once from '%.80s' on; "
					 "with a W behind it, '{...}:W', its "
					 "events may be counted apart",
					 evs[0].name, evs[i].name);
		}
	b->is_closed[g] = true;
	b->nr_groups++;
	return 0;
}

/* The first of @evs, and those that are to be counted with it: so many, or an
 * error. */
static ssize_t place_first(struct builder *b, const struct pmu_event *evs,
			   size_t nr, struct smco_err *err)
{
	size_t n = 1;
	while (n < nr && evs[0].group && evs[n].group == evs[0].group)
		n++;
	if (evs[0].group) {
		int rc = place_group(b, evs, n, err);
		if (!rc || !evs[0].is_weak ||
		    b->nr_groups == COUNTER_MAX_GROUPS)
			return rc ? rc : (ssize_t)n;
	}
	for (size_t i = 0; i < n; i++)
		if (!place(b, &evs[i]))
			return no_room(err);
	return (ssize_t)n;
}

static bool all_go_by_work(const struct pmu_event *const *member, size_t nr)
{
	bool any = false;
	for (size_t i = 0; i < nr; i++) {
		if (!member[i]->is_hidden && !goes_by_work(member[i]))
			return false;
		any |= !member[i]->is_hidden;
	}
	return any;
}

static void note_kinds(struct counter_group *g,
		       const struct pmu_event *const *member)
{
	g->is_machine_wide = member[0]->is_machine_wide;
	g->goes_by_work = all_go_by_work(member, g->nr);
	for (size_t i = 0; i < g->nr; i++) {
		g->is_traced |= member[i]->attr.type == PERF_TYPE_TRACEPOINT ||
				(member[i]->is_tallied && !member[i]->is_hit);
		g->has_filters |= member[i]->filter != NULL;
	}
}

/* The groups one after the other. */
static int lay_out(const struct builder *b, struct counter_plan *p)
{
	size_t nr = 0;
	p->event =
		calloc(PMU_MAX_EVENTS + COUNTER_MAX_GROUPS, sizeof(*p->event));
	if (!p->event)
		return SMCO_NOMEM;
	for (size_t g = 0; g < b->nr_groups; g++) {
		p->group[g] =
			(struct counter_group){.first = nr, .nr = b->nr[g]};
		note_kinds(&p->group[g], b->member[g]);
		for (size_t i = 0; i < b->nr[g]; i++)
			p->event[nr++] = *b->member[g][i];
		if (b->every && !p->group[g].is_machine_wide) {
			p->event[nr] = *b->every;
			p->event[nr].attr.pinned = b->member[g][0]->attr.pinned;
			p->event[nr++].attr.exclusive =
				b->member[g][0]->attr.exclusive;
			p->group[g].nr++;
			p->group[g].has_every = true;
		}
	}
	p->nr_events = nr;
	p->nr_groups = b->nr_groups;
	return 0;
}

/* Names of those that are here, to say what can be had instead; @all have been
 * left out already. */
static int not_here(const struct smco_err *why, bool all, struct smco_err *err)
{
	char list[120];
	size_t len = 0;
	list[0] = '\0';
	for (const struct software_event *s = software_events; s->name; s++) {
		struct pmu_event ev;
		if (s->role == PMU_OTHER ||
		    pmu_event_parse(s->name, &ev, NULL) || pmu_try(&ev, NULL))
			continue;
		int n = snprintf(list + len, sizeof(list) - len, "%s%s",
				 len ? ", " : "", s->name);
		if ((size_t)n >= sizeof(list) - len) {
			list[len] = '\0';
			break;
		}
		len += (size_t)n;
	}
	return smco_fail(err, why->code, 0,
			 "%s%s; there %s%s (--list-events has all%s)",
			 all ? "nothing is left to count: " : "", why->msg,
			 len ? "are " : "is nothing", list,
			 all ? "" : ", --if-available leaves others out");
}

#define MAX_REASONS 6

/* Several events are missing for one reason as a rule. */
struct missing {
	struct {
		char events[240];
		char why[300];
	} reason[MAX_REASONS];
	size_t nr;
};

/* What @msg says behind the event's name: "'NAME' is ...", "event 'NAME': ...",
 * "unknown event 'NAME'; ...". */
static const char *reason_in(const char *msg, const char *name)
{
	char quoted[sizeof(((struct pmu_event *)NULL)->name) + 2];
	snprintf(quoted, sizeof(quoted), "'%.100s'", name);
	const char *at = strstr(msg, quoted);
	if (!at)
		return msg;
	at += strlen(quoted);
	return at + strspn(at, ":; ");
}

static void note_missing(struct missing *m, const struct pmu_event *ev,
			 const struct smco_err *err)
{
	const char *why = reason_in(err->msg, ev->name);
	size_t i = 0;
	while (i < m->nr && strcmp(m->reason[i].why, why) != 0)
		i++;
	if (i == MAX_REASONS)
		return;
	char *events = m->reason[i].events;
	size_t len = strlen(events), room = sizeof(m->reason[i].events) - len;
	if (i == m->nr) {
		snprintf(m->reason[i].why, sizeof(m->reason[i].why), "%.299s",
			 why);
		m->nr++;
	}
	if (room > strlen(ev->name) + 3)
		snprintf(events + len, room, "%s%s", len ? ", " : "", ev->name);
}

/* "a, b: why; c: why not". */
static void say_missing(const struct missing *m, char *buf, size_t size)
{
	size_t len = 0;
	buf[0] = '\0';
	for (size_t i = 0; i < m->nr && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%s: %s",
					i ? "; " : "", m->reason[i].events,
					m->reason[i].why);
}

/* Can threads have intervals of @every? *ret is what is opened. */
static int try_every(const struct counter_every *every, struct pmu_event *ret,
		     struct smco_err *err)
{
	*ret = counter_every_event(every);
	if (ret->is_machine_wide)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "'%.100s' is counted for the machine, not for "
				 "a thread: it ends no intervals",
				 ret->name);
	return pmu_try(ret, err);
}

static int make(const struct pmu_event *events, size_t nr, bool if_available,
		const struct counter_every *every, struct counter_plan *p,
		struct smco_err *err)
{
	struct pmu_event ends;
	struct smco_err why = {0};
	_cleanup_free_ struct builder *b = calloc(1, sizeof(*b));
	_cleanup_free_ struct pmu_event *tried = calloc(nr + 1, sizeof(*tried));
	_cleanup_free_ struct missing *missing = calloc(1, sizeof(*missing));
	if (!b || !tried || !missing)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (every) {
		int rc = try_every(every, &ends, err);
		if (rc)
			return rc;
		b->every = &ends;
	}
	size_t nr_here = 0;
	for (size_t i = 0; i < nr; i++) {
		tried[nr_here] = events[i];
		if (!pmu_try(&tried[nr_here], &why)) {
			nr_here++;
			continue;
		}
		if (!if_available && !events[i].is_optional)
			return not_here(&why, false, err);
		note_missing(missing, &events[i], &why);
	}
	for (ssize_t i = 0, n; i < (ssize_t)nr_here; i += n) {
		n = place_first(b, &tried[i], nr_here - (size_t)i, err);
		if (n < 0)
			return (int)n;
	}
	if (!b->nr_groups)
		return not_here(&why, if_available, err);
	say_missing(missing, p->missing, sizeof(p->missing));
	if (lay_out(b, p))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	return 0;
}

int counter_plan_make(const struct pmu_event *events, size_t nr,
		      bool if_available, const struct counter_every *every,
		      struct counter_plan *ret, struct smco_err *err)
{
	struct counter_plan p = {0};
	for (size_t i = 0; i < nr; i++)
		pmu_hold(&p.hold, &events[i]);
	if (every)
		pmu_hold(&p.hold, &every->ev);
	int rc = make(events, nr, if_available, every, &p, err);
	if (rc)
		counter_plan_deinit(&p);
	else
		*ret = p;
	return rc;
}

int counter_plan_default(const struct counter_every *every,
			 struct counter_plan *ret, struct smco_err *err)
{
	static const char hardware[] =
		"task-clock,minor-faults,major-faults,context-switches,"
		"cpu-migrations,cycles,instructions,L1-dcache-load-misses,"
		"dTLB-load-misses,LLC-load-misses,branches";
	/* The same, with the clock that stands in for cycles. */
	static const char clock[] =
		"task-clock,minor-faults,major-faults,context-switches,"
		"cpu-migrations,msr/tsc/,cycles,instructions,"
		"L1-dcache-load-misses,dTLB-load-misses,LLC-load-misses,"
		"branches";
	struct pmu_event cycles, *events;
	size_t nr;
	bool has_pmu = !pmu_event_parse("cycles", &cycles, NULL) &&
		       !pmu_try(&cycles, NULL);
	int rc = SMCO_NOTFOUND;
	if (!has_pmu)
		rc = pmu_event_parse_list(clock, &events, &nr, NULL);
	if (rc) /* a kernel without that clock, too */
		rc = pmu_event_parse_list(hardware, &events, &nr, err);
	if (rc)
		return rc;
	rc = counter_plan_make(events, nr, true, every, ret, err);
	free(events);
	return rc;
}

void counter_plan_deinit(struct counter_plan *p)
{
	free(p->event);
	p->event = NULL;
	pmu_hold_end(&p->hold);
	p->nr_events = p->nr_groups = 0;
}
