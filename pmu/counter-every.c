/* Intervals that an event ends: each group has one more event, which overflows
 * then, and has the kernel write down what all of the group have counted. */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pmu/counter-private.h"

/* Some 500 intervals of eight events. */
#define RING_BYTES 65536
/* Some 200 that a BPF program wants written down. */
#define JOT_BYTES 32768

void counter_every_clock(struct perf_event_attr *attr)
{
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

struct pmu_event counter_every_event(const struct counter_every *every)
{
	struct pmu_event ev = every->ev;
	ev.attr.sample_period = every->nr;
	ev.attr.freq = 0;
	ev.attr.pinned = 0;
	ev.attr.sample_type =
		PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
	ev.attr.read_format = COUNTER_READ_FORMAT;
	counter_every_clock(&ev.attr);
	return ev;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Memory that may be locked is scarce for those without privileges. */
static int map_ring(struct counter_thread *t, int fd,
		    const struct perf_event_attr *attr, struct smco_err *err)
{
	const struct ring_format format = ring_format_of(attr);
	size_t bytes = t->plan->is_jotted ? JOT_BYTES : RING_BYTES;
	void *page;
	do
		page = mmap(NULL, page_bytes() + bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	while (page == MAP_FAILED && (errno == EPERM || errno == ENOMEM) &&
	       (bytes /= 2) >= page_bytes());
	if (page == MAP_FAILED)
		return smco_fail(err, SMCO_SYS, errno,
				 "no memory for intervals (ulimit -l, "
				 "kernel.perf_event_mlock_kb)");
	int rc = ring_open_live(&t->ring, &format, page, err);
	if (rc)
		munmap(page, page_bytes() + bytes);
	else
		t->ring_bytes = bytes;
	return rc;
}

int counter_every_open(struct counter_thread *t, struct smco_err *err)
{
	int ring_fd = -1, rc = 0;
	for (size_t i = 0; !rc && i < t->nr; i++) {
		struct open_group *o = &t->open[i];
		const struct counter_group *g = &t->plan->group[o->group];
		if (!g->has_every)
			continue;
		int fd = o->fd[0];
		if (ioctl(fd, PERF_EVENT_IOC_ID, &o->id))
			return smco_fail(err, SMCO_SYS, errno, "an event's id");
		if (ring_fd < 0)
			rc = map_ring(
				t, fd,
				&t->plan->event[g->first + g->nr - 1].attr,
				err);
		else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring_fd))
			return smco_fail(err, SMCO_SYS, errno,
					 "one ring for two groups of events");
		ring_fd = ring_fd < 0 ? fd : ring_fd;
	}
	return rc;
}

void counter_every_close(struct counter_thread *t)
{
	if (!t->ring.live)
		return;
	ring_close(&t->ring);
	munmap(t->ring.live, page_bytes() + t->ring_bytes);
	t->ring = (struct ring){0};
}

static struct open_group *find(const struct counter_thread *t, uint64_t id)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->open[i].id && t->open[i].id == id)
			return &t->open[i];
	return NULL;
}

void counter_add_switch(const struct counter_thread *t,
			const struct open_group *o, uint64_t *value)
{
	const struct counter_group *g = &t->plan->group[o->group];
	for (size_t i = 0; o->switches >= 0 && i < g->nr; i++)
		value[i] +=
			counter_counts_switches(&t->plan->event[g->first + i]);
}

/* The first of those that are written down together has it for all. */
static void add_told(struct counter_thread *t, const struct open_group *o,
		     const struct ring_array *raw, uint64_t *value)
{
	const size_t from = COUNTER_NOTE_WORDS + COUNTER_DIRECT_MAX;
	if (raw->nr >= (from + ALL_COLUMNS) * 8)
		for (size_t i = 0; i < ALL_COLUMNS; i++)
			t->told[i] = ring_u64(*raw, from + i);
	counter_add_told(t, o, t->told, value);
}

bool counter_every_next(struct counter_thread *t, size_t *group_ret,
			struct counter_sum *ret, struct ring_record *r)
{
	int rc;
	while (t->ring.data && (rc = ring_next(&t->ring, r, NULL)) != 0) {
		const struct ring_read *read = &r->sample.read;
		uint64_t value[COUNTER_GROUP_MAX] = {0};
		struct open_group *o;
		if (rc < 0 || r->type != PERF_RECORD_SAMPLE ||
		    !(o = find(t, r->id)) || read->nr != o->nr)
			continue;
		for (size_t i = 0; i < o->nr; i++)
			value[o->place[i]] =
				ring_u64(read->entry, i * read->stride);
		if (t->plan->is_jotted &&
		    r->sample.raw.nr >= COUNTER_NOTE_WORDS * 8 &&
		    ring_u64(r->sample.raw, COUNTER_NOTE_LEAVES))
			counter_add_switch(t, o, value);
		if (t->plan->is_jotted && t->place >= 0)
			add_told(t, o, &r->sample.raw, value);
		*ret = (struct counter_sum){0};
		counter_note(o, read->enabled_ns, read->running_ns, value, ret);
		*group_ret = o->group;
		return true;
	}
	return false;
}

bool counter_thread_next(struct counter_thread *t, size_t *group_ret,
			 struct counter_sum *ret, uint64_t *at_ns_ret)
{
	struct ring_record r;
	if (!counter_every_next(t, group_ret, ret, &r))
		return false;
	*at_ns_ret = r.time;
	return true;
}

bool counter_thread_is_crowded(const struct counter_thread *t)
{
	const struct perf_event_mmap_page *page = t->ring.live;
	return page && __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE) -
				       t->ring.tail >
			       t->ring.size / 4;
}
