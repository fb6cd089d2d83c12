#include "reports/samples-json.h"

#include "reports/json-values.h"
#include "reports/names.h"

static json_t *functions_json(const struct model_samples *m, size_t nr)
{
	json_t *all = json_array();
	char name[NAMES_MAX];
	for (size_t i = 0; all && i < m->nr_functions && i < nr; i++) {
		const struct sample_function *f = &m->function[i];
		json_t *o = JSON_OBJECT_OF(
			{"function",
			 json_of_text(sample_function_name(f->frame, name))},
			{"module", json_of_text(f->frame->module)},
			{"kernel", json_boolean(sample_is_kernel(f->frame))},
			{"self", json_of_u64(f->nr_self)},
			{"total", json_of_u64(f->nr_total)},
			{"self_ppb",
			 json_integer(sample_share_ppb(m, f->self))},
			{"total_ppb",
			 json_integer(sample_share_ppb(m, f->total))});
		if (json_array_append_new(all, o)) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static json_t *stacks_json(const struct model_samples *m, size_t nr)
{
	json_t *all = json_array();
	for (size_t i = 0; all && i < m->nr_stacks && i < nr; i++) {
		const struct sample_stack *s = &m->stack[i];
		json_t *o = JSON_OBJECT_OF(
			{"file", json_integer(s->file)},
			{"pid", json_integer(s->pid)},
			{"stack", s->id ? json_integer(s->id) : json_null()},
			{"samples", json_of_u64(s->nr)},
			{"weight", json_of_double(s->weight)});
		if (json_array_append_new(all, o)) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static json_t *meta_json(const struct summary *s, const char *key)
{
	const char *v = trace_meta(s->reader, key);
	return v ? json_of_text(v) : json_null();
}

static json_t *sum_json(const struct summary *s, const char *key)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < s->nr_files; i++)
		sum += model_reader_u64(s->file[i].reader, key, 0);
	return json_of_u64(sum);
}

json_t *samples_json(const struct summary *s, size_t max)
{
	size_t nr = max ? max : SIZE_MAX;
	const struct model_samples *m = &s->samples;
	if (!m->nr && !model_has_monitor(s, "samples"))
		return json_null();
	return JSON_OBJECT_OF(
		{"event", meta_json(s, "samples.event")},
		{"level", meta_json(s, "samples.level")},
		{"wanted_hz",
		 json_of_u64(model_meta_u64(s, "samples.wanted_hz", 0))},
		{"hz", json_of_u64(model_meta_u64(s, "samples.hz", 0))},
		{"cost_ns",
		 json_of_u64(model_meta_u64(s, "samples.cost_ns", 0))},
		{"samples", json_of_u64(m->nr)},
		{"weight", json_of_double(m->weight)},
		{"in_kernel", json_of_u64(m->nr_kernel)},
		{"cut", json_of_u64(m->nr_cut)},
		{"lost", sum_json(s, "samples.lost")},
		{"paused_ns", sum_json(s, "samples.paused_ns")},
		{"sparse_ns", sum_json(s, "samples.sparse_ns")},
		{"spent_ns", sum_json(s, "samples.spent_ns")},
		{"failed", meta_json(s, "samples.failed")},
		{"functions", functions_json(m, nr)},
		{"stacks", stacks_json(m, nr)});
}
