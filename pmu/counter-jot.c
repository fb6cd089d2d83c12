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

/* Are its counts always what they are said to be, without asking anybody? */
static bool counts_at_once(const struct counter_plan *p,
			   const struct counter_group *g)
{
	for (size_t i = 0; i < g->nr; i++) {
		const struct perf_event_attr *attr =
			&p->event[g->first + i].attr;
		bool is_clock = attr->config == PERF_COUNT_SW_CPU_CLOCK ||
				attr->config == PERF_COUNT_SW_TASK_CLOCK;
		if (attr->type != PERF_TYPE_TRACEPOINT &&
		    (attr->type != PERF_TYPE_SOFTWARE || is_clock))
			return false;
	}
	return !g->is_machine_wide && !g->has_every;
}

/* Which groups are direct? False: one can be neither. */
static bool sort_groups(struct counter_plan *p)
{
	size_t nr_led = 0, nr_direct = 0;
	for (size_t i = 0; i < p->nr_groups; i++) {
		struct counter_group *g = &p->group[i];
		g->is_direct = g->inherits && counts_at_once(p, g);
		if (!g->is_direct && !may_lead(g))
			return false;
		nr_led += !g->is_direct;
		nr_direct += g->is_direct;
	}
	return nr_led > 0 && nr_direct <= COUNTER_DIRECT_MAX;
}

/* Groups with their leaders behind them. */
static void add_leaders(struct counter_plan *p)
{
	size_t shift = 0;
	for (size_t i = 0; i < p->nr_groups; i++)
		shift += !p->group[i].is_direct;
	p->nr_events += shift;
	for (size_t i = p->nr_groups; i-- > 0;) {
		struct counter_group *g = &p->group[i];
		g->has_every = !g->is_direct;
		shift -= g->has_every;
		memmove(&p->event[g->first + shift], &p->event[g->first],
			g->nr * sizeof(*p->event));
		g->first += shift;
		if (g->has_every)
			p->event[g->first + g->nr++] =
				leader_of(&p->event[g->first]);
	}
}

void counter_plan_unjot(struct counter_plan *p)
{
	size_t shift = 0;
	for (size_t i = 0; i < p->nr_groups; i++) {
		struct counter_group *g = &p->group[i];
		g->nr -= g->has_every;
		memmove(&p->event[g->first - shift], &p->event[g->first],
			g->nr * sizeof(*p->event));
		g->first -= shift;
		shift += g->has_every;
		g->has_every = g->is_direct = false;
	}
	p->nr_events -= shift;
	p->is_jotted = false;
}

bool counter_plan_jot(struct counter_plan *p)
{
	struct counter_thread *self;
	bool ok = sort_groups(p);
	if (!ok) {
		for (size_t i = 0; i < p->nr_groups; i++)
			p->group[i].is_direct = false;
		return false;
	}
	add_leaders(p);
	p->is_jotted = true;
	ok = !counter_thread_open(p, gettid(), COUNTER_EXEC, &self, NULL);
	if (ok) {
		ok = !counter_thread_make_room(self, NULL);
		counter_thread_close(self);
	}
	if (ok)
		return true;
	counter_plan_unjot(p);
	return false;
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

void counter_thread_unwatch(struct counter_thread *t)
{
	counter_unmap_page(t);
}

static bool is_direct(const struct counter_thread *t,
		      const struct open_group *o)
{
	return t->plan->group[o->group].is_direct;
}

size_t counter_thread_leaders(const struct counter_thread *t,
			      int fd[COUNTER_MAX_GROUPS])
{
	size_t nr = 0;
	for (size_t i = 0; i < t->nr; i++)
		if (!is_direct(t, &t->open[i]))
			fd[nr++] = t->open[i].fd[0];
	return nr;
}

size_t counter_thread_direct(const struct counter_thread *t, int *fd,
			     size_t max, int leader[COUNTER_DIRECT_MAX],
			     size_t *nr_groups_ret)
{
	size_t nr = 0, nr_groups = 0;
	for (size_t i = 0; i < t->nr; i++) {
		const struct open_group *o = &t->open[i];
		if (!is_direct(t, o))
			continue;
		leader[nr_groups++] = o->fd[0];
		for (size_t k = 0; k < o->nr; k++, nr++)
			if (nr < max)
				fd[nr] = o->fd[k];
	}
	*nr_groups_ret = nr_groups;
	return nr;
}

/* ------------------------------------------------- what was written down ---
 */

/* Behind its note stands what direct groups have counted. */
static void keep(struct counter_thread *t, const struct ring_record *r)
{
	const struct ring_array *raw = &r->sample.raw;
	size_t has = raw->nr < sizeof(t->note) ? raw->nr : sizeof(t->note);
	memset(t->note, 0, sizeof(t->note));
	memcpy(t->note, raw->data, has);
	has += sizeof(t->ahead_ns) + sizeof(t->told);
	t->nr_counts = raw->nr > has ? (raw->nr - has) / 8 : 0;
	if (t->nr_counts > ARRAY_SIZE(t->count))
		t->nr_counts = 0;
	if (t->nr_counts) {
		memcpy(t->ahead_ns, raw->data + sizeof(t->note),
		       sizeof(t->ahead_ns));
		memcpy(t->count, raw->data + has, t->nr_counts * 8);
	}
	t->at_count = t->at_group = t->from = 0;
	t->beside_ns = r->sample.read.enabled_ns;
}

/* The next group of those that came along with the last record. Whatever
 * counts at once has counted all the time that it was to. */
static bool next_direct(struct counter_thread *t, size_t *group_ret,
			struct counter_sum *ret)
{
	while (t->nr_counts && t->from < t->nr) {
		struct open_group *o = &t->open[t->from++];
		if (!is_direct(t, o))
			continue;
		uint64_t *value = &t->count[t->at_count];
		uint64_t enabled_ns = t->beside_ns + t->ahead_ns[t->at_group++];
		uint64_t missed_ns = o->last.enabled_ns - o->last.running_ns;
		t->at_count += o->nr;
		if (t->at_count > t->nr_counts)
			break;
		if (t->note[COUNTER_NOTE_LEAVES])
			counter_add_switch(t, o, value);
		if (t->place >= 0)
			counter_add_told(t, o, t->told, value);
		*ret = (struct counter_sum){0};
		counter_note(o, enabled_ns, enabled_ns - missed_ns, value, ret);
		*group_ret = o->group;
		return true;
	}
	t->nr_counts = 0;
	return false;
}

bool counter_thread_next_jotted(struct counter_thread *t, size_t *group_ret,
				struct counter_sum *ret, void *note,
				size_t size)
{
	struct ring_record r;
	bool any = next_direct(t, group_ret, ret);
	if (!any) {
		any = counter_every_next(t, group_ret, ret, &r);
		if (any)
			keep(t, &r);
	}
	memset(note, 0, size);
	memcpy(note, t->note, size < sizeof(t->note) ? size : sizeof(t->note));
	return any;
}
