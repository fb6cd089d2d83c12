/* What was counted, as records have it. */
#include <string.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/counters-private.h"

static void emit(struct counters *c, const struct thread *t, size_t group,
		 const struct counter_sum *sum, uint64_t now_ns)
{
	_Static_assert(COUNTER_GROUP_MAX ==
			       ARRAY_SIZE(((struct ev_counts *)0)->value),
		       "a record has room for a group");
	struct ev_counts ev = {
		.pid = (uint32_t)t->pid,
		.nr = (uint32_t)counters_nr_shown(c, group),
		.length_ns = now_ns - t->pending[group].read_ns,
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

/* *v to whole units in *whole; what is left stays for the next record. */
static void take_units(uint64_t *v, uint64_t *whole)
{
	*whole = in_units(*v, COUNTS_UNIT_NS);
	*v -= *whole;
}

/* Where nothing ever pauses nothing is scaled, and times are as they are. */
static bool is_without_cost(const struct counters *c, size_t group)
{
	return c->plan.group[group].goes_by_work &&
	       c->p.target_overhead_ppb != INT64_MAX;
}

/*
 * Groups with filters were counted for about as long as calls at that level: of
 * their time the same share was the thread's. While only others were counted
 * that cost a group no time in which it was.
 */
static void take_cost_off_filters(const struct thread *t, struct pending *p,
				  struct counter_sum *sum)
{
	uint64_t all_ns = t->counting_ns - t->cheap_ns;
	uint64_t run_ns = t->all_run_ns - p->run_ns;
	uint64_t cost_ns = min_u64(all_ns - p->cost_ns, run_ns);
	if (run_ns)
		counter_without(&sum->enabled_ns, &sum->running_ns,
				(uint64_t)((double)sum->running_ns *
					   ((double)cost_ns / (double)run_ns)),
				COUNTS_UNIT_NS);
	p->run_ns = t->all_run_ns;
	p->cost_ns = all_ns;
	uint64_t off_ns = min_u64(t->cheap_ns - p->cheap_ns,
				  sum->enabled_ns - sum->running_ns);
	off_ns -= off_ns % COUNTS_UNIT_NS;
	sum->enabled_ns -= off_ns;
	p->cheap_ns += off_ns;
}

static void take_cost_off(const struct thread *t, struct pending *p,
			  struct counter_sum *sum)
{
	p->cost_ns +=
		counter_without(&sum->enabled_ns, &sum->running_ns,
				t->counting_ns - p->cost_ns, COUNTS_UNIT_NS);
}

/* What of the pending sum is told now. */
static struct counter_sum take_whole(const struct counters *c,
				     const struct thread *t, size_t group)
{
	const struct counter_group *g = &c->plan.group[group];
	struct pending *p = &t->pending[group];
	struct counter_sum *sum = &p->sum;
	struct counter_sum whole = *sum;
	for (size_t i = 0; i < g->nr; i++)
		sum->value[i] = 0;
	take_units(&sum->enabled_ns, &whole.enabled_ns);
	take_units(&sum->running_ns, &whole.running_ns);
	if (whole.running_ns > whole.enabled_ns) {
		sum->running_ns += whole.running_ns - whole.enabled_ns;
		whole.running_ns = whole.enabled_ns;
	}
	if (is_without_cost(c, group) && g->has_filters &&
	    counters_has_cheap(c))
		take_cost_off_filters(t, p, &whole);
	else if (is_without_cost(c, group))
		take_cost_off(t, p, &whole);
	for (size_t i = 0; i < g->nr; i++) {
		enum pmu_role role = c->plan.event[g->first + i].role;
		if (role == PMU_TASK_CLOCK || role == PMU_TSC) {
			sum->value[i] = whole.value[i];
			take_units(&sum->value[i], &whole.value[i]);
		}
	}
	return whole;
}

void counters_write_group(struct counters *c, struct thread *t, size_t group,
			  uint64_t now_ns)
{
	struct counter_sum sum = take_whole(c, t, group);
	size_t nr = counters_nr_shown(c, group);
	bool any = sum.enabled_ns != 0;
	for (size_t i = 0; i < nr; i++)
		any |= sum.value[i] != 0;
	if (any && nr)
		emit(c, t, group, &sum, now_ns);
	t->pending[group].read_ns = now_ns;
}
