/* Counts that the kernel writes down when a BPF program says so: a group's
 * leader is an event that nothing but such a program makes happen. */
#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "pmu/counter-private.h"

static struct pmu_event leader_of(const struct pmu_event *first)
{
	struct pmu_event ev = {
		.name = "(written down)",
		.scale = 1,
		.is_software = true,
		.is_hidden = true,
		.attr =
			{
				.size = sizeof(ev.attr),
				.type = PERF_TYPE_SOFTWARE,
				.config = PERF_COUNT_SW_BPF_OUTPUT,
				.sample_period = 1,
				.sample_type = PERF_SAMPLE_IDENTIFIER |
					       PERF_SAMPLE_TIME |
					       PERF_SAMPLE_READ |
					       PERF_SAMPLE_RAW,
				.read_format = COUNTER_READ_FORMAT,
				/* Nobody is woken up: it is looked at. */
				.watermark = 1,
				.wakeup_watermark = UINT32_MAX,
				.pinned = first->attr.pinned,
				.exclusive = first->attr.exclusive,
			},
	};
	counter_every_clock(&ev.attr);
	return ev;
}

static bool may_lead(const struct counter_group *g)
{
	return !g->is_machine_wide && !g->has_every && !g->inherits &&
	       g->nr < COUNTER_GROUP_MAX;
}

/* Each group with its leader behind it, or without. */
static void lay_out(struct counter_plan *p, bool with)
{
	size_t shift = with ? p->nr_groups : 0;
	for (size_t i = p->nr_groups; with && i-- > 0; shift--) {
		struct counter_group *g = &p->group[i];
		memmove(&p->event[g->first + shift - 1], &p->event[g->first],
			g->nr * sizeof(*p->event));
		g->first += shift - 1;
		p->event[g->first + g->nr] = leader_of(&p->event[g->first]);
		g->nr++;
	}
	for (size_t i = 0; !with && i < p->nr_groups; i++) {
		struct counter_group *g = &p->group[i];
		g->nr--;
		memmove(&p->event[g->first - i], &p->event[g->first],
			g->nr * sizeof(*p->event));
		g->first -= i;
	}
	for (size_t i = 0; i < p->nr_groups; i++)
		p->group[i].has_every = with;
	p->nr_events = with ? p->nr_events + p->nr_groups
			    : p->nr_events - p->nr_groups;
	p->is_jotted = with;
}

bool counter_plan_jot(struct counter_plan *p)
{
	struct counter_thread *self;
	for (size_t i = 0; i < p->nr_groups; i++)
		if (!may_lead(&p->group[i]))
			return false;
	lay_out(p, true);
	bool ok = !counter_thread_open(p, gettid(), COUNTER_EXEC, &self, NULL);
	if (ok) {
		ok = !counter_thread_make_room(self, NULL);
		counter_thread_close(self);
	}
	if (!ok)
		lay_out(p, false);
	return ok;
}

int counter_thread_make_room(struct counter_thread *t, struct smco_err *err)
{
	return counter_every_open(t, err);
}

void counter_thread_watch(struct counter_thread *t)
{
	counter_every_close(t);
	counter_map_page(t);
}

size_t counter_thread_leaders(const struct counter_thread *t,
			      int fd[COUNTER_MAX_GROUPS])
{
	for (size_t i = 0; i < t->nr; i++)
		fd[i] = t->open[i].fd[0];
	return t->nr;
}
