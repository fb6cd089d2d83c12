#include "pmu/counter.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pmu/counter-private.h"
#include "pmu/open.h"
#include "reports/median.h"

/* ----------------------------------------------------------------- open --- */

void counter_close_group(struct open_group *o)
{
	/* Members first: a leader that goes makes each of them one. */
	while (o->nr)
		close(o->fd[--o->nr]);
	o->fd[0] = -1;
}

int counter_open_group(const struct counter_plan *plan, size_t group, pid_t tid,
		       int cpu, enum counter_since since, struct open_group *o,
		       struct smco_err *err)
{
	const struct counter_group *g = &plan->group[group];
	*o = (struct open_group){.group = group,
				 .nr_all = g->nr,
				 .has_every = g->has_every,
				 .switches = counter_find_switches(plan, g)};
	for (size_t i = 0; i < g->nr; i++) {
		size_t place = counter_place(o, i, g->nr);
		const struct pmu_event *ev = &plan->event[g->first + place];
		struct perf_event_attr attr = ev->attr;
		bool leads = i == 0;
		if (!leads && ev->is_tallied && !g->inherits)
			continue;
		attr.read_format = COUNTER_READ_FORMAT;
		if (g->has_every)
			counter_every_clock(&attr);
		attr.inherit = g->inherits;
		attr.inherit_thread = g->inherits && plan->threads_only;
		attr.pinned = leads && attr.pinned;
		attr.exclusive = leads && attr.exclusive;
		/* All of a group begin at once; and one that joins a group that
		 * counts interrupts the CPU that the thread was on, each of
		 * them. */
		attr.disabled = leads;
		attr.enable_on_exec = leads && since == COUNTER_EXEC;
		int fd = pmu_open(&attr, tid, cpu, leads ? -1 : o->fd[0]);
		if (fd >= 0) {
			o->place[o->nr] = place;
			o->fd[o->nr++] = fd;
		}
		if (fd < 0 || pmu_set_filter(fd, ev)) {
			int e = errno;
			counter_close_group(o);
			return pmu_explain(ev, e, err);
		}
	}
	if (since != COUNTER_EXEC)
		ioctl(o->fd[0], PERF_EVENT_IOC_ENABLE, 0);
	return 0;
}

static size_t places_of(const struct counter_plan *plan, size_t group,
			bool machine_wide, enum counter_since since)
{
	const struct counter_group *g = &plan->group[group];
	if (g->is_machine_wide != machine_wide ||
	    (plan->of_creators && g->inherits &&
	     (since == COUNTER_BIRTH || since == COUNTER_AGAIN)))
		return 0;
	return machine_wide ? plan->event[g->first].nr_cpus : 1;
}

int counter_thread_open(const struct counter_plan *plan, pid_t tid,
			enum counter_since since, struct counter_thread **ret,
			struct smco_err *err)
{
	size_t nr = 0;
	bool wide = tid == 0;
	for (size_t g = 0; g < plan->nr_groups; g++)
		nr += places_of(plan, g, wide, since);
	struct counter_thread *t = calloc(1, sizeof(*t));
	if (t)
		t->open = calloc(nr ? nr : 1, sizeof(*t->open));
	if (!t || !t->open) {
		free(t);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	t->plan = plan;
	t->tid = tid;
	t->place = -1;
	t->level = COUNTER_ALL;
	for (size_t g = 0; g < plan->nr_groups; g++) {
		size_t places = places_of(plan, g, wide, since);
		for (size_t i = 0; i < places; i++) {
			const struct counter_group *cg = &plan->group[g];
			int cpu = wide ? plan->event[cg->first].cpu[i] : -1;
			int rc = counter_open_group(plan, g, wide ? -1 : tid,
						    cpu, since, &t->open[t->nr],
						    err);
			if (rc) {
				counter_thread_close(t);
				return rc;
			}
			t->nr++;
		}
	}
	int rc = counter_begin_tally(t, since, err);
	if (!rc && !plan->is_jotted)
		rc = counter_every_open(t, err);
	if (rc) {
		counter_thread_close(t);
		return rc;
	}
	if (!plan->is_jotted)
		counter_map_page(t);
	if (since == COUNTER_BIRTH && !wide)
		counter_add_history(t);
	*ret = t;
	return 0;
}

void counter_thread_close(struct counter_thread *t)
{
	if (!t)
		return;
	counter_unmap_page(t);
	counter_end_tally(t);
	counter_every_close(t);
	for (size_t i = 0; i < t->nr; i++)
		counter_close_group(&t->open[i]);
	free(t->open);
	free(t);
}

/* ----------------------------------------------------------------- read --- */

bool counter_note(struct open_group *o, uint64_t enabled_ns,
		  uint64_t running_ns, const uint64_t *value,
		  struct counter_sum *add)
{
	/* Written down before it was read, and taken after that. */
	if ((int64_t)(enabled_ns - o->last.enabled_ns) < 0)
		return false;
	bool any = enabled_ns != o->last.enabled_ns || o->unseen_ns;
	add->enabled_ns += o->unseen_ns;
	o->unseen_ns = 0;
	add->enabled_ns += enabled_ns - o->last.enabled_ns;
	add->running_ns += running_ns - o->last.running_ns;
	o->last.enabled_ns = enabled_ns;
	o->last.running_ns = running_ns;
	for (size_t i = 0; i < o->nr_all; i++) {
		/* A switch may be known before it is counted. */
		if ((int64_t)(value[i] - o->last.value[i]) <= 0)
			continue;
		any = true;
		add->value[i] += value[i] - o->last.value[i];
		o->last.value[i] = value[i];
	}
	return any;
}

int counter_read_group(const struct open_group *o, struct counter_reading *ret)
{
	struct {
		uint64_t nr, enabled_ns, running_ns, value[COUNTER_GROUP_MAX];
	} now;
	ssize_t n = read(o->fd[0], &now, sizeof(now));
	if (n == 0)
		return 0;
	if (n < (ssize_t)offsetof(typeof(now), value) || now.nr != o->nr)
		return SMCO_SYS;
	*ret = (struct counter_reading){.enabled_ns = now.enabled_ns};
	ret->running_ns = now.running_ns;
	for (size_t i = 0; i < o->nr; i++)
		ret->value[o->place[i]] = now.value[i];
	return 1;
}

static bool take_one(struct counter_thread *t, struct open_group *o,
		     struct counter_sum *add, bool *busy)
{
	struct counter_reading now;
	uint64_t ahead;
	if (o->is_lost)
		return false;
	bool learns = counter_read_ahead(t, o, &ahead);
	int rc = counter_read_group(o, &now);
	if (rc == 0) { /* pinned, and somebody else has its counters */
		o->is_lost = true;
		if (busy)
			*busy = true;
	}
	if (rc <= 0)
		return false;
	counter_add_tally(t, o, now.value);
	counter_note_off(t, o, &now, learns ? &ahead : NULL);
	bool any =
		counter_note(o, now.enabled_ns, now.running_ns, now.value, add);
	if (!any) /* then it was read in vain, for want of knowing better */
		o->has_lead = false;
	return any;
}

uint64_t counter_thread_peek(const struct counter_thread *t, size_t group,
			     size_t index)
{
	uint64_t sum = 0;
	struct counter_reading now;
	for (size_t i = 0; i < t->nr; i++) {
		const struct open_group *o = &t->open[i];
		if (o->group != group || counter_read_group(o, &now) <= 0)
			continue;
		counter_add_tally(t, o, now.value);
		sum += now.value[index] - o->last.value[index];
	}
	return sum;
}

bool counter_counts_at(const struct counter_group *g, enum counter_level level)
{
	switch (level) {
	case COUNTER_NONE:
		return false;
	case COUNTER_CLOCKS:
		return !g->is_traced;
	case COUNTER_CHEAP:
		return !g->has_filters;
	default:
		return true;
	}
}

/* Its time on a CPU: what a group says that counts, or the scheduler, which
 * knows it as of its last tick. */
static uint64_t time_of(const struct counter_thread *t)
{
	struct counter_reading now;
	for (size_t i = 0; i < t->nr; i++) {
		const struct counter_group *g =
			&t->plan->group[t->open[i].group];
		if (!g->is_traced && !g->inherits && !t->open[i].is_off &&
		    counter_read_group(&t->open[i], &now) > 0)
			return now.enabled_ns;
	}
	return counter_cpu_ns(t->tid);
}

static void note_unseen(struct open_group *o, uint64_t now_ns)
{
	if (!o->is_off || now_ns <= o->off_ns)
		return;
	o->unseen_ns += now_ns - o->off_ns;
	o->off_ns = now_ns;
}

static void turn(struct counter_thread *t, struct open_group *o, bool on)
{
	counter_turn(t, o, on);
	o->is_off = !on;
	o->off_ns = UINT64_MAX; /* not known yet */
	o->has_lead &= !on;
	t->has_moved |= on; /* what was not seen is to be taken */
}

/* What was so far, and what is from now on; all that is off is known then. */
static void note_all(struct counter_thread *t)
{
	uint64_t now_ns = time_of(t);
	for (size_t i = 0; i < t->nr; i++) {
		note_unseen(&t->open[i], now_ns);
		t->open[i].off_ns = now_ns;
	}
}

static void forget_all(struct counter_thread *t)
{
	for (size_t i = 0; i < t->nr; i++)
		t->open[i].off_ns = UINT64_MAX;
}

/* Each of these calls interrupts the thread where it runs, which is time of
 * those that count then: the first to end is the last to begin. Its time is
 * told by another clock where there is none that counts. */
void counter_thread_set_level(struct counter_thread *t,
			      enum counter_level level)
{
	if (level == t->level || !t->tid)
		return;
	if (level == COUNTER_NONE) {
		note_all(t);
		forget_all(t);
	}
	for (size_t i = 0; i < t->nr; i++) {
		struct open_group *o = &t->open[i];
		if (!o->is_off &&
		    !counter_counts_at(&t->plan->group[o->group], level))
			turn(t, o, false);
	}
	note_all(t);
	for (size_t i = t->nr; i-- > 0;) {
		struct open_group *o = &t->open[i];
		if (o->is_off &&
		    counter_counts_at(&t->plan->group[o->group], level))
			turn(t, o, true);
	}
	if (t->level == COUNTER_NONE) {
		forget_all(t);
		note_all(t);
	}
	t->level = level;
}

bool counter_thread_take(struct counter_thread *t, size_t group,
			 struct counter_sum *ret, bool *busy)
{
	bool any = false;
	*ret = (struct counter_sum){0};
	for (size_t i = 0; i < t->nr; i++) {
		struct open_group *o = &t->open[i];
		if (o->group != group)
			continue;
		if (o->is_off)
			note_unseen(o, time_of(t));
		any |= take_one(t, o, ret, busy);
	}
	/* What is read after it has left its CPU is the last of it. */
	t->has_moved |= any && !t->is_off;
	return any;
}

bool counter_thread_has(const struct counter_thread *t, size_t group)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->open[i].group == group)
			return true;
	return false;
}

#define CALIBRATE_ROUNDS 20
#define CALIBRATE_TIMES	 10
/* Some ns a call are told from its 100 to 200 by many. */
#define CALL_ROUNDS 101

/* So much of the time in which it is counted a thread has for itself at least,
 * as one of so many: what counting costs is known to some per cent. */
#define LEAST_SHARE 64

/* Two calls for each group, the best of some rounds; in @fd's place -1 has the
 * kernel refuse, which is the price of the calls alone. */
static uint64_t time_toggles(const struct counter_thread *t, bool refused)
{
	uint64_t best_ns = UINT64_MAX;
	for (int i = 0; i < CALIBRATE_ROUNDS; i++) {
		uint64_t began_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (int j = 0; j < CALIBRATE_TIMES; j++)
			for (size_t g = 0; g < t->nr; g++) {
				int fd = refused ? -1 : t->open[g].fd[0];
				ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
				ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
			}
		uint64_t took_ns =
			smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
		if (took_ns < best_ns)
			best_ns = took_ns;
	}
	return best_ns / CALIBRATE_TIMES;
}

uint64_t counter_switch_cost_ns(const struct counter_plan *plan)
{
	struct counter_thread *self;
	if (counter_thread_open(plan, gettid(), COUNTER_NOW, &self, NULL))
		return 0;
	uint64_t both_ns = time_toggles(self, false);
	uint64_t calls_ns = time_toggles(self, true);
	counter_thread_close(self);
	return both_ns > calls_ns ? both_ns - calls_ns : 0;
}

int64_t counter_calls_ns(void)
{
	uint64_t began_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < COUNTER_TIMED_CALLS; i++)
		syscall(SYS_getppid);
	return (int64_t)(smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
}

static uint64_t usual_each_ns(int64_t *ns)
{
	int64_t each_ns = median_i64(ns, CALL_ROUNDS) / COUNTER_TIMED_CALLS;
	return each_ns > 0 ? (uint64_t)each_ns : 1;
}

uint64_t counter_bare_call_ns(void)
{
	int64_t best_ns = INT64_MAX;
	for (int i = 0; i < CALL_ROUNDS; i++) {
		int64_t ns = counter_calls_ns();
		best_ns = ns < best_ns ? ns : best_ns;
	}
	return (uint64_t)best_ns / COUNTER_TIMED_CALLS;
}

uint64_t counter_call_more_ns(struct counter_thread *self,
			      enum counter_level level)
{
	int64_t bare_ns = counter_calls_ns();
	counter_thread_set_level(self, level);
	int64_t more_ns = counter_calls_ns() - bare_ns;
	counter_thread_set_level(self, COUNTER_CLOCKS);
	return more_ns > COUNTER_TIMED_CALLS
		       ? (uint64_t)more_ns / COUNTER_TIMED_CALLS
		       : 1;
}

/* The usual difference of two in a row, not that of the best: as much as it is
 * to a program, which is not always at its best, either. */
uint64_t counter_call_cost_ns(const struct counter_plan *plan,
			      enum counter_level level, uint64_t *bare_ns_ret)
{
	struct counter_thread *self;
	int64_t bare_ns[CALL_ROUNDS], more_ns[CALL_ROUNDS];
	if (counter_thread_open(plan, gettid(), COUNTER_NOW, &self, NULL))
		return 0;
	for (int i = 0; i < CALL_ROUNDS; i++) {
		counter_thread_set_level(self, COUNTER_NONE);
		bare_ns[i] = counter_calls_ns();
		counter_thread_set_level(self, level);
		more_ns[i] = counter_calls_ns() - bare_ns[i];
	}
	counter_thread_close(self);
	if (bare_ns_ret)
		*bare_ns_ret = usual_each_ns(bare_ns);
	return usual_each_ns(more_ns);
}

uint64_t counter_without(uint64_t *enabled_ns, uint64_t *running_ns,
			 uint64_t cost_ns, uint64_t unit_ns)
{
	uint64_t off_ns = *running_ns - *running_ns / LEAST_SHARE;
	if (off_ns > cost_ns)
		off_ns = cost_ns;
	off_ns -= off_ns % unit_ns;
	*enabled_ns -= off_ns;
	*running_ns -= off_ns;
	return off_ns;
}

uint64_t counter_scale(uint64_t value, uint64_t enabled_ns, uint64_t running_ns)
{
	if (!running_ns || running_ns >= enabled_ns)
		return value;
	double scaled =
		(double)value * ((double)enabled_ns / (double)running_ns);
	return scaled < 1.8e19 ? (uint64_t)(scaled + 0.5) : UINT64_MAX;
}
