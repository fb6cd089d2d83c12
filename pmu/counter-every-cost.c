/* What it costs a thread that an event ends its interval. */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pmu/counter-private.h"
#include "pmu/overflow.h"

#define ROUNDS 12
#define PAGES  64
#define NEVER  (1ull << 40)

/* An interrupt tells of it, not the code that the event happens in. */
static bool interrupts(const struct perf_event_attr *attr)
{
	if (attr->type == PERF_TYPE_SOFTWARE)
		return attr->config == PERF_COUNT_SW_CPU_CLOCK ||
		       attr->config == PERF_COUNT_SW_TASK_CLOCK;
	return attr->type != PERF_TYPE_TRACEPOINT;
}

/* Group @group of @plan for us, with intervals of @nr of @name. */
static struct counter_thread *open_own(struct counter_plan *one,
				       const struct counter_plan *plan,
				       size_t group, const char *name,
				       uint64_t nr)
{
	struct counter_every every = {.nr = nr};
	struct counter_thread *t = NULL;
	const struct counter_group *g = &plan->group[group];
	if (pmu_event_parse(name, &every.ev, NULL))
		return NULL;
	*one = (struct counter_plan){
		.event = calloc(g->nr, sizeof(*one->event)),
		.nr_events = g->nr,
		.nr_groups = 1,
	};
	if (!one->event)
		return NULL;
	one->group[0] = *g;
	one->group[0].first = 0;
	memcpy(one->event, plan->event + g->first, g->nr * sizeof(*one->event));
	struct pmu_event *last = &one->event[g->nr - 1];
	bool user_only = last->attr.exclude_kernel;
	*last = counter_every_event(&every);
	last->attr.exclude_kernel = user_only;
	if (!counter_thread_open(one, gettid(), COUNTER_NOW, &t, NULL))
		return t;
	counter_plan_deinit(one);
	return NULL;
}

static void close_own(struct counter_plan *one, struct counter_thread *t)
{
	counter_thread_close(t);
	counter_plan_deinit(one);
}

/* CPU time of the first access to each page. */
static uint64_t touch(volatile char *memory, size_t page)
{
	uint64_t began_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (size_t i = 0; i < PAGES; i++)
		memory[i * page] = 1;
	uint64_t took_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	madvise((void *)(uintptr_t)memory, PAGES * page, MADV_DONTNEED);
	return took_ns;
}

static void forget(struct counter_thread *t)
{
	struct counter_sum sum;
	uint64_t at_ns;
	size_t group;
	while (counter_thread_next(t, &group, &sum, &at_ns))
		;
}

/* The best of some rounds of as many faults, each of which ends an interval
 * (@nr 1), or none. */
static uint64_t time_faults(const struct counter_plan *plan, size_t group,
			    uint64_t nr, char *memory, size_t page)
{
	struct counter_plan one;
	uint64_t best_ns = UINT64_MAX;
	struct counter_thread *t =
		open_own(&one, plan, group, "page-faults", nr);
	if (!t)
		return 0;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t took_ns = touch(memory, page);
		best_ns = took_ns < best_ns ? took_ns : best_ns;
		forget(t);
	}
	close_own(&one, t);
	return best_ns / PAGES;
}

static uint64_t fault_cost_ns(const struct counter_plan *plan, size_t group)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 0;
	madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
	uint64_t with_ns = time_faults(plan, group, 1, memory, page);
	uint64_t none_ns = time_faults(plan, group, NEVER, memory, page);
	munmap(memory, PAGES * page);
	if (!with_ns || !none_ns)
		return 0;
	return with_ns > none_ns ? with_ns - none_ns : 1;
}

static uint64_t interrupt_cost_ns(const struct counter_plan *plan, size_t group)
{
	struct counter_plan one;
	uint64_t cost_ns = 0;
	struct counter_thread *t =
		open_own(&one, plan, group, "cpu-clock", OVERFLOW_PERIOD_NS);
	if (!t)
		return 0;
	if (t->ring.live)
		cost_ns = overflow_cost_ns(t->ring.live);
	close_own(&one, t);
	return cost_ns;
}

uint64_t counter_every_cost_ns(const struct counter_plan *plan)
{
	for (size_t i = 0; i < plan->nr_groups; i++) {
		const struct counter_group *g = &plan->group[i];
		if (!g->has_every)
			continue;
		const struct pmu_event *ends =
			&plan->event[g->first + g->nr - 1];
		return interrupts(&ends->attr) ? interrupt_cost_ns(plan, i)
					       : fault_cost_ns(plan, i);
	}
	return 0;
}
