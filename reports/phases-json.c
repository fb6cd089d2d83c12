#include "reports/phases-json.h"

#include <stdlib.h>
#include <string.h>

#include "reports/json-values.h"
#include "reports/model.h"
#include "reports/names.h"

#define LEAST_PIECES	8 /* of a thread in a phase */
#define MAX_FUNCTIONS	20
#define MAX_PAGE_RANGES 1000 /* of a phase */

static size_t tracks_shown(const struct summary *s, size_t max_pieces)
{
	size_t nr = s->phases.when.nr, most = max_pieces / LEAST_PIECES;
	return max_pieces && nr > most ? most : nr;
}

size_t phases_left_out(const struct summary *s, size_t max_pieces)
{
	return s->phases.when.nr - tracks_shown(s, max_pieces);
}

size_t phase_ranges_left_out(const struct summary *s, size_t max_pieces)
{
	const struct model_phase_ranges *m = &s->phase_ranges;
	size_t nr = 0, left = 0;
	/* They are in order of the phases. */
	for (size_t i = 0; max_pieces && i < m->nr; i++) {
		if (i && m->range[i].phase != m->range[i - 1].phase)
			nr = 0;
		left += ++nr > MAX_PAGE_RANGES;
	}
	return left;
}

static json_t *pieces_json(const struct when_track *t)
{
	json_t *all = json_array();
	for (size_t i = 0; all && i < t->nr; i++) {
		const struct when_piece *p = &t->piece[i];
		all = json_append(all,
				  json_pack("[I,I,I,I]", (json_int_t)p->from_ns,
					    (json_int_t)(p->to_ns - p->from_ns),
					    (json_int_t)p->in_ns,
					    (json_int_t)(p->nr & INT64_MAX)));
	}
	return all;
}

static json_t *track_json(const struct when_track *t, size_t max)
{
	struct when_track copy = *t;
	copy.piece = calloc(t->nr + 1, sizeof(*copy.piece));
	if (!copy.piece)
		return NULL;
	memcpy(copy.piece, t->piece, t->nr * sizeof(*copy.piece));
	when_sort(&copy, max);
	json_t *o = JSON_OBJECT_OF(
		{"file", json_integer(t->file)},
		{"pid", t->pid ? json_integer(t->pid) : json_null()},
		{"tid", t->tid ? json_integer(t->tid) : json_null()},
		{"pieces", pieces_json(&copy)});
	free(copy.piece);
	return o;
}

static json_t *when_json(const struct summary *s, size_t phase,
			 size_t max_pieces)
{
	const struct model_when *m = &s->phases.when;
	size_t nr = tracks_shown(s, max_pieces);
	size_t max = max_pieces && nr ? max_pieces / nr : 0;
	json_t *all = json_array();
	for (size_t i = 0; all && i < nr; i++)
		if (m->track[i].phase == phase)
			all = json_append(all, track_json(&m->track[i], max));
	return all;
}

static json_t *counted_json(const struct summary *s, size_t file,
			    const struct phase_sums *sums)
{
	const struct counts *c = s->file[file].counts;
	json_t *all = c ? json_array() : json_null();
	for (size_t e = 0; c && all && e < c->nr_events; e++)
		all = json_append(all, json_of_double(sums->counts[e]));
	return all;
}

struct top { /* functions with most weight, most first */
	size_t function[MAX_FUNCTIONS];
	size_t nr;
};

static void find_top(const double *self, size_t nr, struct top *top)
{
	for (size_t i = 0; i < nr; i++) {
		size_t at = top->nr;
		if (self[i] <= 0 || (at == MAX_FUNCTIONS &&
				     self[i] <= self[top->function[at - 1]]))
			continue;
		if (at < MAX_FUNCTIONS)
			top->nr++;
		else
			at--;
		for (; at && self[top->function[at - 1]] < self[i]; at--)
			top->function[at] = top->function[at - 1];
		top->function[at] = i;
	}
}

static json_t *functions_json(const struct summary *s,
			      const struct phase_sums *sums)
{
	const struct model_samples *m = &s->samples;
	struct top top = {.nr = 0};
	char name[NAMES_MAX];
	json_t *all = json_array();
	if (sums->self)
		find_top(sums->self, m->nr_functions, &top);
	for (size_t i = 0; all && i < top.nr; i++) {
		const struct trace_frame *f =
			m->function[top.function[i]].frame;
		double weight = sums->self[top.function[i]];
		all = json_append(
			all,
			JSON_OBJECT_OF(
				{"function",
				 json_of_text(sample_function_name(f, name))},
				{"module", json_of_text(f->module)},
				{"kernel", json_boolean(sample_is_kernel(f))},
				{"self_ppb",
				 json_integer(
					 (json_int_t)(weight / sums->weight *
						      1e9))}));
	}
	return all;
}

static json_t *mean_json(const struct ev_phase_total *t)
{
	return t->nr_seen
		       ? json_of_double((double)t->seen_ns / (double)t->nr_seen)
		       : json_null();
}

static json_t *about_json(const struct summary *s, size_t phase, size_t file)
{
	uint64_t ns = phase_about_ns(&s->phases, phase, file);
	return ns ? json_of_u64(ns) : json_null();
}

static json_t *file_json(const struct summary *s, size_t phase, size_t file)
{
	const struct phase_sums *p = phase_sums(s, phase, file);
	return JSON_OBJECT_OF(
		{"count", json_of_u64(p->total.count)},
		{"timed", json_of_u64(p->total.nr_seen)},
		{"timed_ns", json_of_u64(p->total.seen_ns)},
		{"mean_ns", mean_json(&p->total)},
		{"longest_ns", json_of_u64(p->total.longest_ns)},
		{"threads", json_of_u64(p->nr_threads)},
		{"in_ns", json_of_double(p->in_ns)},
		{"about_ns", about_json(s, phase, file)},
		{"samples", json_of_double(p->samples)},
		{"samples_weight", json_of_double(p->weight)},
		{"functions", functions_json(s, p)},
		{"naps", json_of_double(p->naps)},
		{"naps_byte_seconds", json_of_double(p->byte_seconds)},
		{"naps_unused_bytes", json_of_double(p->unused_bytes)},
		{"counts", counted_json(s, file, p)});
}

static json_t *files_json(const struct summary *s, size_t phase)
{
	json_t *all = json_array();
	for (size_t f = 0; all && f < s->nr_files; f++)
		all = json_append(all, file_json(s, phase, f));
	return all;
}

static json_t *bound_json(const struct model_phase_range *r, int64_t bound)
{
	return r->is_signed ? json_integer(bound)
			    : json_of_u64((uint64_t)bound);
}

static json_t *range_json(const struct model_phase_range *r)
{
	bool sure = r->has_sure;
	return JSON_OBJECT_OF(
		{"variable", json_of_text(r->decl->function)},
		{"type", json_of_text(r->type)},
		{"file", json_of_text(r->decl->file)},
		{"line", json_integer(r->decl->line)},
		{"smallest", bound_json(r, r->smallest)},
		{"largest", bound_json(r, r->largest)},
		{"sure_smallest",
		 sure ? bound_json(r, r->sure_smallest) : json_null()},
		{"sure_largest",
		 sure ? bound_json(r, r->sure_largest) : json_null()});
}

static json_t *ranges_json(const struct summary *s, size_t phase, size_t most)
{
	const struct model_phase_ranges *m = &s->phase_ranges;
	json_t *all = json_array();
	size_t nr = 0;
	for (size_t i = 0; all && i < m->nr && (!most || nr < most); i++) {
		if (m->range[i].phase != phase)
			continue;
		all = json_append(all, range_json(&m->range[i]));
		nr++;
	}
	return all;
}

json_t *phase_json(const struct summary *s, size_t i, size_t max_pieces)
{
	const struct model_phase *p = &s->phases.phase[i];
	bool known = s->phases.sums != NULL;
	return JSON_OBJECT_OF(
		{"phase", json_of_text(p->name)},
		{"count", json_of_u64(p->sum.count)},
		{"timed", json_of_u64(p->sum.nr_seen)},
		{"timed_ns", json_of_u64(p->sum.seen_ns)},
		{"mean_ns", mean_json(&p->sum)},
		{"longest_ns", json_of_u64(p->sum.longest_ns)},
		{"files", known ? files_json(s, i) : json_null()},
		{"when", known ? when_json(s, i, max_pieces) : json_null()},
		{"ranges",
		 ranges_json(s, i, max_pieces ? MAX_PAGE_RANGES : 0)});
}
