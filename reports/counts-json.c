#include "reports/counts-json.h"

#include <stdlib.h>
#include <string.h>

#include "reports/json-values.h"

static json_t *real(double v)
{
	return v < 0 ? json_null() : json_real(v);
}

static int put(json_t *o, const char *key, json_t *v)
{
	return json_object_set_new(o, key, v);
}

static json_t *event_json(const struct counts_event *e,
			  json_t *(*text)(const char *))
{
	json_t *o = json_object();
	put(o, "name", text(e->name));
	put(o, "role", json_string(counts_role_name(e->role)));
	put(o, "unit", *e->unit ? text(e->unit) : json_null());
	put(o, "scale", json_real(e->scale));
	put(o, "level", *e->level ? text(e->level) : json_null());
	put(o, "group", json_integer(e->group));
	return o;
}

static json_t *sums_json(const struct counts *c, const struct counts_sum *sum)
{
	json_t *a = json_array();
	for (size_t i = 0; i < c->nr_events; i++) {
		const struct counts_sum *s = &sum[i];
		json_t *o = json_object();
		put(o, "count", json_of_u64(s->raw));
		put(o, "scaled", json_real(s->scaled));
		put(o, "enabled_ns", json_of_u64(s->enabled_ns));
		put(o, "running_ns", json_of_u64(s->enabled_ns - s->missed_ns));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *derived_json(const struct counts *c,
			    const struct counts_sum *sum, uint64_t time_ns)
{
	static const char *const name[] = {
		[RATE_CPUS] = "cpus",
		[RATE_PER_SECOND] = "per_second",
		[RATE_HZ] = "hz",
		[RATE_PER_CYCLE] = "per_cycle",
		[RATE_PER_1000] = "per_1000_instructions",
	};
	json_t *a = json_array();
	for (size_t i = 0; i < c->nr_events; i++) {
		double v = 0;
		enum counts_rate rate = counts_derive(c, sum, i, time_ns, &v);
		json_t *o = json_null();
		if (rate != RATE_NONE) {
			o = json_object();
			put(o, name[rate], json_real(v));
		}
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *thread_json(const struct counts *c,
			   const struct counts_thread *t)
{
	json_t *o = json_object();
	put(o, "pid", json_integer(t->pid));
	put(o, "tid", t->tid ? json_integer(t->tid) : json_null());
	put(o, "start_ns", json_of_u64(t->start_ns));
	put(o, "end_ns", json_of_u64(t->end_ns));
	put(o, "counts", sums_json(c, t->sum));
	put(o, "derived", derived_json(c, t->sum, t->end_ns - t->start_ns));
	put(o, "cpi", real(counts_cpi(c, t->sum)));
	return o;
}

/* One array for each event. */
static json_t *series_json(const struct counts *c)
{
	json_t *o = json_object(), *events = json_array();
	for (size_t e = 0; e < c->nr_events; e++) {
		json_t *a = json_array();
		for (size_t i = 0; i < c->nr_buckets; i++)
			json_array_append_new(
				a,
				json_real(c->bucket[e * c->max_buckets + i]));
		json_array_append_new(events, a);
	}
	put(o, "bucket_ns", json_of_u64(c->bucket_ns));
	put(o, "scaled", events);
	return o;
}

static json_t *note(struct trace_reader *r, const char *key,
		    json_t *(*text)(const char *))
{
	const char *v = trace_meta(r, key);
	return v ? text(v) : json_null();
}

static uint64_t meta_number(struct trace_reader *r, const char *key)
{
	const char *v = trace_meta(r, key);
	return v ? strtoull(v, NULL, 10) : 0;
}

static json_t *every_json(struct trace_reader *r, json_t *(*text)(const char *))
{
	if (!trace_meta(r, "counters.every"))
		return json_null();
	json_t *o = json_object();
	put(o, "count", json_of_u64(meta_number(r, "counters.every")));
	put(o, "event", note(r, "counters.every_event", text));
	put(o, "joined", json_of_u64(meta_number(r, "counters.every_joined")));
	return o;
}

json_t *counts_json(const struct model_file *f, size_t max_threads,
		    json_t *(*text)(const char *))
{
	const struct counts *c = f->counts;
	if (!c)
		return json_null();
	json_t *o = json_object(), *events = json_array(),
	       *threads = json_array();
	for (size_t i = 0; i < c->nr_events; i++)
		json_array_append_new(events, event_json(&c->event[i], text));
	size_t nr = max_threads && max_threads < c->nr_threads ? max_threads
							       : c->nr_threads;
	for (size_t i = 0; i < nr; i++)
		json_array_append_new(threads, thread_json(c, &c->thread[i]));
	put(o, "interval_ns",
	    c->interval_ns ? json_of_u64(c->interval_ns) : json_null());
	put(o, "every", every_json(f->reader, text));
	put(o, "missing", note(f->reader, "counters.missing", text));
	put(o, "failed", note(f->reader, "counters.failed", text));
	put(o, "stops", note(f->reader, "counters.stops", text));
	put(o, "lost", json_of_u64(meta_number(f->reader, "counters.lost")));
	put(o, "records", json_of_u64(c->nr_records));
	put(o, "events", events);
	put(o, "counts", sums_json(c, c->total));
	put(o, "derived", derived_json(c, c->total, f->counted_ns));
	put(o, "cpi", real(counts_cpi(c, c->total)));
	put(o, "threads", threads);
	if (put(o, "series", series_json(c))) {
		json_decref(o);
		return NULL;
	}
	return o;
}
