/* What stops are to the kernel is not counted: which events have a sieve, and
 * what is taken off where none can be put. */
#include "supervisor/monitor/counters-private.h"

#include "supervisor/probe/sieve.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of whom there are events when a thread stops: it wakes us up, and leaves its
 * CPU; and what may interrupt it meanwhile. */
static const char *const of_stops[] = {
	"sched:",     "rcu:",	 "rseq:", "x86_fpu:",	      "ipi:",
	"csd:",	      "irq:",	 "msr:",  "irq_vectors:",     "tlb:",
	"lock:",      "timer:",	 "tick:", "timer_migration:", "notifier:",
	"workqueue:", "signal:",
};

/* Of whom there are events in interrupts that we have sent. */
static const char *const of_calls[] = {"irq_vectors:", "csd:", "tlb:"};

/* Their own time is in what these count when a thread leaves its CPU. */
static const char of_time[] = "sched:sched_stat_";

static bool begins_with_one(const char *name, const char *const *of, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(name, of[i], strlen(of[i])))
			return true;
	return false;
}

static bool has_sieve(const struct pmu_event *ev)
{
	if (ev->attr.type != PERF_TYPE_TRACEPOINT || counters_has_stops(ev) ||
	    !strncmp(ev->name, of_time, sizeof(of_time) - 1))
		return false;
	return begins_with_one(ev->name, of_stops, ARRAY_SIZE(of_stops));
}

/* Others: SIEVE_ANY. */
static const struct {
	const char *name; /* begins with */
	enum sieve_kind kind;
} special[] = {
	{"rseq:rseq_update", SIEVE_AFTER_RSEQ},
	{"x86_fpu:x86_fpu_regs_activated", SIEVE_AFTER_FPU},
	{"sched:sched_waking", SIEVE_WAKING},
	{"sched:sched_wakeup", SIEVE_WAKING},
	{"signal:signal_generate", SIEVE_SIGNAL},
	{"irq_vectors:call_function_single_entry", SIEVE_ENTRY},
	{"irq_vectors:call_function_single_exit", SIEVE_EXIT},
};

static enum sieve_kind kind_of(const struct pmu_event *ev)
{
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (begins_with_one(ev->name, &special[i].name, 1))
			return special[i].kind;
	return SIEVE_ANY;
}

/* Not what only the ledger wants: "(...". */
static bool counts_switches(const struct pmu_event *ev)
{
	return counters_has_stops(ev) && ev->name[0] != '(';
}

static bool is_wanted(const struct counter_plan *plan)
{
	for (size_t i = 0; i < plan->nr_events; i++)
		if (plan->event[i].role == PMU_MIGRATIONS ||
		    counts_switches(&plan->event[i]) ||
		    has_sieve(&plan->event[i]))
			return true;
	return false;
}

/* Only where somebody counts what is in them: each interrupt is longer by it.
 */
static void heed_calls(struct counters *c)
{
	struct smco_err err;
	bool any = false;
	for (size_t i = 0; i < c->plan.nr_events; i++)
		any |= has_sieve(&c->plan.event[i]) &&
		       begins_with_one(c->plan.event[i].name, of_calls,
				       ARRAY_SIZE(of_calls));
	c->heeds_calls = any && !sieve_heed_calls(c->sieve, &err);
	if (any && !c->heeds_calls)
		smco_debug("pmu", "%s", err.msg);
}

void counters_sieve_open(struct counters *c)
{
	struct smco_err err;
	if (!is_wanted(&c->plan))
		return;
	if (sieve_open(&c->sieve, &err)) {
		smco_debug("pmu", "%s", err.msg);
		return;
	}
	heed_calls(c);
	c->sieve_fd = calloc(c->plan.nr_events, sizeof(*c->sieve_fd));
	for (size_t i = 0; c->sieve_fd && i < c->plan.nr_events; i++) {
		const struct pmu_event *ev = &c->plan.event[i];
		c->sieve_fd[i] = -1;
		if (!has_sieve(ev))
			continue;
		c->sieve_fd[i] =
			sieve_put(c->sieve, ev->attr.config, kind_of(ev), &err);
		if (c->sieve_fd[i] < 0)
			smco_debug("pmu", "%s: %s", ev->name, err.msg);
	}
}

bool counters_is_sieved(const struct counters *c, size_t event)
{
	return c->sieve && (c->plan.event[event].role == PMU_MIGRATIONS ||
			    (c->sieve_fd && c->sieve_fd[event] >= 0));
}

int counters_sieve_one(const struct counters *c, const struct pmu_event *ev)
{
	for (size_t i = 0; c->sieve_fd && i < c->plan.nr_events; i++)
		if (c->sieve_fd[i] >= 0)
			return sieve_put(c->sieve, ev->attr.config, SIEVE_ANY,
					 NULL);
	return -1;
}

uint64_t counters_nr_moves(const struct counters *c, const struct thread *t)
{
	return c->sieve ? sieve_nr_moves(c->sieve, t->tid) : 0;
}

uint64_t counters_nr_taken(const struct counters *c, const struct thread *t)
{
	return c->sieve ? sieve_nr_taken(c->sieve, t->tid) : 0;
}

void counters_sieve_forget(const struct counters *c, const struct thread *t)
{
	if (c->sieve)
		sieve_forget(c->sieve, t->tid);
}

void counters_sieve_close(struct counters *c)
{
	for (size_t i = 0; c->sieve_fd && i < c->plan.nr_events; i++)
		if (c->sieve_fd[i] >= 0)
			close(c->sieve_fd[i]);
	free(c->sieve_fd);
	c->sieve_fd = NULL;
	sieve_close(c->sieve);
	c->sieve = NULL;
}
