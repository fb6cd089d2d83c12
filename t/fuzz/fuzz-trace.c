/*
 * The trace reader: everything that it gives away is looked at, twice, and a
 * second time only what the index leaves of it. And by a thread that decodes
 * ahead: the same, to the end and to any record before it.
 */
#include "reports/ahead.h"
#include "t/fuzz/trace-mutate.h"

static volatile uint64_t sum; /* nothing that is looked at is optimised out */

static void look_at_tables(struct trace_reader *r)
{
	const char *key, *value;
	uint32_t id;
	size_t nr;
	for (size_t i = 0; trace_meta_at(r, i, &key, &value); i++) {
		sum += strlen(key) + strlen(value);
		if (!trace_meta(r, key))
			abort();
	}
	for (size_t i = 0; trace_stack_at(r, i, &id); i++) {
		const struct trace_frame *f = trace_stack(r, id, &nr);
		for (size_t k = 0; k < nr; k++)
			sum += strlen(f[k].function) + strlen(f[k].file) +
			       strlen(f[k].module) + strlen(f[k].build_id) +
			       f[k].line + f[k].offset;
	}
}

struct seen {
	uint64_t nr, nr_damages;
	uint64_t hash; /* of all, in this order */
};

static void mix(struct seen *s, uint64_t v)
{
	s->hash = (s->hash ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	s->hash ^= s->hash >> 29;
}

static void look_at_record(struct seen *s, const struct record *r)
{
	const uint8_t *payload = r->payload;
	if ((uintptr_t)payload % 8)
		abort();
	for (size_t i = 0; i < r->payload_len; i++)
		mix(s, payload[i]);
	mix(s, r->time_ns);
	mix(s, (uint64_t)r->event << 32 | r->param);
	mix(s, (uint64_t)r->cpu << 32 | r->tid);
	s->nr++;
}

static struct seen look_at_records(struct trace_reader *r)
{
	struct seen s = {0};
	struct record record;
	int rc;
	while ((rc = trace_next(r, &record, NULL)) != 0) {
		if (rc > 0)
			look_at_record(&s, &record);
		else
			mix(&s, ++s.nr_damages);
	}
	sum += trace_nr_damaged(r) + trace_nr_dropped(r);
	return s;
}

/* At most @nr of them. */
static struct seen look_ahead(struct trace_reader *r, uint64_t nr)
{
	struct seen s = {0};
	struct record record;
	int rc;
	trace_rewind(r);
	struct ahead *a = ahead_begin(r, 1);
	while (s.nr < nr && (rc = ahead_next(a, &record)) != 0) {
		if (rc > 0)
			look_at_record(&s, &record);
		else
			mix(&s, ++s.nr_damages);
	}
	ahead_end(a);
	return s;
}

static bool same(const struct seen *a, const struct seen *b)
{
	return a->nr == b->nr && a->nr_damages == b->nr_damages &&
	       a->hash == b->hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint32_t tid = 4712;
	struct trace_reader *r;
	size_t len;
	uint8_t *file = mutate(data, size, &len);
	if (file && !trace_reader_open_mem(file, len, &r, NULL)) {
		look_at_tables(r);
		struct seen all = look_at_records(r), again;
		uint64_t lost = trace_nr_lost(r);
		trace_rewind(r);
		again = look_at_records(r);
		if (!same(&again, &all) || trace_nr_lost(r) != lost)
			abort();
		look_ahead(r, all.nr * data[size - 1] / 256);
		again = look_ahead(r, UINT64_MAX);
		if (!same(&again, &all) || trace_nr_lost(r) != lost)
			abort();
		trace_narrow(r, 300 * NSEC_PER_MSEC, 0, &tid);
		trace_rewind(r);
		if (look_at_records(r).nr > all.nr)
			abort();
		trace_reader_close(r);
	}
	free(file);
	return 0;
}
