#include "reports/phase-sums.h"

#include <stdlib.h>
#include <string.h>

#include "reports/ahead.h"
#include "reports/model.h"

#define UNION_PIECES 8192 /* of a process in a phase */

#define RECENT	      1024	 /* threads */
#define RECENT_STACKS 16384	 /* a power of two */
#define MAX_SELF      (8u << 20) /* phases of files times functions */

struct track_ref {
	const struct when_track *track;
	size_t hint;
};

/* Tracks, by file and thread; where those of threads begin that were asked for
 * lately. */
struct by_thread {
	struct track_ref *ref; /* owned */
	size_t nr;
	struct {
		uint32_t file, tid;
		size_t first;
	} recent[RECENT];
	struct {
		uint32_t file, id, function; /* id + 1 */
	} stack[RECENT_STACKS];
};

static int compare_threads(const void *va, const void *vb)
{
	const struct track_ref *pa = va, *pb = vb;
	const struct when_track *a = pa->track, *b = pb->track;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return a->phase < b->phase ? -1 : a->phase > b->phase;
}

static size_t first_of(struct by_thread *all, uint32_t file, uint32_t tid)
{
	size_t low = 0, high = all->nr, slot = tid % RECENT;
	if (all->recent[slot].tid == tid && all->recent[slot].file == file)
		return all->recent[slot].first;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct when_track *t = all->ref[middle].track;
		if (t->file < file || (t->file == file && t->tid < tid))
			low = middle + 1;
		else
			high = middle;
	}
	all->recent[slot].file = file;
	all->recent[slot].tid = tid;
	return all->recent[slot].first = low;
}

static bool is_of(const struct when_track *t, uint32_t file, uint32_t pid,
		  uint32_t tid)
{
	return t->file == file && t->tid == tid &&
	       (t->pid == pid || !t->pid || !pid);
}

static struct phase_sums *sums_of(struct summary *s, const struct when_track *t)
{
	return &s->phases.sums[t->phase * s->nr_files + t->file];
}

/* --- records --- */

static void add_counts(struct summary *s, struct by_thread *all, uint32_t file,
		       const struct record *r)
{
	const struct counts *c = s->file[file].counts;
	struct ev_counts ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (!c || !r->tid || r->param >= ARRAY_SIZE(c->first_of_group) ||
	    ev.nr > c->nr_of_group[r->param] || !ev.length_ns ||
	    ev.length_ns > r->time_ns)
		return;
	uint64_t from_ns = r->time_ns - ev.length_ns;
	double scale = 1;
	if (ev.missed_ns && ev.missed_ns < ev.enabled_ns)
		scale = (double)ev.enabled_ns /
			(double)(ev.enabled_ns - ev.missed_ns);
	for (size_t i = first_of(all, file, r->tid); i < all->nr; i++) {
		struct track_ref *ref = &all->ref[i];
		const struct when_track *t = ref->track;
		if (t->file != file || t->tid != r->tid)
			break;
		if (!is_of(t, file, ev.pid, r->tid))
			continue;
		struct phase_sums *sums = sums_of(s, t);
		double in_ns = when_in_ns(t, from_ns, r->time_ns, &ref->hint);
		double share = in_ns / (double)ev.length_ns;
		size_t at = c->first_of_group[r->param];
		for (size_t k = 0; k < ev.nr && share > 0; k++) {
			sums->counts[at + k] +=
				(double)ev.value[k] * scale * share;
			sums->counted_ns[at + k] += in_ns;
		}
	}
}

/* Number of the function that ran, UINT32_MAX: not known. */
static uint32_t function_of(struct summary *s, struct by_thread *all,
			    uint32_t file, uint32_t stack)
{
	size_t slot = stack % RECENT_STACKS, nr = 0;
	if (all->stack[slot].id != stack + 1 || all->stack[slot].file != file) {
		const struct trace_frame *f =
			stack ? trace_stack(s->file[file].reader, stack, &nr)
			      : NULL;
		all->stack[slot].file = file;
		all->stack[slot].id = stack + 1;
		all->stack[slot].function =
			model_samples_function(&s->samples, nr ? f : NULL);
	}
	return all->stack[slot].function;
}

static void add_sample(struct summary *s, struct by_thread *all, uint32_t file,
		       const struct record *r)
{
	struct ev_sample ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (!r->tid)
		return;
	for (size_t i = first_of(all, file, r->tid); i < all->nr; i++) {
		struct track_ref *ref = &all->ref[i];
		const struct when_track *t = ref->track;
		if (t->file != file || t->tid != r->tid)
			break;
		if (!is_of(t, file, ev.pid, r->tid))
			continue;
		double share = when_share(t, r->time_ns, &ref->hint);
		struct phase_sums *sums = sums_of(s, t);
		double weight = share * (double)ev.weight;
		sums->samples += share;
		sums->weight += weight;
		if (!sums->self || weight <= 0)
			continue;
		uint32_t function = function_of(s, all, file, r->param);
		if (function != UINT32_MAX)
			sums->self[function] += weight;
	}
}

static bool is_selected(const struct select *select, uint32_t pid,
			const struct record *r)
{
	return select_time(select, r->time_ns) &&
	       select_thread(select, pid, r->tid);
}

static int add_records(struct summary *s, struct by_thread *all, uint32_t file)
{
	struct trace_reader *reader = s->file[file].reader;
	struct record r;
	uint32_t pid;
	int rc;
	trace_rewind(reader);
	struct ahead *a = ahead_begin(reader, s->select.ahead_bytes);
	if (!a)
		return SMCO_NOMEM;
	while ((rc = ahead_next(a, &r)) != 0) {
		if (rc < 0)
			continue; /* counted by who read it first */
		if (r.event == EV_COUNTS &&
		    r.payload_len == sizeof(struct ev_counts)) {
			memcpy(&pid, r.payload, sizeof(pid));
			if (is_selected(&s->select, pid, &r))
				add_counts(s, all, file, &r);
		} else if (r.event == EV_SAMPLE &&
			   r.payload_len == sizeof(struct ev_sample)) {
			struct ev_sample ev;
			memcpy(&ev, r.payload, sizeof(ev));
			if (is_selected(&s->select, ev.pid, &r))
				add_sample(s, all, file, &r);
		}
	}
	ahead_end(a);
	return SMCO_OK;
}

/* --- naps --- */

static int compare_processes(const void *va, const void *vb)
{
	const struct track_ref *pa = va, *pb = vb;
	const struct when_track *a = pa->track, *b = pb->track;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->phase != b->phase)
		return a->phase < b->phase ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static int add_process(struct summary *s, const struct when_track *t)
{
	struct phase_sums *sums = sums_of(s, t);
	struct shelf_window naps = {.shelf = &s->naps};
	size_t hint = 0;
	for (uint64_t i = 0; i < s->naps.nr; i++) {
		const struct model_nap *m = shelf_at(&naps, i);
		if (!m)
			break;
		const struct ev_nap *n = &m->nap;
		if (m->file != t->file || (t->pid && n->pid != t->pid))
			continue;
		double share = when_share(t, n->start_ns, &hint);
		sums->naps += share;
		sums->byte_seconds +=
			share * (double)n->size * (double)n->length_ns / 1e9;
		if (model_nap_end(n) == END_NEVER)
			sums->unused_bytes += share * (double)n->size;
	}
	int rc = naps.failed ? SMCO_SYS : SMCO_OK;
	shelf_window_close(&naps);
	return rc;
}

static int add_all(struct when_track *to, const struct when_track *from)
{
	int rc = SMCO_OK;
	for (size_t i = 0; i < from->nr && !rc; i++)
		rc = when_add(to, &from->piece[i], UNION_PIECES);
	return rc;
}

/* Threads of a process that are in one phase as one. */
static int add_naps(struct summary *s, struct by_thread *all)
{
	qsort(all->ref, all->nr, sizeof(*all->ref), compare_processes);
	for (size_t i = 0, end; i < all->nr && s->naps.nr; i = end) {
		const struct track_ref *at = &all->ref[i];
		const struct when_track *first = at->track;
		struct when_track t = {.file = first->file,
				       .phase = first->phase,
				       .pid = first->pid};
		int rc = SMCO_OK;
		for (end = i; end < all->nr && !rc &&
			      !compare_processes(&all->ref[end], at);
		     end++)
			rc = add_all(&t, all->ref[end].track);
		when_sort(&t, 0);
		if (!rc)
			rc = add_process(s, &t);
		free(t.piece);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

/* --- all --- */

static void add_total(struct ev_phase_total *to,
		      const struct ev_phase_total *last)
{
	to->count += last->count;
	to->nr_seen += last->nr_seen;
	to->seen_ns += last->seen_ns;
	if (last->longest_ns > to->longest_ns)
		to->longest_ns = last->longest_ns;
}

static bool has_records(const struct summary *s, uint32_t file)
{
	return s->file[file].counts || s->samples.nr;
}

static int make(struct summary *s, struct by_thread *all)
{
	struct model_phases *m = &s->phases;
	bool has_self = s->samples.nr_functions &&
			s->samples.nr_functions <= MAX_SELF / m->nr_sums;
	for (size_t i = 0; i < m->nr_sums; i++) {
		const struct counts *c = s->file[i % s->nr_files].counts;
		struct phase_sums *sums = &m->sums[i];
		if (has_self) {
			sums->self =
				calloc(s->samples.nr_functions, sizeof(double));
			if (!sums->self)
				return SMCO_NOMEM;
		}
		if (!c)
			continue;
		sums->counts = calloc(c->nr_events, sizeof(double));
		sums->counted_ns = calloc(c->nr_events, sizeof(double));
		if (!sums->counts || !sums->counted_ns)
			return SMCO_NOMEM;
	}
	for (size_t i = 0; i < m->nr_parts; i++) {
		const struct phase_part *p = &m->part[i];
		add_total(&m->sums[p->phase * s->nr_files + p->file].total,
			  &p->last);
	}
	for (size_t i = 0; i < m->when.nr; i++) {
		const struct when_track *t = &m->when.track[i];
		struct phase_sums *sums = sums_of(s, t);
		size_t hint = 0;
		all->ref[all->nr++].track = t;
		sums->nr_threads += t->tid != 0;
		sums->in_ns += when_in_ns(t, 0, UINT64_MAX, &hint);
	}
	int rc = add_naps(s, all);
	qsort(all->ref, all->nr, sizeof(*all->ref), compare_threads);
	for (uint32_t i = 0; i < s->nr_files && !rc && all->nr; i++)
		if (has_records(s, i))
			rc = add_records(s, all, i);
	return rc;
}

int phase_sums_make(struct summary *s)
{
	struct model_phases *m = &s->phases;
	if (!m->nr)
		return SMCO_OK;
	struct by_thread *all = calloc(1, sizeof(*all));
	if (!all)
		return SMCO_NOMEM;
	/* No thread that anything is asked of has number 0. */
	m->nr_sums = m->nr * s->nr_files;
	m->sums = calloc(m->nr_sums, sizeof(*m->sums));
	all->ref = calloc(m->when.nr + 1, sizeof(*all->ref));
	int rc = m->sums && all->ref ? make(s, all) : SMCO_NOMEM;
	free(all->ref);
	free(all);
	return rc;
}

const struct phase_sums *phase_sums(const struct summary *s, size_t phase,
				    size_t file)
{
	return s->phases.sums ? &s->phases.sums[phase * s->nr_files + file]
			      : NULL;
}

void phase_sums_free(struct phase_sums *sums, size_t nr)
{
	for (size_t i = 0; sums && i < nr; i++) {
		free(sums[i].self);
		free(sums[i].counts);
		free(sums[i].counted_ns);
	}
	free(sums);
}
