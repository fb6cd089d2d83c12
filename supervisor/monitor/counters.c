#include "supervisor/monitor/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_SIZE 256

struct thread {
	struct thread *next; /* of the same hash */
	pid_t pid, tid;
	const void *task;
	struct counter_thread *counters;
	bool had_siblings;
	uint64_t read_ns;  /* the last record's end */
	uint64_t nr_stops; /* taken off the context switches so far */
	/* Stops that are known before the switch they are was counted. */
	uint64_t stops_owed;
};

struct counters {
	struct counters_params p;
	struct counter_plan plan;
	struct ledger *ledger;
	struct thread *hash[HASH_SIZE];
	struct thread machine; /* tid 0 */
	uint64_t due_ns;
	uint64_t own_read_ns; /* a reading that disturbs nobody */
	uint64_t nr_failed;   /* threads that could not be counted */
	uint64_t nr_busy;     /* groups that lost their counters */
	struct smco_err why_failed;
};

static struct thread **find(struct counters *c, pid_t tid)
{
	struct thread **link = &c->hash[(unsigned)tid % HASH_SIZE];
	while (*link && (*link)->tid != tid)
		link = &(*link)->next;
	return link;
}

/* -------------------------------------------------------------- records --- */

/* Each stop of ours was a switch, but may be heard of a little earlier. */
static void take_off_stops(struct counters *c, struct thread *t, size_t group,
			   struct counter_sum *sum)
{
	const struct counter_group *g = &c->plan.group[group];
	if (!t->task)
		return;
	for (size_t i = 0; i < g->nr; i++) {
		if (c->plan.event[g->first + i].role != PMU_SWITCHES)
			continue;
		uint64_t nr = c->p.nr_stops(t->task);
		uint64_t owed = t->stops_owed + nr - t->nr_stops;
		uint64_t off = owed < sum->value[i] ? owed : sum->value[i];
		sum->value[i] -= off;
		t->stops_owed = owed - off;
		t->nr_stops = nr;
		return;
	}
}

static void emit(struct counters *c, const struct thread *t, size_t group,
		 const struct counter_sum *sum, uint64_t now_ns)
{
	_Static_assert(COUNTER_GROUP_MAX ==
			       ARRAY_SIZE(((struct ev_counts *)0)->value),
		       "a record has room for a group");
	struct ev_counts ev = {
		.pid = (uint32_t)t->pid,
		.nr = (uint32_t)c->plan.group[group].nr,
		.length_ns = now_ns - t->read_ns,
		.enabled_ns = sum->enabled_ns,
		.missed_ns = sum->enabled_ns - sum->running_ns,
	};
	memcpy(ev.value, sum->value, ev.nr * sizeof(ev.value[0]));
	c->p.emit(c->p.ctx, &(struct record){
				    .event = EV_COUNTS,
				    .time_ns = now_ns - c->p.start_ns,
				    .cpu = UINT32_MAX,
				    .tid = (uint32_t)t->tid,
				    .param = (uint32_t)group,
				    .payload_len = sizeof(ev),
				    .payload = &ev,
			    });
}

static void read_thread(struct counters *c, struct thread *t, uint64_t now_ns)
{
	for (size_t g = 0; g < c->plan.nr_groups; g++) {
		struct counter_sum sum;
		bool busy = false;
		if (counter_thread_take(t->counters, g, &sum, &busy)) {
			take_off_stops(c, t, g, &sum);
			emit(c, t, g, &sum, now_ns);
		}
		c->nr_busy += busy;
	}
	t->read_ns = now_ns;
}

/* -------------------------------------------------------------- threads --- */

static void note_failure(struct counters *c, const struct smco_err *err)
{
	if (err->code == SMCO_GONE)
		return;
	if (!c->nr_failed++)
		c->why_failed = *err;
}

static void start(struct counters *c, struct thread *t,
		  enum counter_since since)
{
	struct smco_err err = {0};
	if (counter_thread_open(&c->plan, t->tid, since, &t->counters, &err)) {
		note_failure(c, &err);
		t->counters = NULL;
	}
	t->read_ns = smco_now_ns();
	/* Since its birth the switch of every stop is counted. */
	t->nr_stops =
		t->task && since != COUNTER_BIRTH ? c->p.nr_stops(t->task) : 0;
	t->stops_owed = 0;
}

/* Are there threads of @pid? They know of one more now. */
static bool note_siblings(struct counters *c, pid_t pid)
{
	bool any = false;
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next)
			if (t->pid == pid)
				any = t->had_siblings = true;
	return any;
}

void counters_add(struct counters *c, pid_t pid, pid_t tid, const void *task,
		  enum counter_since since)
{
	counters_gone(c, tid, smco_now_ns()); /* the number's former owner */
	struct thread *t = calloc(1, sizeof(*t));
	if (!t) {
		note_failure(c, &(struct smco_err){.code = SMCO_NOMEM,
						   .msg = "out of memory"});
		return;
	}
	*t = (struct thread){
		.pid = pid,
		.tid = tid,
		.task = task,
		.had_siblings = note_siblings(c, pid),
	};
	start(c, t, since);
	if (!t->counters) {
		free(t);
		return;
	}
	*find(c, tid) = t;
}

static void end_thread(struct counters *c, struct thread **link,
		       uint64_t now_ns)
{
	struct thread *t = *link;
	read_thread(c, t, now_ns);
	counter_thread_close(t->counters);
	*link = t->next;
	free(t);
}

void counters_gone(struct counters *c, pid_t tid, uint64_t now_ns)
{
	struct thread **link = find(c, tid);
	if (*link)
		end_thread(c, link, now_ns);
}

void counters_exec(struct counters *c, pid_t pid, pid_t tid, const void *task,
		   uint64_t now_ns)
{
	struct thread *t = *find(c, tid);
	/* One that was always alone goes on with what it has. */
	if (t && (t->pid != pid || !t->had_siblings)) {
		t->pid = pid;
		t->task = task;
		return;
	}
	/* The kernel's counters went along with whichever thread called exec;
	 * all are read while nothing runs, and begin anew. */
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct thread **link = &c->hash[i]; *link;) {
			if ((*link)->pid == pid)
				end_thread(c, link, now_ns);
			else
				link = &(*link)->next;
		}
	counters_add(c, pid, tid, task, COUNTER_NOW);
}

/* -------------------------------------------------------------- reading --- */

uint64_t counters_due_ns(const struct counters *c)
{
	return c->due_ns;
}

static void read_all(struct counters *c, uint64_t now_ns)
{
	if (c->machine.counters)
		read_thread(c, &c->machine, now_ns);
	for (size_t i = 0; i < HASH_SIZE; i++)
		for (struct thread *t = c->hash[i]; t; t = t->next) {
			uint64_t began_ns = smco_now_ns();
			read_thread(c, t, now_ns);
			uint64_t took_ns = smco_now_ns() - began_ns;
			/* A running thread is interrupted for it; what took
			 * longer than by itself was that, at the most. */
			if (took_ns > c->own_read_ns)
				ledger_charge(c->ledger, LEDGER_OTHER,
					      COUNTERS_MONITOR,
					      took_ns - c->own_read_ns);
		}
}

void counters_tick(struct counters *c, uint64_t now_ns)
{
	if (now_ns < c->due_ns)
		return;
	/* On the grid, so that intervals do not drift. */
	uint64_t late = (now_ns - c->due_ns) / c->p.interval_ns;
	c->due_ns += (late + 1) * c->p.interval_ns;
	if (ledger_room_ns(c->ledger) > 0)
		read_all(c, now_ns);
}

void counters_finish(struct counters *c, uint64_t now_ns)
{
	char text[400];
	read_all(c, now_ns);
	if (c->nr_failed) {
		snprintf(text, sizeof(text), "%ju thread%s: %s",
			 (uintmax_t)c->nr_failed, c->nr_failed == 1 ? "" : "s",
			 c->why_failed.msg);
		c->p.put_meta(c->p.ctx, "counters.failed", text);
	}
	if (c->nr_busy) {
		snprintf(text, sizeof(text), "%ju", (uintmax_t)c->nr_busy);
		c->p.put_meta(c->p.ctx, "counters.lost", text);
	}
}

/* ------------------------------------------------------ coming and going ---
 */

static int make_plan(const struct counters_params *p, struct counter_plan *ret,
		     struct smco_err *err)
{
	struct pmu_event *events;
	size_t nr;
	if (!p->events)
		return counter_plan_default(ret, err);
	int rc = pmu_event_parse_list(p->events, &events, &nr, err);
	if (rc)
		return rc;
	rc = counter_plan_make(events, nr, p->if_available, ret, err);
	free(events);
	return rc;
}

/* What reading a thread takes that does not run on another CPU: this one. */
static uint64_t calibrate(const struct counter_plan *plan)
{
	struct counter_thread *self;
	struct counter_sum sum;
	uint64_t best_ns = UINT64_MAX;
	if (counter_thread_open(plan, gettid(), COUNTER_NOW, &self, NULL))
		return 0;
	for (int i = 0; i < 20; i++) {
		uint64_t began_ns = smco_now_ns();
		for (size_t g = 0; g < plan->nr_groups; g++)
			counter_thread_take(self, g, &sum, NULL);
		uint64_t took_ns = smco_now_ns() - began_ns;
		if (took_ns < best_ns)
			best_ns = took_ns;
	}
	counter_thread_close(self);
	return best_ns;
}

int counters_create(const struct counters_params *p, struct ledger *ledger,
		    struct counters **ret, struct smco_err *err)
{
	struct counters *c = calloc(1, sizeof(*c));
	if (!c)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	c->p = *p;
	c->ledger = ledger;
	int rc = make_plan(p, &c->plan, err);
	if (rc) {
		free(c);
		return rc;
	}
	c->own_read_ns = calibrate(&c->plan);
	c->due_ns = p->start_ns + p->interval_ns;
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		if (c->plan.group[g].is_machine_wide && !c->machine.counters)
			start(c, &c->machine, COUNTER_NOW);
	*ret = c;
	return 0;
}

void counters_destroy(struct counters *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < HASH_SIZE; i++)
		while (c->hash[i]) {
			struct thread *t = c->hash[i];
			c->hash[i] = t->next;
			counter_thread_close(t->counters);
			free(t);
		}
	counter_thread_close(c->machine.counters);
	counter_plan_deinit(&c->plan);
	free(c);
}

static void put(struct counters *c, const char *key, const char *what,
		const char *value)
{
	char whole[64];
	snprintf(whole, sizeof(whole), "%s%s", key, what);
	c->p.put_meta(c->p.ctx, whole, value);
}

static const char *level_of(const struct pmu_event *ev)
{
	if (ev->attr.exclude_kernel == ev->attr.exclude_user)
		return NULL; /* both */
	return ev->attr.exclude_kernel ? "user" : "kernel";
}

static void put_event(struct counters *c, size_t group, size_t i)
{
	const struct pmu_event *ev =
		&c->plan.event[c->plan.group[group].first + i];
	char key[32], text[40];
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
	if (c->plan.missing[0])
		put(c, "counters", ".missing", c->plan.missing);
	for (size_t g = 0; g < c->plan.nr_groups; g++)
		for (size_t i = 0; i < c->plan.group[g].nr; i++)
			put_event(c, g, i);
}
