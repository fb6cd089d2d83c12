/* System calls are counted by BPF where that may be, for a fraction of what
 * perf's events cost each of them. */
#include "supervisor/monitor/counters-private.h"

#include "reports/median.h"
#include "supervisor/probe/tally.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(TALLY_CALL_COLUMNS == CALL_COLUMNS &&
		       TALLY_HITS == HIT_COLUMNS &&
		       TALLY_CALLS == CALL_NUMBERS &&
		       TALLY_ABIS == PMU_CALL_ABIS,
	       "events are of these columns");

#define PRICE_ROUNDS 31
/* So many hundredths of the time that attaching and detaching take (0.55 ms on
 * a virtual machine) another CPU is interrupted (0.31 to 0.36 ms). */
#define OTHERS_SHARE 65

static int add(void *ctx, pid_t tid)
{
	return tally_add(ctx, tid);
}

static void remove_one(void *ctx, pid_t tid, int place)
{
	tally_remove(ctx, tid, place);
}

static void read_one(void *ctx, int place, uint64_t nr[ALL_COLUMNS])
{
	const struct tally_counts now = tally_read(ctx, place);
	for (size_t i = 0; i < ALL_COLUMNS; i++)
		nr[i] = now.nr[i];
}

static bool past_of(void *ctx, pid_t tid, struct counter_past *ret)
{
	struct past p;
	bool known = tally_past(ctx, tid, &p);
	*ret = (struct counter_past){
		.minor_faults = p.minor_faults,
		.major_faults = p.major_faults,
		.switches = p.switches,
		.run_ns = p.run_ns,
	};
	return known;
}

static int64_t usual_calls_ns(void)
{
	int64_t ns[PRICE_ROUNDS];
	for (size_t i = 0; i < PRICE_ROUNDS; i++)
		ns[i] = counter_calls_ns();
	return median_i64(ns, PRICE_ROUNDS);
}

static void open_tally(struct counters *c)
{
	struct smco_err err;
	c->bare_calls_ns = usual_calls_ns();
	call_columns_init(&c->columns);
	if (tally_open(&c->tally, &err))
		smco_debug("pmu", "%s", err.msg);
}

static void tally_hits(struct counters *c, struct pmu_event *ev)
{
	struct smco_err err;
	const char *tracepoint = counter_can_tally_hits(ev);
	int column = tracepoint ? tally_put(c->tally, tracepoint, &err) : -1;
	if (column >= 0)
		counter_tally_hits(ev, column);
	else if (tracepoint)
		smco_debug("pmu", "%s", err.msg);
}

void counters_tally_events(struct counters *c, struct pmu_event *events,
			   size_t nr)
{
	if (!counter_can_tally(events, nr) || c->p.by_events || c->every.nr)
		return;
	if (!c->tally)
		open_tally(c);
	if (!c->tally)
		return;
	counter_tally_events(events, nr, &c->columns);
	for (size_t i = 0; i < nr; i++)
		tally_hits(c, &events[i]);
}

int counters_tally_open(struct counters *c, struct smco_err *err)
{
	struct tally_columns columns;
	if (!c->tally)
		return 0;
	memcpy(columns.of, c->columns.of, sizeof(columns.of));
	if (tally_set_columns(c->tally, &columns, err))
		return SMCO_SYS;
	c->by_tally = (struct counter_tally){
		.ctx = c->tally,
		.add = add,
		.remove = remove_one,
		.read = read_one,
		.past = past_of,
	};
	counter_plan_tally(&c->plan, &c->by_tally, &c->columns);
	return 0;
}

void counters_tally_close(struct counters *c)
{
	tally_close(c->tally);
	c->tally = NULL;
	c->plan.tally = NULL;
}

bool counters_tally_at(struct counters *c, enum counter_level level)
{
	struct smco_err err;
	if (!c->tally)
		return true;
	if (level < COUNTER_CHEAP) {
		tally_turn(c->tally, false);
	} else if (tally_begin(c->tally, &err)) {
		smco_debug("pmu", "%s", err.msg);
		return false;
	}
	return true;
}

bool counters_tally_is_on(const struct counters *c)
{
	return !c->tally || tally_is_on(c->tally);
}

bool counters_tally_ready(struct counters *c)
{
	bool ready = counters_tally_is_on(c);
	if (!ready && !c->has_asked && c->self)
		c->bare_calls_ns = counter_calls_ns();
	c->has_asked = !ready;
	if (!ready)
		tally_turn(c->tally, true);
	return ready;
}

uint64_t counters_tally_toggled_ns(struct counters *c)
{
	if (!c->tally)
		return 0;
	uint64_t took_ns = tally_took_ns(c->tally);
	uint64_t more_ns = took_ns - c->toggled_ns;
	c->toggled_ns = took_ns;
	return more_ns * OTHERS_SHARE / 100;
}

static uint64_t each_ns(int64_t more_ns)
{
	return more_ns > COUNTER_TIMED_CALLS
		       ? (uint64_t)more_ns / COUNTER_TIMED_CALLS
		       : 1;
}

uint64_t counters_tally_more_ns(const struct counters *c)
{
	return each_ns(counter_calls_ns() - c->bare_calls_ns);
}

uint64_t counters_tally_price_ns(struct counters *c)
{
	pid_t self = gettid();
	int place = tally_add(c->tally, self);
	int64_t more_ns = usual_calls_ns() - c->bare_calls_ns;
	if (place >= 0)
		tally_remove(c->tally, self, place);
	return each_ns(more_ns);
}
