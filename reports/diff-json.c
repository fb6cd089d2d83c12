/* A comparison for programs; JSON.md says what stands where. */
#include "reports/diff-print.h"

#include <math.h>
#include <stdlib.h>

#include "reports/json-values.h"
#include "reports/shortage.h"

#define SCHEMA_VERSION 1

static json_t *run_json(const struct diff_run *run)
{
	return JSON_OBJECT_OF(
		{"file", json_of_text(run->path)},
		{"command", json_of_text(run->command)},
		{"argv", json_of_words(run->words)},
		{"program", json_of_text(run->program)},
		{"start_real_ns", json_of_u64(run->start_real_ns)},
		{"duration_ns", json_of_u64(run->duration_ns)},
		{"nap_ns", json_of_u64(run->nap_ns)},
		{"min_size", json_of_u64(run->min_size)},
		{"mechanism", json_of_text(run->mechanism)},
		{"watched", json_of_double(run->watched)},
		{"truncated", json_boolean(run->is_truncated)},
		{"damaged_chunks", json_of_u64(run->nr_damaged)},
		{"lost_records", json_of_u64(run->nr_lost)});
}

static json_t *side_json(const struct diff_side *s)
{
	json_t *runs = json_array();
	for (size_t i = 0; i < s->nr_runs && runs; i++)
		runs = json_append(runs, run_json(&s->run[i]));
	return runs;
}

static json_t *sample_json(const struct diff_side *s,
			   const struct diff_entry *e, enum diff_metric metric,
			   const struct sample *sample)
{
	json_t *values = json_array();
	double *v = calloc(s->nr_runs, sizeof(*v));
	if (!v)
		shortage_tell();
	size_t nr = v ? diff_values(s, e, metric, v) : 0;
	for (size_t i = 0; i < nr && values; i++)
		values = json_append(values, json_of_double(v[i]));
	free(v);
	return JSON_OBJECT_OF({"mean", json_of_double(sample->mean)},
			      {"sd", json_of_double(sample->sd)},
			      {"values", values});
}

static json_t *measure_json(const struct diff *d, const struct diff_change *c,
			    enum diff_metric metric)
{
	const struct diff_measure *m = &c->measure[metric];
	const struct welch *t = &m->test;
	json_t *interval =
		isnan(t->low) ? json_null()
			      : json_append(json_append(json_array(),
							json_of_double(t->low)),
					    json_of_double(t->high));
	return JSON_OBJECT_OF(
		{"base", sample_json(&d->side[DIFF_BASE], c->entry[DIFF_BASE],
				     metric, &m->side[DIFF_BASE])},
		{"new", sample_json(&d->side[DIFF_NEW], c->entry[DIFF_NEW],
				    metric, &m->side[DIFF_NEW])},
		{"change", json_of_double(t->change)},
		{"relative", json_of_double(diff_relative(m))},
		{"interval", interval}, {"p", json_of_double(t->p)},
		{"changed", json_boolean(m->has_changed)});
}

static json_t *measures_json(const struct diff *d, const struct diff_change *c)
{
	json_t *o = json_object();
	for (size_t k = 0; k < DIFF_NR_METRICS && o; k++) {
		if (!c->measure[k].is_known)
			continue;
		if (json_object_set_new(o, diff_metric[k].id,
					measure_json(d, c, k))) {
			json_decref(o);
			o = NULL;
		}
	}
	return o;
}

static json_t *stack_json(const struct diff_item *item)
{
	return item ? json_of_frames(item->shown, item->nr_frames)
		    : json_null();
}

static json_t *mistake_json(const struct diff *d, const struct diff_change *c,
			    int side)
{
	const char *text = diff_mistake(d, c, side);
	return text ? json_of_text(text) : json_null();
}

static json_t *change_json(const struct diff *d, const struct diff_change *c)
{
	const char *name =
		c->item[c->item[DIFF_NEW] ? DIFF_NEW : DIFF_BASE]->name;
	bool changed = c->verdict != VERDICT_SAME;
	return JSON_OBJECT_OF(
		{"name", *name ? json_of_text(name) : json_null()},
		{"verdict", json_string(diff_verdict_name(c->verdict))},
		{"by",
		 changed ? json_string(diff_metric[c->by].id) : json_null()},
		{"match", json_string(diff_how_name(c->how))},
		{"ambiguous", json_boolean(c->ambiguous)},
		{"watched",
		 JSON_OBJECT_OF({"base", json_of_double(c->watched[DIFF_BASE])},
				{"new", json_of_double(c->watched[DIFF_NEW])})},
		{"base_frames", stack_json(c->item[DIFF_BASE])},
		{"new_frames", stack_json(c->item[DIFF_NEW])},
		{"mistake",
		 JSON_OBJECT_OF({"base", mistake_json(d, c, DIFF_BASE)},
				{"new", mistake_json(d, c, DIFF_NEW)})},
		{"metrics", measures_json(d, c)});
}

static json_t *rules_json(const struct diff_rules *rules)
{
	json_t *a = json_array();
	for (size_t i = 0; i < rules->nr && a; i++) {
		const struct diff_rule *r = &rules->rule[i];
		a = json_append(
			a,
			JSON_OBJECT_OF(
				{"rule", json_of_text(r->text)},
				{"crossed", json_boolean(r->is_crossed)},
				{"value", r->is_known ? json_of_double(r->value)
						      : json_null()}));
	}
	return a;
}

static json_t *counts_json(const struct diff *d)
{
	json_t *o = json_object();
	for (size_t v = 0; v < VERDICT_NR && o; v++)
		if (json_object_set_new(
			    o, diff_verdict_name(v),
			    json_of_u64(d->nr_by_verdict[DIFF_SITE][v]))) {
			json_decref(o);
			o = NULL;
		}
	return o;
}

static json_t *kind_json(const struct diff *d, enum diff_kind kind)
{
	json_t *a = json_array();
	for (size_t i = 0; i < d->nr_changes && a; i++)
		if (d->change[i].kind == kind)
			a = json_append(a, change_json(d, &d->change[i]));
	return a;
}

int diff_print_json(const struct diff *d, const struct diff_rules *rules,
		    FILE *out, struct smco_err *err)
{
	json_t *doc = JSON_OBJECT_OF(
		{"schema", json_integer(SCHEMA_VERSION)},
		{"generator", json_string("smco-diff " SMCO_VERSION)},
		{"judged", json_boolean(d->is_judged)},
		{"least_change", json_real(d->least_change)},
		{"base", side_json(&d->side[DIFF_BASE])},
		{"new", side_json(&d->side[DIFF_NEW])},
		{"run", measures_json(d, &d->change[0])},
		{"counts", counts_json(d)}, {"sites", kind_json(d, DIFF_SITE)},
		{"phases", kind_json(d, DIFF_PHASE)},
		{"counters", kind_json(d, DIFF_COUNTER)},
		{"mistakes", kind_json(d, DIFF_MISTAKE)},
		{"variables", kind_json(d, DIFF_VARIABLE)},
		{"fail_on", rules_json(rules)});
	return json_print(doc, out, err);
}
