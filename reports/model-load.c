/* Reading traces into the model: duplicates joined, selected, added up. */
#include "reports/model.h"

#include <stdlib.h>
#include <string.h>

#include "reports/ahead.h"
#include "reports/array.h"
#include "reports/model-naps.h"

/* ------------------------------------------------------- ids and indices ---
 */

struct id_key { /* of one file: a stack or a process */
	const struct summary *s;
	struct file_id id;
};

static uint64_t hash_id(struct file_id id)
{
	return hindex_hash(0, &id, sizeof(id));
}

static bool same_id(const struct id_key *key, uint32_t file, uint32_t id)
{
	return key->id.file == file && key->id.id == id;
}

static bool same_file_id(const void *ctx, uint32_t value)
{
	const struct id_key *key = ctx;
	const struct file_id *have = &key->s->file_id[value];
	return same_id(key, have->file, have->id);
}

/*
 * The summary's id of a stack: that of the file if there is but one, otherwise
 * one of its own for each. False when out of memory.
 */
static bool own_id(struct summary *s, uint32_t file, uint32_t *id)
{
	struct id_key key = {s, {file, *id}};
	uint32_t found;
	if (s->nr_files < 2 || !*id)
		return true;
	uint64_t hash = hash_id(key.id);
	if (!hindex_find(&s->id_index, hash, same_file_id, &key, &found)) {
		if (!ARRAY_ROOM(s->file_id, s->nr_ids, s->cap_ids) ||
		    !hindex_add(&s->id_index, hash, (uint32_t)s->nr_ids))
			return false;
		found = (uint32_t)s->nr_ids;
		s->file_id[s->nr_ids++] = key.id;
	}
	*id = found + 1;
	return true;
}

static bool same_stack_id(const void *ctx, uint32_t value)
{
	const struct id_key *key = ctx;
	const struct model_stack *have = &key->s->stack[value];
	return same_id(key, have->file, have->file_id);
}

/* Index of the file's stack @id in s->stack; UINT32_MAX when out of memory. */
static uint32_t stack_of(struct summary *s, uint32_t file, uint32_t id)
{
	struct id_key key = {s, {file, id}};
	uint64_t hash = hash_id(key.id);
	uint32_t found;
	if (hindex_find(&s->stack_index, hash, same_stack_id, &key, &found))
		return found;
	if (!ARRAY_ROOM(s->stack, s->nr_stacks, s->cap_stacks) ||
	    !hindex_add(&s->stack_index, hash, (uint32_t)s->nr_stacks))
		return UINT32_MAX;
	struct model_stack *new = &s->stack[s->nr_stacks];
	*new = (struct model_stack){.id = id, .file = file, .file_id = id};
	if (!own_id(s, file, &new->id))
		return UINT32_MAX;
	if (id)
		new->frames =
			trace_stack(s->file[file].reader, id, &new->nr_frames);
	return (uint32_t)s->nr_stacks++;
}

static bool same_pid(const void *ctx, uint32_t value)
{
	const struct id_key *key = ctx;
	const struct model_process *have = &key->s->process[value];
	return same_id(key, have->file, have->pid);
}

struct model_process *model_process(struct summary *s, uint32_t file,
				    uint32_t pid)
{
	struct id_key key = {s, {file, pid}};
	uint32_t found;
	return hindex_find(&s->process_index, hash_id(key.id), same_pid, &key,
			   &found)
		       ? &s->process[found]
		       : NULL;
}

/* The same; a new one if there is none. NULL when out of memory. */
static struct model_process *process_of(struct summary *s, uint32_t file,
					uint32_t pid)
{
	uint64_t hash = hash_id((struct file_id){file, pid});
	struct model_process *have = model_process(s, file, pid);
	if (have)
		return have;
	if (!ARRAY_ROOM(s->process, s->nr_processes, s->cap_processes) ||
	    !hindex_add(&s->process_index, hash, (uint32_t)s->nr_processes))
		return NULL;
	struct model_process *p = &s->process[s->nr_processes++];
	*p = (struct model_process){
		.file = file, .pid = pid, .exit_status = -1};
	return p;
}

/* -------------------------------------------------------------- records --- */

static int take_nap(struct summary *s, uint32_t file, const struct record *r)
{
	struct model_nap new = {.object = r->param, .file = file};
	memcpy(&new.nap, r->payload, sizeof(new.nap));
	new.site = stack_of(s, file, new.nap.alloc_stack);
	if (new.site == UINT32_MAX || !own_id(s, file, &new.nap.alloc_stack) ||
	    !own_id(s, file, &new.nap.ended_stack) ||
	    !own_id(s, file, &new.nap.last_stack))
		return SMCO_NOMEM;
	return model_naps_take(s, &new);
}

static int take_site(struct summary *s, uint32_t file, const struct record *r)
{
	uint32_t i = stack_of(s, file, r->param);
	if (i == UINT32_MAX)
		return SMCO_NOMEM;
	memcpy(&s->stack[i].totals, r->payload, sizeof(s->stack[i].totals));
	return SMCO_OK;
}

static int take_ledger(struct summary *s, uint32_t file, const struct record *r)
{
	if (!ARRAY_ROOM(s->ledger, s->nr_ledger, s->cap_ledger))
		return SMCO_NOMEM;
	struct model_ledger *l = &s->ledger[s->nr_ledger++];
	l->file = file;
	l->time_ns = r->time_ns;
	memcpy(&l->ledger, r->payload, sizeof(l->ledger));
	l->local_target_ppb = s->file[file].local_target_ppb;
	s->file[file].ledger = l->ledger;
	s->file[file].has_ledger = true;
	return SMCO_OK;
}

static int take_control(struct summary *s, uint32_t file,
			const struct record *r)
{
	struct ev_control ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (r->param == 0 && ev.local_target_ppb >= 0)
		s->file[file].local_target_ppb = ev.local_target_ppb;
	return SMCO_OK;
}

static int take_process(struct summary *s, uint32_t file,
			const struct record *r)
{
	struct ev_process ev;
	memcpy(&ev, r->payload, sizeof(ev));
	size_t before = s->nr_processes;
	struct model_process *p = process_of(s, file, ev.pid);
	if (!p)
		return SMCO_NOMEM;
	if (s->nr_processes > before) {
		p->ppid = ev.ppid;
		p->first_why = ev.why;
		p->start_ns = r->time_ns;
	}
	p->end_ns = r->time_ns;
	if (ev.why == 4) {
		p->has_ended = true;
		p->exit_status = ev.exit_status;
	}
	p->was_detached = ev.why == 5;
	return SMCO_OK;
}

static int take_coverage(struct summary *s, uint32_t file,
			 const struct record *r)
{
	struct model_file *f = &s->file[file];
	if (r->param < COVER_NR) {
		memcpy(&f->coverage[r->param], r->payload,
		       sizeof(f->coverage[r->param]));
		f->has_coverage[r->param] = true;
	}
	return SMCO_OK;
}

static int take_counts(struct summary *s, uint32_t file, const struct record *r)
{
	struct counts *c = s->file[file].counts;
	const struct select *select = &s->select;
	uint32_t pid;
	memcpy(&pid, r->payload, sizeof(pid)); /* its first member */
	if (!c || !select_time(select, r->time_ns) ||
	    (select->has_process && pid != select->process) ||
	    (select->has_thread && r->tid != select->thread))
		return SMCO_OK;
	return counts_take(c, r);
}

static int take_variable(struct summary *s, uint32_t file,
			 const struct record *r)
{
	return model_ranges_take_variable(&s->ranges, s->file[file].reader,
					  file, r);
}

/* What it says of all of the session counts, whatever part is selected. */
static int take_range(struct summary *s, uint32_t file, const struct record *r)
{
	struct ev_range ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (!select_process(&s->select, ev.pid))
		return SMCO_OK;
	return model_ranges_take_range(&s->ranges, file, r);
}

static int take_sample(struct summary *s, uint32_t file, const struct record *r)
{
	const struct select *select = &s->select;
	struct ev_sample ev;
	uint32_t id = r->param;
	memcpy(&ev, r->payload, sizeof(ev));
	if (!select_time(select, r->time_ns) ||
	    (select->has_process && ev.pid != select->process) ||
	    (select->has_thread && r->tid != select->thread))
		return SMCO_OK;
	if (!own_id(s, file, &id))
		return SMCO_NOMEM;
	return model_samples_take(&s->samples, s->file[file].reader, file, id,
				  r);
}

static int take_phase_total(struct summary *s, uint32_t file,
			    const struct record *r)
{
	return model_phases_take(&s->phases, s->file[file].reader, file, r);
}

static int take_phase(struct summary *s, uint32_t file, const struct record *r)
{
	return model_phases_take_timed(&s->phases, s->file[file].reader, file,
				       &s->select, r);
}

static int take_phase_span(struct summary *s, uint32_t file,
			   const struct record *r)
{
	return model_phases_take_span(&s->phases, s->file[file].reader, file,
				      &s->select, r);
}

static int take_phase_range(struct summary *s, uint32_t file,
			    const struct record *r)
{
	struct ev_phase_range ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (!select_process(&s->select, ev.pid))
		return SMCO_OK;
	return model_phase_ranges_take(&s->phase_ranges, &s->phases, &s->ranges,
				       s->file[file].reader, file, r);
}

/* Events without an entry count as unknown. */
static const struct {
	uint32_t size;
	int (*take)(struct summary *, uint32_t file, const struct record *);
} takers[EV_NR] = {
	[EV_NAP] = {sizeof(struct ev_nap), take_nap},
	[EV_SITE] = {sizeof(struct ev_site), take_site},
	[EV_LEDGER] = {sizeof(struct ev_ledger), take_ledger},
	[EV_COVERAGE] = {sizeof(struct ev_coverage), take_coverage},
	[EV_PROCESS] = {sizeof(struct ev_process), take_process},
	[EV_COUNTS] = {sizeof(struct ev_counts), take_counts},
	[EV_VARIABLE] = {sizeof(struct ev_variable), take_variable},
	[EV_RANGE] = {sizeof(struct ev_range), take_range},
	[EV_SAMPLE] = {sizeof(struct ev_sample), take_sample},
	[EV_PHASE] = {sizeof(struct ev_phase), take_phase},
	[EV_PHASE_TOTAL] = {sizeof(struct ev_phase_total), take_phase_total},
	[EV_PHASE_SPAN] = {sizeof(struct ev_phase_span), take_phase_span},
	[EV_PHASE_RANGE] = {sizeof(struct ev_phase_range), take_phase_range},
	[EV_CONTROL] = {sizeof(struct ev_control), take_control},
};

static int take_record(struct summary *s, uint32_t file, const struct record *r)
{
	s->nr_records++;
	if (r->event >= EV_NR || !takers[r->event].take ||
	    r->payload_len != takers[r->event].size) {
		s->nr_unknown++;
		return SMCO_OK;
	}
	if (r->time_ns > s->file[file].duration_ns)
		s->file[file].duration_ns = r->time_ns;
	return takers[r->event].take(s, file, r);
}

/* ----------------------------------------------------------------- sums --- */

static void add_ledger(struct ev_ledger *to, const struct ev_ledger *from)
{
	to->run_ns += from->run_ns;
	to->spent_ns += from->spent_ns;
	for (size_t i = 0; i < ARRAY_SIZE(to->mech_ns); i++)
		to->mech_ns[i] += from->mech_ns[i];
	to->nr_known += from->nr_known;
	to->nr_armed += from->nr_armed;
	to->nr_naps += from->nr_naps;
	to->nr_stops += from->nr_stops;
	if (from->longest_stop_ns > to->longest_stop_ns)
		to->longest_stop_ns = from->longest_stop_ns;
	if (from->recent_ppb > to->recent_ppb)
		to->recent_ppb = from->recent_ppb;
	if (from->worst_window_ppb > to->worst_window_ppb)
		to->worst_window_ppb = from->worst_window_ppb;
}

/*
 * Of a file's time what lies within the selection and behind the first count:
 * before a command begins the machine may be measured for seconds, and a
 * process that is selected may have come late.
 */
static uint64_t counted_ns(const struct select *select,
			   const struct model_file *f)
{
	uint64_t start = f->counts ? f->counts->start_ns : 0;
	uint64_t end = f->duration_ns;
	if (select->from_ns > start)
		start = select->from_ns;
	if (select->to_ns && select->to_ns < end)
		end = select->to_ns;
	return end > start ? end - start : 0;
}

static void add_files(struct summary *s)
{
	for (size_t i = 0; i < s->nr_files; i++) {
		struct model_file *f = &s->file[i];
		f->duration_ns = model_reader_u64(f->reader, "elapsed_ns",
						  f->duration_ns);
		f->counted_ns = counted_ns(&s->select, f);
		s->duration_ns += f->duration_ns;
		for (size_t j = 0; j < COVER_NR; j++) {
			s->coverage[j].nr_objects += f->coverage[j].nr_objects;
			s->coverage[j].bytes += f->coverage[j].bytes;
			s->has_coverage[j] |= f->has_coverage[j];
		}
		if (f->has_ledger && !s->has_overhead)
			s->overhead = f->ledger;
		else if (f->has_ledger)
			add_ledger(&s->overhead, &f->ledger);
		s->has_overhead |= f->has_ledger;
	}
}

/* -------------------------------------------------------------- loading --- */

static int load_file(struct summary *s, uint32_t file)
{
	struct record record;
	int rc = counts_create(s->file[file].reader, s->select.nr_buckets,
			       &s->file[file].counts);
	if (rc)
		return rc;
	struct ahead *a =
		ahead_begin(s->file[file].reader, s->select.ahead_bytes);
	if (!a)
		return SMCO_NOMEM;
	while ((rc = ahead_next(a, &record)) != 0) {
		if (rc < 0)
			continue; /* counted; the next chunk may be whole */
		rc = take_record(s, file, &record);
		if (rc)
			break;
	}
	ahead_end(a);
	counts_finish(s->file[file].counts);
	return rc;
}

int summary_load_files(const struct summary_input *input, size_t nr,
		       const struct select *select, struct summary **ret,
		       struct smco_err *err)
{
	struct summary *s = calloc(1, sizeof(*s));
	if (s)
		s->file = calloc(nr, sizeof(*s->file));
	if (!s || !s->file) {
		free(s);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	for (size_t i = 0; i < nr; i++) {
		s->file[i].reader = trace_reader_ref(input[i].reader);
		s->file[i].name = input[i].name;
		s->file[i].local_target_ppb = -1;
	}
	s->nr_files = nr;
	s->texts = model_texts_new();
	s->reader = s->file[0].reader;
	if (select)
		s->select = *select;
	model_naps_begin(s);
	int rc = s->texts ? SMCO_OK : SMCO_NOMEM;
	for (size_t i = 0; i < nr && !rc; i++)
		rc = load_file(s, (uint32_t)i);
	if (!rc)
		rc = model_samples_finish(&s->samples);
	if (!rc) {
		add_files(s);
		rc = model_naps_finish(s);
	}
	if (!rc) {
		model_phase_ranges_finish(&s->phase_ranges, &s->ranges);
		model_ranges_finish(&s->ranges);
		rc = model_phases_finish(&s->phases);
	}
	if (!rc && s->select.phase_sums)
		rc = phase_sums_make(s);
	if (rc) {
		summary_free(s);
		return smco_fail(err, rc, 0,
				 rc == SMCO_SYS ? "cannot read a temporary file"
						: "the trace does not fit into "
						  "memory");
	}
	*ret = s;
	return SMCO_OK;
}

int summary_load(struct trace_reader *r, struct summary **ret,
		 struct smco_err *err)
{
	struct summary_input input = {.reader = r};
	return summary_load_files(&input, 1, NULL, ret, err);
}

void summary_free(struct summary *s)
{
	if (!s)
		return;
	hindex_free(&s->stack_index);
	hindex_free(&s->process_index);
	hindex_free(&s->id_index);
	for (size_t i = 0; i < s->nr_files; i++) {
		counts_destroy(s->file[i].counts);
		trace_reader_close(s->file[i].reader);
	}
	free(s->file);
	free(s->file_id);
	model_texts_free(s->texts);
	model_naps_free(s);
	free(s->stack);
	free(s->ledger);
	free(s->process);
	model_ranges_free(&s->ranges);
	model_samples_free(&s->samples);
	model_phases_free(&s->phases);
	model_phase_ranges_free(&s->phase_ranges);
	free(s);
}
