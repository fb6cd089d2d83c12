/*
 * The summary for programs; JSON.md says what stands where. Arrays are
 * written element by element, and naps without a tree, of which there may be
 * millions.
 */
#include "reports/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <jansson.h>

#include "reports/array.h"
#include "reports/counts-json.h"
#include "reports/id-set.h"
#include "reports/json-values.h"
#include "reports/ranges-json.h"
#include "reports/model.h"
#include "reports/nap-json.h"
#include "reports/phases-json.h"
#include "reports/names.h"
#include "reports/samples-json.h"
#include "reports/shortage.h"
#include "reports/top-naps.h"

#define SCHEMA_VERSION 1
#define WRITE_BYTES    (64u << 10)
#define ALL_PIECES     200000 /* a tree of more would be too large */

struct writer {
	const struct summary *s;
	struct summary_limits limits;
	struct top_naps naps; /* those to be written */
	struct shelf_window window;
	uint32_t *culprit; /* stacks that sites refer to */
	size_t nr_culprits, cap_culprits;
	FILE *out;
	bool failed;
	bool first; /* element of the current array or object */
};

static json_t *id_or_null(uint32_t id)
{
	return id ? json_integer(id) : json_null();
}

/* Write @v (consumed) as the next element, behind @key if there is one. */
static void emit(struct writer *w, const char *key, json_t *v)
{
	if (!v) {
		w->failed = true;
		return;
	}
	fputs(w->first ? "\n" : ",\n", w->out);
	w->first = false;
	if (key)
		fprintf(w->out, "\"%s\": ", key);
	if (json_write(v, w->out, JSON_COMPACT | JSON_ENCODE_ANY))
		w->failed = true;
	json_decref(v);
}

static void open_array(struct writer *w, const char *key)
{
	fprintf(w->out, "%s\"%s\": [", w->first ? "\n" : ",\n", key);
	w->first = true;
}

static void close_array(struct writer *w)
{
	fputs("\n]", w->out);
	w->first = false;
}

/* How many of @nr are written, if at most @limit are. */
static size_t at_most(size_t nr, size_t limit)
{
	return limit && limit < nr ? limit : nr;
}

static json_t *sum_json(const struct nap_sum *sum)
{
	json_t *ends = json_object();
	for (size_t i = 0; ends && i < END_NR; i++)
		json_object_set_new(ends, model_nap_end_name(i),
				    json_of_u64(sum->nr_by_end[i]));
	return JSON_OBJECT_OF(
		{"naps", json_of_u64(sum->nr)},
		{"blocks", json_of_u64(sum->nr_objects)},
		{"byte_seconds", json_real(sum->byte_seconds)},
		{"longest_ns", json_of_u64(sum->longest_ns)},
		{"longest_error_ns", json_of_u64(sum->longest_error_ns)},
		{"writes_only", json_of_u64(sum->nr_writes_only)},
		{"head_unseen", json_of_u64(sum->nr_head_unseen)},
		{"never_accessed", json_of_u64(sum->nr_never_accessed)},
		{"unused_bytes", json_of_u64(sum->unused_bytes)},
		{"ended", ends});
}

static json_t *optional_text(const char *s)
{
	return s ? json_of_text(s) : json_null();
}

/* ------------------------------------------------------------- sections --- */

static void put_meta(struct writer *w)
{
	json_t *meta = json_object();
	const char *key, *value;
	for (size_t i = 0; meta && trace_meta_at(w->s->reader, i, &key, &value);
	     i++) {
		json_t *k = json_of_text(key);
		if (!k || json_object_set_new(meta, json_string_value(k),
					      json_of_text(value)))
			w->failed = true;
		json_decref(k);
	}
	emit(w, "meta", meta);
}

static void put_run(struct writer *w)
{
	const struct summary *s = w->s;
	struct trace_reader *r = s->reader;
	emit(w, "run",
	     JSON_OBJECT_OF(
		     {"command", optional_text(trace_meta(r, "command"))},
		     {"argv", json_of_command(r)},
		     {"start_real_ns", json_of_u64(trace_start_real_ns(r))},
		     {"duration_ns", json_of_u64(s->duration_ns)},
		     {"detached", optional_text(trace_meta(r, "detached"))},
		     {"records", json_of_u64(s->nr_records)},
		     {"unknown_records", json_of_u64(s->nr_unknown)},
		     {"truncated", json_boolean(model_is_truncated(s))},
		     {"damaged_chunks", json_of_u64(model_nr_damaged(s))},
		     {"lost_records", json_of_u64(model_nr_lost(s))},
		     {"dropped_records", json_of_u64(model_nr_dropped(s))}));
}

static void put_files(struct writer *w)
{
	open_array(w, "files");
	for (size_t i = 0; i < w->s->nr_files; i++) {
		const struct model_file *f = &w->s->file[i];
		struct trace_reader *r = f->reader;
		emit(w, NULL,
		     JSON_OBJECT_OF(
			     {"file", optional_text(f->name)},
			     {"command",
			      optional_text(trace_meta(r, "command"))},
			     {"argv", json_of_command(r)},
			     {"start_real_ns",
			      json_of_u64(trace_start_real_ns(r))},
			     {"duration_ns", json_of_u64(f->duration_ns)},
			     {"truncated", json_boolean(trace_is_truncated(r))},
			     {"damaged_chunks",
			      json_of_u64(trace_nr_damaged(r))},
			     {"lost_records", json_of_u64(trace_nr_lost(r))},
			     {"dropped_records",
			      json_of_u64(trace_nr_dropped(r))}));
	}
	close_array(w);
}

static json_t *mechanisms_json(const struct ev_ledger *l)
{
	static const char *const key[] = {"stops",  "agent", "touches",
					  "arming", "cpu",   "other"};
	json_t *o = json_object();
	for (size_t i = 0; o && i < ARRAY_SIZE(key); i++)
		json_object_set_new(o, key[i], json_of_u64(l->mech_ns[i]));
	return o;
}

static json_t *ledger_json(const struct model_ledger *l)
{
	const struct ev_ledger *e = &l->ledger;
	int64_t ppb = model_overhead_ppb(e, e->spent_ns);
	return JSON_OBJECT_OF(
		{"file", json_integer(l->file)},
		{"time_ns", json_of_u64(l->time_ns)},
		{"run_ns", json_of_u64(e->run_ns)},
		{"spent_ns", json_of_u64(e->spent_ns)},
		{"overhead_ppb", ppb < 0 ? json_null() : json_integer(ppb)},
		{"recent_ppb", json_integer(e->recent_ppb)},
		{"worst_window_ppb", json_integer(e->worst_window_ppb)},
		{"by_mechanism_ns", mechanisms_json(e)},
		{"known", json_of_u64(e->nr_known)},
		{"armed", json_of_u64(e->nr_armed)},
		{"naps", json_of_u64(e->nr_naps)},
		{"stops", json_of_u64(e->nr_stops)},
		{"longest_stop_ns", json_of_u64(e->longest_stop_ns)},
		{"local_target_ppb",
		 l->local_target_ppb < 0 ? json_null()
					 : json_integer(l->local_target_ppb)});
}

static void put_overhead(struct writer *w)
{
	const struct summary *s = w->s;
	uint64_t target = model_meta_u64(s, "target_ppb", UINT64_MAX);
	struct model_ledger all = {.ledger = s->overhead,
				   .local_target_ppb = -1};
	if (s->nr_ledger)
		all.time_ns = s->ledger[s->nr_ledger - 1].time_ns;
	if (s->nr_files == 1)
		all.local_target_ppb = s->file[0].local_target_ppb;
	emit(w, "target_ppb",
	     target >= INT64_MAX ? json_null() : json_of_u64(target));
	emit(w, "overhead", s->has_overhead ? ledger_json(&all) : json_null());
}

static void put_coverage(struct writer *w)
{
	open_array(w, "coverage");
	for (size_t i = 0; i < COVER_NR; i++) {
		const struct ev_coverage *c = &w->s->coverage[i];
		if (w->s->has_coverage[i])
			emit(w, NULL,
			     JSON_OBJECT_OF(
				     {"why", json_string(names_coverage_id(i))},
				     {"blocks", json_of_u64(c->nr_objects)},
				     {"bytes", json_of_u64(c->bytes)}));
	}
	close_array(w);
}

static json_t *exit_json(const struct model_process *p, bool signal)
{
	int32_t status = p->exit_status;
	if (!p->has_ended || status < 0)
		return json_null();
	if (signal)
		return WIFSIGNALED(status) ? json_integer(WTERMSIG(status))
					   : json_null();
	return WIFEXITED(status) ? json_integer(WEXITSTATUS(status))
				 : json_null();
}

static void put_processes(struct writer *w)
{
	size_t nr = at_most(w->s->nr_processes, w->limits.processes);
	open_array(w, "processes");
	for (size_t i = 0; i < nr; i++) {
		const struct model_process *p = &w->s->process[i];
		const char *command = model_command(w->s, p);
		emit(w, NULL,
		     JSON_OBJECT_OF(
			     {"file", json_integer(p->file)},
			     {"pid", json_integer(p->pid)},
			     {"ppid", json_integer(p->ppid)},
			     {"command", optional_text(command)},
			     {"came",
			      json_string(names_process_why(p->first_why))},
			     {"start_ns", json_of_u64(p->start_ns)},
			     {"end_ns", p->has_ended ? json_of_u64(p->end_ns)
						     : json_null()},
			     {"exit_status", exit_json(p, false)},
			     {"signal", exit_json(p, true)},
			     {"unused", sum_json(&p->sum)}));
	}
	close_array(w);
}

static json_t *culprit_json(struct writer *w, struct model_culprit c)
{
	char name[NAMES_MAX];
	if (!c.nr)
		return json_null();
	if (!ARRAY_ROOM(w->culprit, w->nr_culprits, w->cap_culprits))
		return NULL;
	w->culprit[w->nr_culprits++] = c.stack;
	return JSON_OBJECT_OF(
		{"stack", id_or_null(c.stack)}, {"naps", json_of_u64(c.nr)},
		{"seen_nearby", json_of_u64(c.nr_nearby)},
		{"syscall",
		 c.syscall < 0 ? json_null()
			       : json_string(names_syscall(c.syscall, name))});
}

static json_t *ended_by_json(struct writer *w, const struct model_site *site)
{
	json_t *o = json_object();
	for (size_t i = 0; o && i < END_NR; i++) {
		struct model_culprit c = model_ended_by(w->s, site, i);
		if (c.nr)
			json_object_set_new(o, model_nap_end_name(i),
					    culprit_json(w, c));
	}
	return o;
}

static void put_sites(struct writer *w)
{
	struct model_sites sites;
	if (model_sites(w->s, 0, &sites)) {
		w->failed = true;
		return;
	}
	size_t nr = at_most(sites.nr, w->limits.sites);
	open_array(w, "sites");
	for (size_t i = 0; i < nr; i++) {
		const struct model_site *m = &sites.site[i];
		json_t *stacks = json_array();
		for (size_t j = 0; stacks && j < m->nr_stacks; j++)
			json_array_append_new(
				stacks,
				json_integer(w->s->stack[m->member[j]].id));
		emit(w, NULL,
		     JSON_OBJECT_OF(
			     {"stacks", stacks},
			     {"frames", json_of_frames(m->stack->frames,
						       m->stack->nr_frames)},
			     {"allocations", json_of_u64(m->totals.nr_allocs)},
			     {"bytes", json_of_u64(m->totals.bytes)},
			     {"live", json_of_u64(m->totals.nr_live)},
			     {"live_bytes", json_of_u64(m->totals.live_bytes)},
			     {"watched", json_of_u64(m->totals.nr_watched)},
			     {"unused", sum_json(&m->sum)},
			     {"ended_by", ended_by_json(w, m)},
			     {"last_used_by",
			      culprit_json(w, model_last_used_by(w->s, m))}));
	}
	close_array(w);
	model_sites_free(&sites);
}

static void put_counters(struct writer *w)
{
	open_array(w, "counters");
	for (size_t i = 0; i < w->s->nr_files; i++)
		emit(w, NULL,
		     counts_json(&w->s->file[i], w->limits.threads,
				 json_of_text));
	close_array(w);
}

/* The @i-th of those to be written; NULL and failed if it cannot be had. */
static const struct model_nap *nap_at(struct writer *w, uint64_t i)
{
	const struct model_nap *m =
		shelf_at(&w->window, top_naps_at(&w->naps, i));
	w->failed |= !m;
	return m;
}

static void put_naps(struct writer *w)
{
	struct bbuf b = {0};
	open_array(w, "naps");
	for (uint64_t i = 0; i < w->naps.nr && !w->failed; i++) {
		bbuf_put(&b, ",\n", w->first ? 0 : 2);
		bbuf_put(&b, "\n", w->first ? 1 : 0);
		w->first = false;
		const struct model_nap *m = nap_at(w, i);
		if (m)
			nap_json(&b, m);
		if (b.len < WRITE_BYTES && i + 1 < w->naps.nr)
			continue;
		w->failed |= b.failed;
		if (b.len)
			fwrite(b.data, 1, b.len, w->out);
		bbuf_reset(&b);
	}
	bbuf_free(&b);
	close_array(w);
}

static void want_stack(struct writer *w, struct id_set *ids, uint32_t id)
{
	if (id && id_set_add(ids, id))
		w->failed = true;
}

/* Every stack that a nap, a site or a sample refers to, once; where sites are
 * limited, those of naps and samples. */
static void put_stacks(struct writer *w)
{
	const struct summary *s = w->s;
	struct id_set ids = {0};
	for (size_t i = 0; i < s->nr_stacks && !w->limits.sites; i++)
		want_stack(w, &ids, s->stack[i].id);
	for (uint64_t i = 0; i < w->naps.nr && !w->failed; i++) {
		const struct model_nap *m = nap_at(w, i);
		if (!m)
			break;
		want_stack(w, &ids, m->nap.alloc_stack);
		want_stack(w, &ids, m->nap.ended_stack);
		want_stack(w, &ids, m->nap.last_stack);
	}
	size_t nr_samples = at_most(s->samples.nr_stacks, w->limits.samples);
	for (size_t i = 0; i < nr_samples; i++)
		want_stack(w, &ids, s->samples.stack[i].id);
	for (size_t i = 0; i < w->nr_culprits; i++)
		want_stack(w, &ids, w->culprit[i]);
	id_set_sort(&ids);
	open_array(w, "stacks");
	for (size_t i = 0; i < ids.nr; i++) {
		size_t depth = 0;
		const struct trace_frame *f =
			model_frames(s, ids.id[i], &depth);
		if (f)
			emit(w, NULL,
			     JSON_OBJECT_OF(
				     {"id", json_integer(ids.id[i])},
				     {"frames", json_of_frames(f, depth)}));
	}
	close_array(w);
	id_set_free(&ids);
}

static void put_ranges(struct writer *w)
{
	const struct model_ranges *rs = &w->s->ranges;
	size_t nr = at_most(rs->nr, w->limits.ranges);
	open_array(w, "ranges");
	for (size_t i = 0; i < nr; i++) {
		const struct model_range *r = &rs->range[i];
		int64_t watched = range_watched_ppb(r);
		emit(w, NULL,
		     JSON_OBJECT_OF(
			     {"variable", json_of_text(r->decl->function)},
			     {"type", json_of_text(r->type)},
			     {"file", json_of_text(r->decl->file)},
			     {"line", json_integer(r->decl->line)},
			     {"module", json_of_text(r->decl->module)},
			     {"bits", json_integer(r->var.bits)},
			     {"signed",
			      json_boolean(r->var.flags & VARIABLE_SIGNED)},
			     {"smallest", range_bound_json(r, r->smallest)},
			     {"largest", range_bound_json(r, r->largest)},
			     {"unnamed",
			      r->has_odd ? json_integer(r->odd) : json_null()},
			     {"hits", json_of_u64(r->hits)},
			     {"sensors", json_boolean(r->flags & RANGE_SENSED)},
			     {"polled", json_boolean(r->flags & RANGE_POLLED)},
			     {"watchpoint",
			      json_boolean(r->flags & RANGE_WATCHPOINT)},
			     {"breakpoint",
			      json_boolean(r->flags & RANGE_BREAKPOINT)},
			     {"initial", json_boolean(range_is_initial(r))},
			     {"watched_ppb", watched < 0
						     ? json_null()
						     : json_integer(watched)},
			     {"unwatched", *r->unwatched
						   ? json_of_text(r->unwatched)
						   : json_null()},
			     {"finding",
			      r->finding ? json_string(finding_name(r->finding))
					 : json_null()},
			     {"subscript", subscript_json(r)}));
	}
	close_array(w);
}

static void put_phases(struct writer *w)
{
	size_t max = w->limits.pieces ? w->limits.pieces : ALL_PIECES;
	open_array(w, "phases");
	for (size_t i = 0; i < w->s->phases.nr; i++)
		emit(w, NULL, phase_json(w->s, i, max));
	close_array(w);
}

/* Is this the last one of its file, or of its part of the time? */
static bool keeps_ledger(const struct writer *w, size_t i)
{
	const struct model_ledger *l = &w->s->ledger[i];
	uint64_t part = w->s->file[l->file].duration_ns / w->limits.ledger + 1;
	return i + 1 == w->s->nr_ledger || l[1].file != l->file ||
	       l[1].time_ns / part != l->time_ns / part;
}

/* Returns how many were left out. */
static size_t put_ledger(struct writer *w)
{
	bool all = !w->limits.ledger || w->s->nr_ledger <= w->limits.ledger;
	size_t nr = 0;
	open_array(w, "ledger");
	for (size_t i = 0; i < w->s->nr_ledger; i++)
		if (all || keeps_ledger(w, i))
			emit(w, NULL, ledger_json(&w->s->ledger[i]));
		else
			nr++;
	close_array(w);
	return nr;
}

static void put_left_out(struct writer *w, size_t nr_ledger)
{
	const struct summary *s = w->s;
	const struct summary_limits *l = &w->limits;
	struct model_sites sites;
	uint64_t nr_threads = 0;
	for (size_t i = 0; i < s->nr_files; i++)
		if (s->file[i].counts)
			nr_threads += s->file[i].counts->nr_threads -
				      at_most(s->file[i].counts->nr_threads,
					      l->threads);
	if (model_sites(s, 0, &sites)) {
		w->failed = true;
		return;
	}
	emit(w, "left_out",
	     JSON_OBJECT_OF(
		     {"sites",
		      json_of_u64(sites.nr - at_most(sites.nr, l->sites))},
		     {"naps", json_of_u64(s->naps.nr - w->naps.nr)},
		     {"processes",
		      json_of_u64(s->nr_processes -
				  at_most(s->nr_processes, l->processes))},
		     {"threads", json_of_u64(nr_threads)},
		     {"ranges", json_of_u64(s->ranges.nr -
					    at_most(s->ranges.nr, l->ranges))},
		     {"sample_stacks",
		      json_of_u64(s->samples.nr_stacks -
				  at_most(s->samples.nr_stacks, l->samples))},
		     {"phase_threads",
		      json_of_u64(phases_left_out(s, l->pieces))},
		     {"phase_ranges",
		      json_of_u64(phase_ranges_left_out(s, l->pieces))},
		     {"ledger", json_of_u64(nr_ledger)}));
	model_sites_free(&sites);
}

static void put_all(struct writer *w)
{
	emit(w, "schema", json_integer(SCHEMA_VERSION));
	emit(w, "generator", json_string("smco-report " SMCO_VERSION));
	put_run(w);
	put_files(w);
	put_meta(w);
	put_overhead(w);
	emit(w, "unused", sum_json(&w->s->sum));
	emit(w, "suppressed", sum_json(&w->s->suppressed));
	emit(w, "not_selected", json_of_u64(w->s->nr_left_out));
	put_coverage(w);
	put_processes(w);
	put_sites(w);
	put_stacks(w);
	put_counters(w);
	put_naps(w);
	put_ranges(w);
	emit(w, "samples", samples_json(w->s, w->limits.samples));
	put_phases(w);
}

static int fail(int rc, struct smco_err *err)
{
	return smco_fail(err, rc, 0,
			 rc == SMCO_SYS ? "cannot read a temporary file"
					: "out of memory for JSON");
}

static int print(const struct summary *s, const struct summary_limits *limits,
		 FILE *out, struct smco_err *err)
{
	struct writer w = {
		.s = s, .out = out, .first = true, .window.shelf = &s->naps};
	if (limits)
		w.limits = *limits;
	int rc = top_naps(s, w.limits.naps, &w.naps);
	if (rc)
		return fail(rc, err);
	fputc('{', out);
	put_all(&w);
	size_t nr_ledger = put_ledger(&w);
	if (limits)
		put_left_out(&w, nr_ledger);
	bool unreadable = w.window.failed;
	shelf_window_close(&w.window);
	top_naps_free(&w.naps);
	free(w.culprit);
	w.failed |= shortage_any();
	if (!w.failed)
		fputs("\n}\n", out);
	if (ferror(out))
		return smco_fail(err, SMCO_SYS, errno, "cannot write JSON");
	return w.failed ? fail(unreadable ? SMCO_SYS : SMCO_NOMEM, err)
			: SMCO_OK;
}

int summary_print_json(const struct summary *s, FILE *out, struct smco_err *err)
{
	return print(s, NULL, out, err);
}

int summary_print_json_some(const struct summary *s,
			    const struct summary_limits *limits, FILE *out,
			    struct smco_err *err)
{
	return print(s, limits, out, err);
}
