#include "reports/counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/units.h"

static const char *const role_names[ROLE_NR] = {
	[ROLE_OTHER] = "other",
	[ROLE_TASK_CLOCK] = "task-clock",
	[ROLE_TSC] = "tsc",
	[ROLE_CYCLES] = "cycles",
	[ROLE_INSTRUCTIONS] = "instructions",
	[ROLE_BRANCHES] = "branches",
	[ROLE_MISSES] = "misses",
	[ROLE_FAULTS] = "faults",
	[ROLE_MINOR_FAULTS] = "minor-faults",
	[ROLE_MAJOR_FAULTS] = "major-faults",
	[ROLE_SWITCHES] = "switches",
	[ROLE_MIGRATIONS] = "migrations",
};

const char *counts_role_name(enum counts_role role)
{
	return role < ROLE_NR ? role_names[role] : "other";
}

/* ----------------------------------------------------------------- keys --- */

static const char *key(const struct trace_reader *r, size_t group, size_t index,
		       const char *what)
{
	char name[64];
	snprintf(name, sizeof(name), "counter.%zu.%zu%s", group, index, what);
	return trace_meta((struct trace_reader *)(uintptr_t)r, name);
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static enum counts_role find_role(const char *name)
{
	for (size_t i = 0; name && i < ROLE_NR; i++)
		if (!strcmp(role_names[i], name))
			return (enum counts_role)i;
	return ROLE_OTHER;
}

static double find_scale(const char *text)
{
	double v = text ? strtod(text, NULL) : 1;
	return v > 0 && v < 1e30 ? v : 1;
}

static void read_group(struct counts *c, const struct trace_reader *r,
		       size_t group)
{
	c->first_of_group[group] = (uint16_t)c->nr_events;
	for (size_t i = 0; i < EV_COUNTS_MAX; i++) {
		const char *name = key(r, group, i, "");
		if (!name || c->nr_events == COUNTS_MAX_EVENTS)
			break;
		c->event[c->nr_events++] = (struct counts_event){
			.name = name,
			.unit = or_empty(key(r, group, i, ".unit")),
			.level = or_empty(key(r, group, i, ".level")),
			.scale = find_scale(key(r, group, i, ".scale")),
			.role = find_role(key(r, group, i, ".role")),
			.group = (uint32_t)group,
			.index = (uint32_t)i,
		};
		c->nr_of_group[group]++;
	}
}

int counts_create(const struct trace_reader *r, size_t max_buckets,
		  struct counts **ret)
{
	struct counts *c = calloc(1, sizeof(*c));
	*ret = NULL;
	if (!c)
		return SMCO_NOMEM;
	for (size_t g = 0; g < ARRAY_SIZE(c->first_of_group); g++)
		read_group(c, r, g);
	if (!c->nr_events) {
		free(c);
		return 0;
	}
	const char *interval = trace_meta((struct trace_reader *)(uintptr_t)r,
					  "counters.interval_ns");
	c->interval_ns = interval ? strtoull(interval, NULL, 10) : 0;
	c->bucket_ns = c->interval_ns >= NSEC_PER_MSEC &&
				       c->interval_ns < 3600 * NSEC_PER_SEC
			       ? c->interval_ns
			       : 10 * NSEC_PER_MSEC;
	c->max_buckets = max_buckets ? max_buckets : COUNTS_BUCKETS;
	/* Finer than the intervals, so that one can see where they end. */
	if (c->max_buckets > COUNTS_BUCKETS)
		c->bucket_ns = c->bucket_ns * COUNTS_BUCKETS / c->max_buckets;
	c->bucket = calloc(c->nr_events * c->max_buckets, sizeof(double));
	if (!c->bucket) {
		free(c);
		return SMCO_NOMEM;
	}
	*ret = c;
	return 0;
}

void counts_destroy(struct counts *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nr_threads; i++)
		free(c->thread[i].sum);
	free(c->thread);
	free(c->bucket);
	hindex_free(&c->index);
	free(c);
}

/* -------------------------------------------------------------- records --- */

struct thread_key {
	const struct counts *c;
	uint32_t id[2];
};

static bool same_thread(const void *ctx, uint32_t value)
{
	const struct thread_key *k = ctx;
	const struct counts_thread *t = &k->c->thread[value];
	return t->pid == k->id[0] && t->tid == k->id[1];
}

static struct counts_thread *thread_of(struct counts *c, uint32_t pid,
				       uint32_t tid)
{
	struct thread_key k = {c, {pid, tid}};
	uint64_t hash = hindex_hash(0, k.id, sizeof(k.id));
	uint32_t found;
	if (hindex_find(&c->index, hash, same_thread, &k, &found))
		return &c->thread[found];
	if (!ARRAY_ROOM(c->thread, c->nr_threads, c->cap_threads))
		return NULL;
	struct counts_sum *sum = calloc(c->nr_events, sizeof(*sum));
	if (!sum || !hindex_add(&c->index, hash, (uint32_t)c->nr_threads)) {
		free(sum);
		return NULL;
	}
	struct counts_thread *t = &c->thread[c->nr_threads++];
	*t = (struct counts_thread){
		.pid = pid,
		.tid = tid,
		.start_ns = UINT64_MAX,
		.sum = sum,
	};
	return t;
}

/* What was counted for so long stands for itself. */
#define PART_NS (1000 * 1000)

static double scale(double value, uint64_t enabled_ns, uint64_t missed_ns)
{
	if (!missed_ns || missed_ns >= enabled_ns)
		return value;
	return value * ((double)enabled_ns / (double)(enabled_ns - missed_ns));
}

static void add_part(struct counts_part *to, const struct counts_part *more)
{
	to->raw += more->raw;
	to->enabled_ns += more->enabled_ns;
	to->missed_ns += more->missed_ns;
}

static double scale_part(const struct counts_part *p)
{
	return scale((double)p->raw, p->enabled_ns, p->missed_ns);
}

/*
 * A thread's sum is scaled part by part: much of one may have been counted and
 * little of another, and what it did in the first says nothing of the second.
 * Nor does an interval in which nothing was counted by itself: it is part of
 * the next one in which something was, or of the last. Returns by how much the
 * sum has grown.
 */
static double add_sum(struct counts_sum *s, uint64_t raw,
		      const struct ev_counts *ev)
{
	const struct counts_part more = {raw, ev->enabled_ns, ev->missed_ns};
	double before = s->scaled;
	s->raw += raw;
	s->enabled_ns += ev->enabled_ns;
	s->missed_ns += ev->missed_ns;
	add_part(&s->open, &more);
	if (s->open.enabled_ns - s->open.missed_ns >= PART_NS) {
		s->before += scale_part(&s->last);
		s->last = s->open;
		s->open = (struct counts_part){0};
	}
	struct counts_part rest = s->last;
	add_part(&rest, &s->open);
	s->scaled = s->before + scale_part(&rest);
	return s->scaled - before;
}

static void add_total(struct counts_sum *s, uint64_t raw, double scaled,
		      const struct ev_counts *ev)
{
	s->raw += raw;
	s->scaled += scaled;
	s->enabled_ns += ev->enabled_ns;
	s->missed_ns += ev->missed_ns;
}

void counts_add(struct counts_sum *sum, const struct counts_sum *more)
{
	sum->raw += more->raw;
	sum->scaled += more->scaled;
	sum->enabled_ns += more->enabled_ns;
	sum->missed_ns += more->missed_ns;
}

/* Two buckets become one, as often as it takes until @time_ns has one. */
static void widen_buckets(struct counts *c, uint64_t time_ns)
{
	size_t half = c->max_buckets / 2;
	while (time_ns / c->bucket_ns >= c->max_buckets) {
		for (size_t e = 0; e < c->nr_events; e++) {
			double *b = c->bucket + e * c->max_buckets;
			for (size_t i = 0; i < half; i++)
				b[i] = b[2 * i] + b[2 * i + 1];
			memset(b + half, 0, half * sizeof(*b));
		}
		c->nr_buckets = (c->nr_buckets + 1) / 2;
		c->bucket_ns *= 2;
	}
	size_t nr = (size_t)(time_ns / c->bucket_ns) + 1;
	if (nr > c->nr_buckets)
		c->nr_buckets = nr;
}

/* Share @v of event @e out over [start, end). */
static void spread(struct counts *c, size_t e, double v, uint64_t start_ns,
		   uint64_t end_ns)
{
	double *b = c->bucket + e * c->max_buckets;
	double per_ns = v / (double)(end_ns - start_ns);
	while (start_ns < end_ns) {
		size_t i = (size_t)(start_ns / c->bucket_ns);
		uint64_t until = (i + 1) * c->bucket_ns;
		if (until > end_ns)
			until = end_ns;
		b[i] += per_ns * (double)(until - start_ns);
		start_ns = until;
	}
}

int counts_take(struct counts *c, const struct record *r)
{
	struct ev_counts ev;
	memcpy(&ev, r->payload, sizeof(ev));
	c->nr_records++;
	if (r->param >= ARRAY_SIZE(c->first_of_group) || !ev.nr ||
	    ev.nr > c->nr_of_group[r->param]) {
		c->nr_unknown++;
		return 0;
	}
	struct counts_thread *t = thread_of(c, ev.pid, r->tid);
	if (!t)
		return SMCO_NOMEM;
	/* Hostile values must not wrap. */
	uint64_t end =
		r->time_ns < UINT64_MAX / 4 ? r->time_ns : UINT64_MAX / 4;
	uint64_t start = ev.length_ns < end ? end - ev.length_ns : 0;
	if (end == start)
		end = start + 1;
	if (c->nr_taken++ == 0 || start < c->start_ns)
		c->start_ns = start;
	if (start < t->start_ns)
		t->start_ns = start;
	if (end > t->end_ns)
		t->end_ns = end;
	if (ev.missed_ns > ev.enabled_ns)
		ev.missed_ns = ev.enabled_ns;
	widen_buckets(c, end - 1);
	for (size_t i = 0; i < ev.nr; i++) {
		size_t e = c->first_of_group[r->param] + i;
		double grown = add_sum(&t->sum[e], ev.value[i], &ev);
		add_total(&c->total[e], ev.value[i], grown, &ev);
		spread(c, e,
		       scale((double)ev.value[i], ev.enabled_ns, ev.missed_ns),
		       start, end);
	}
	return 0;
}

/* Of event @e; the machine's are none of a thread's. */
static void add_unseen(struct counts *c, size_t e)
{
	double seen_ns = 0, unseen_ns = 0, scaled = 0;
	for (size_t i = 0; i < c->nr_threads; i++) {
		const struct counts_sum *s = &c->thread[i].sum[e];
		if (!c->thread[i].tid)
			continue;
		if (s->missed_ns < s->enabled_ns) {
			seen_ns += (double)s->enabled_ns;
			scaled += s->scaled;
		} else {
			unseen_ns += (double)s->enabled_ns;
		}
	}
	if (seen_ns > 0)
		c->total[e].scaled += scaled * (unseen_ns / seen_ns);
}

void counts_finish(struct counts *c)
{
	for (size_t e = 0; c && e < c->nr_events; e++)
		add_unseen(c, e);
}

/* -------------------------------------------------------------- derived --- */

/* Sum of the first event of @role that has counted anything; -1: there is
 * none. Of several levels the one of both is meant. */
static double first_of(const struct counts *c, const struct counts_sum *sum,
		       enum counts_role role, const char *level)
{
	for (size_t i = 0; i < c->nr_events; i++)
		if (c->event[i].role == role &&
		    !strcmp(c->event[i].level, level) && sum[i].scaled > 0)
			return sum[i].scaled;
	return -1;
}

double counts_cpi(const struct counts *c, const struct counts_sum *sum)
{
	double cycles = first_of(c, sum, ROLE_CYCLES, "");
	double instructions = first_of(c, sum, ROLE_INSTRUCTIONS, "");
	return cycles > 0 && instructions > 0 ? cycles / instructions : -1;
}

static enum counts_rate ratio(enum counts_rate rate, double value, double by,
			      double *ret)
{
	if (by <= 0)
		return RATE_NONE;
	*ret = value / by;
	return rate;
}

enum counts_rate counts_derive(const struct counts *c,
			       const struct counts_sum *sum, size_t event,
			       uint64_t time_ns, double *ret)
{
	const struct counts_event *e = &c->event[event];
	double v = sum[event].scaled;
	double cpu_s = first_of(c, sum, ROLE_TASK_CLOCK, "") / 1e9;
	double seconds = cpu_s > 0 ? cpu_s : (double)time_ns / 1e9;
	double instructions = first_of(c, sum, ROLE_INSTRUCTIONS, e->level);
	switch (e->role) {
	case ROLE_TASK_CLOCK:
		return ratio(RATE_CPUS, v, (double)time_ns, ret);
	case ROLE_TSC:
	case ROLE_CYCLES:
		return ratio(RATE_HZ, v, seconds, ret);
	case ROLE_INSTRUCTIONS:
		return ratio(RATE_PER_CYCLE, v,
			     first_of(c, sum, ROLE_CYCLES, e->level), ret);
	case ROLE_MISSES:
		if (instructions > 0)
			return ratio(RATE_PER_1000, v * 1000, instructions,
				     ret);
		return ratio(RATE_PER_SECOND, v, seconds, ret);
	case ROLE_OTHER:
		if (*e->unit)
			return RATE_NONE;
		return ratio(RATE_PER_SECOND, v, seconds, ret);
	default:
		return ratio(RATE_PER_SECOND, v, seconds, ret);
	}
}

char *counts_value_text(const struct counts_event *e, double v, char *buf)
{
	if (!strcmp(e->unit, "ns"))
		return units_duration(units_whole(v), buf);
	if (!*e->unit)
		return units_count(units_whole(v), buf);
	snprintf(buf, UNITS_MAX, "%.4g %.15s", v * e->scale, e->unit);
	return buf;
}

char *counts_rate_text(enum counts_rate rate, double v, char *buf)
{
	static const char *const unit[] = {"Hz", "kHz", "MHz", "GHz"};
	char number[UNITS_MAX];
	size_t i = 0;
	switch (rate) {
	case RATE_NONE:
		buf[0] = '\0';
		break;
	case RATE_CPUS:
		snprintf(buf, UNITS_MAX, "%.4g CPUs used", v);
		break;
	case RATE_PER_SECOND:
		if (v < 1e4)
			snprintf(buf, UNITS_MAX, "%.4g a second", v);
		else
			snprintf(buf, UNITS_MAX, "%.25s a second",
				 units_count(units_whole(v), number));
		break;
	case RATE_HZ:
		for (; v >= 1000 && i + 1 < ARRAY_SIZE(unit); i++)
			v /= 1000;
		snprintf(buf, UNITS_MAX, "%.3g %s", v, unit[i]);
		break;
	case RATE_PER_CYCLE:
		snprintf(buf, UNITS_MAX, "%.3g a cycle (CPI %.3g)", v,
			 v > 0 ? 1 / v : 0);
		break;
	case RATE_PER_1000:
		snprintf(buf, UNITS_MAX, "%.3g in 1000 instructions", v);
		break;
	}
	return buf;
}
