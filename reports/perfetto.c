#include "reports/perfetto.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reports/json-values.h"
#include "reports/model.h"
#include "reports/names.h"
#include "reports/records.h"
#include "reports/shortage.h"

struct writer {
	const struct summary *s;
	FILE *out;
	char *counter[COUNTS_MAX_EVENTS]; /* owned; their names as JSON */
	bool any;			  /* an event was written */
	bool failed;
};

/* Time in microseconds, to the nanosecond. */
#define TIME	    "%" PRIu64 ".%03u"
#define TIME_OF(ns) (uint64_t)(ns) / 1000, (unsigned)((uint64_t)(ns) % 1000)

static void event(struct writer *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void event(struct writer *w, const char *fmt, ...)
{
	va_list ap;
	fputs(w->any ? ",\n" : "\n", w->out);
	w->any = true;
	va_start(ap, fmt);
	vfprintf(w->out, fmt, ap);
	va_end(ap);
}

/* @text as JSON; the caller frees. NULL when out of memory. */
static char *quoted(struct writer *w, const char *text)
{
	json_t *v = json_of_text(text);
	char *s = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;
	json_decref(v);
	w->failed |= !s;
	return s;
}

static void put_processes(struct writer *w)
{
	char number[32];
	for (size_t i = 0; i < w->s->nr_processes; i++) {
		const struct model_process *p = &w->s->process[i];
		const char *command = model_command(w->s, p);
		snprintf(number, sizeof(number), "process %u", p->pid);
		_cleanup_free_ char *name =
			quoted(w, command ? command : number);
		if (!name)
			return;
		event(w,
		      "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,"
		      "\"args\":{\"name\":%s}}",
		      p->pid, name);
		event(w,
		      "{\"ph\":\"i\",\"s\":\"p\",\"name\":\"%s\",\"pid\":%u,"
		      "\"ts\":" TIME "}",
		      names_process_why(p->first_why), p->pid,
		      TIME_OF(p->start_ns));
		if (p->has_ended)
			event(w,
			      "{\"ph\":\"i\",\"s\":\"p\",\"name\":\"ended\","
			      "\"pid\":%u,\"ts\":" TIME "}",
			      p->pid, TIME_OF(p->end_ns));
	}
}

/* A slice from its begin to its end; slices of one id do not overlap. */
static void put_nap(struct writer *w, const struct model_nap *m, uint64_t i)
{
	const struct ev_nap *n = &m->nap;
	const struct model_stack *stack = &w->s->stack[m->site];
	const char *where = model_stack_text(w->s, n->alloc_stack);
	char buf[NAMES_MAX];
	_cleanup_free_ char *name = quoted(
		w, stack->nr_frames ? names_function(stack->frames, 120, buf)
				    : "unknown");
	_cleanup_free_ char *site = quoted(w, where ? where : "unknown");
	if (!name || !site)
		return;
	event(w,
	      "{\"ph\":\"b\",\"cat\":\"nap\",\"name\":%s,\"id\":\"%" PRIu64
	      "\","
	      "\"pid\":%u,\"tid\":%u,\"ts\":" TIME
	      ",\"args\":{\"size\":%" PRIu64 ",\"addr\":\"0x%" PRIx64
	      "\",\"error_ns\":%" PRIu64 ",\"ended\":\"%s\",\"allocated\":%s}}",
	      name, i, n->pid, n->pid, TIME_OF(n->start_ns), n->size, n->addr,
	      n->error_ns, model_nap_end_name(model_nap_end(n)), site);
	event(w,
	      "{\"ph\":\"e\",\"cat\":\"nap\",\"name\":%s,\"id\":\"%" PRIu64
	      "\","
	      "\"pid\":%u,\"tid\":%u,\"ts\":" TIME "}",
	      name, i, n->pid, n->pid, TIME_OF(n->start_ns + n->length_ns));
}

static void put_naps(struct writer *w)
{
	struct shelf_window naps = {.shelf = &w->s->naps};
	for (uint64_t i = 0; i < w->s->naps.nr && !w->failed; i++) {
		const struct model_nap *m = shelf_at(&naps, i);
		if (m)
			put_nap(w, m, i);
		else
			w->failed = true;
	}
	shelf_window_close(&naps);
}

static void put_ledger(struct writer *w)
{
	const struct model_process *root = model_root(w->s, 0);
	uint32_t pid = root ? root->pid : 0;
	for (size_t i = 0; i < w->s->nr_ledger; i++) {
		const struct model_ledger *l = &w->s->ledger[i];
		if (!select_time(&w->s->select, l->time_ns))
			continue;
		int64_t ppb =
			model_overhead_ppb(&l->ledger, l->ledger.spent_ns);
		event(w,
		      "{\"ph\":\"C\",\"name\":\"overhead, percent\","
		      "\"pid\":%u,\"ts\":" TIME
		      ",\"args\":{\"so far\":%.6f,\"of late\":%.6f}}",
		      pid, TIME_OF(l->time_ns), ppb < 0 ? 0 : (double)ppb / 1e7,
		      (double)l->ledger.recent_ppb / 1e7);
		event(w,
		      "{\"ph\":\"C\",\"name\":\"blocks\",\"pid\":%u,"
		      "\"ts\":" TIME ",\"args\":{\"known\":%" PRIu64
		      ",\"watched\":%" PRIu64 "}}",
		      pid, TIME_OF(l->time_ns), l->ledger.nr_known,
		      l->ledger.nr_armed);
		if (l->local_target_ppb >= 0)
			event(w,
			      "{\"ph\":\"C\",\"name\":\"local target, "
			      "percent\",\"pid\":%u,\"ts\":" TIME
			      ",\"args\":{\"a block\":%.6f}}",
			      pid, TIME_OF(l->time_ns),
			      (double)l->local_target_ppb / 1e7);
	}
}

/* Counts of one thread per second, from where its interval begins. */
static void put_counts(struct writer *w, const struct record *r)
{
	const struct counts *c = w->s->file[0].counts;
	struct ev_counts ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (!c || r->param >= ARRAY_SIZE(c->first_of_group) ||
	    ev.nr > c->nr_of_group[r->param] || !ev.length_ns)
		return;
	uint64_t start =
		ev.length_ns < r->time_ns ? r->time_ns - ev.length_ns : 0;
	for (size_t i = 0; i < ev.nr; i++) {
		size_t e = c->first_of_group[r->param] + i;
		double v = (double)ev.value[i] * c->event[e].scale;
		if (ev.missed_ns && ev.missed_ns < ev.enabled_ns)
			v *= (double)ev.enabled_ns /
			     (double)(ev.enabled_ns - ev.missed_ns);
		event(w,
		      "{\"ph\":\"C\",\"name\":%s,\"id\":\"%u\",\"pid\":%u,"
		      "\"tid\":%u,\"ts\":" TIME
		      ",\"args\":{\"per second\":%.17g,\"count\":%" PRIu64 "}}",
		      w->counter[e], r->tid, ev.pid, r->tid, TIME_OF(start),
		      v / ((double)ev.length_ns / 1e9), ev.value[i]);
	}
}

static void put_sample(struct writer *w, const struct record *r)
{
	struct ev_sample ev;
	size_t nr = 0;
	memcpy(&ev, r->payload, sizeof(ev));
	const struct trace_frame *f = trace_stack(w->s->reader, r->param, &nr);
	event(w,
	      "{\"ph\":\"P\",\"name\":\"sample\",\"pid\":%u,\"tid\":%u,"
	      "\"ts\":" TIME ",\"args\":{\"weight\":%" PRIu64 "}",
	      ev.pid, r->tid, TIME_OF(r->time_ns), ev.weight);
	if (f && nr)
		fprintf(w->out, ",\"sf\":\"%u.0\"", r->param);
	fputs("}", w->out);
}

/* Name of a phase as JSON; the caller frees. */
static char *phase_name(struct writer *w, uint32_t id)
{
	char key[32];
	snprintf(key, sizeof(key), "phase.%u", id);
	const char *name = trace_meta(w->s->reader, key);
	return quoted(w, name ? name : "?");
}

/* Those of one id are one after the other, or one within the other. */
static void put_phase(struct writer *w, const struct record *r)
{
	struct ev_phase ev;
	memcpy(&ev, r->payload, sizeof(ev));
	uint64_t start =
		ev.length_ns < r->time_ns ? r->time_ns - ev.length_ns : 0;
	_cleanup_free_ char *name = phase_name(w, r->param);
	if (!name)
		return;
	event(w,
	      "{\"ph\":\"b\",\"cat\":\"phase\",\"name\":%s,"
	      "\"id\":\"phase %u of %u\",\"pid\":%u,\"tid\":%u,\"ts\":" TIME
	      ",\"args\":{\"depth\":%u,\"ongoing\":%s}}",
	      name, r->param, r->tid, ev.pid, r->tid, TIME_OF(start), ev.depth,
	      ev.flags & PHASE_ONGOING ? "true" : "false");
	event(w,
	      "{\"ph\":\"e\",\"cat\":\"phase\",\"name\":%s,"
	      "\"id\":\"phase %u of %u\",\"pid\":%u,\"tid\":%u,"
	      "\"ts\":" TIME "}",
	      name, r->param, r->tid, ev.pid, r->tid, TIME_OF(r->time_ns));
}

/* Those of an interval are a counter, which holds until its end. */
static void put_phase_span(struct writer *w, const struct record *r)
{
	struct ev_phase_span ev;
	memcpy(&ev, r->payload, sizeof(ev));
	if (!ev.length_ns || ev.length_ns > r->time_ns)
		return;
	double mean = ev.nr_seen ? (double)ev.seen_ns / (double)ev.nr_seen : 0;
	double seconds = (double)ev.length_ns / 1e9;
	_cleanup_free_ char *name = phase_name(w, r->param);
	if (!name)
		return;
	event(w,
	      "{\"ph\":\"C\",\"name\":%s,\"id\":\"%u\",\"pid\":%u,"
	      "\"tid\":%u,\"ts\":" TIME ",\"args\":{\"per second\":%.17g,"
	      "\"entered\":%" PRIu64 ",\"mean, us\":%.17g}}",
	      name, r->tid, ev.pid, r->tid, TIME_OF(r->time_ns - ev.length_ns),
	      (double)ev.count / seconds, ev.count, mean / 1e3);
	event(w,
	      "{\"ph\":\"C\",\"name\":%s,\"id\":\"%u\",\"pid\":%u,"
	      "\"tid\":%u,\"ts\":" TIME ",\"args\":{\"per second\":0,"
	      "\"entered\":0,\"mean, us\":0}}",
	      name, r->tid, ev.pid, r->tid, TIME_OF(r->time_ns));
}

static void put_records(struct writer *w)
{
	struct trace_reader *r = w->s->reader;
	struct record record;
	int rc;
	trace_rewind(r);
	while ((rc = trace_next(r, &record, NULL)) != 0) {
		if (rc < 0 || !select_record(&w->s->select, &record))
			continue; /* damage is counted by the reader */
		if (record.event == EV_COUNTS &&
		    record.payload_len == sizeof(struct ev_counts))
			put_counts(w, &record);
		else if (record.event == EV_SAMPLE &&
			 record.payload_len == sizeof(struct ev_sample))
			put_sample(w, &record);
		else if (record.event == EV_PHASE &&
			 record.payload_len == sizeof(struct ev_phase))
			put_phase(w, &record);
		else if (record.event == EV_PHASE_SPAN &&
			 record.payload_len == sizeof(struct ev_phase_span))
			put_phase_span(w, &record);
	}
}

/* A frame's parent is its caller. */
static void put_frames(struct writer *w)
{
	struct trace_reader *r = w->s->reader;
	char buf[NAMES_MAX];
	uint32_t id;
	bool first = true;
	size_t nr = 0;
	for (size_t i = 0; trace_stack_at(r, i, &id) && !w->failed; i++) {
		const struct trace_frame *f = trace_stack(r, id, &nr);
		for (size_t j = 0; f && j < nr; j++) {
			_cleanup_free_ char *name = quoted(
				w, *f[j].function
					   ? f[j].function
					   : names_function(&f[j], 120, buf));
			_cleanup_free_ char *module = quoted(w, f[j].module);
			if (!name || !module)
				return;
			fprintf(w->out,
				"%s\"%u.%zu\":{\"name\":%s,\"category\":%s",
				first ? "\n" : ",\n", id, j, name, module);
			if (j + 1 < nr)
				fprintf(w->out, ",\"parent\":\"%u.%zu\"", id,
					j + 1);
			fputs("}", w->out);
			first = false;
		}
	}
}

int perfetto_print(const struct summary *s, FILE *out, struct smco_err *err)
{
	struct writer w = {.s = s, .out = out};
	const struct counts *c = s->file[0].counts;
	for (size_t i = 0; c && i < c->nr_events; i++)
		w.counter[i] = quoted(&w, c->event[i].name);
	fprintf(out,
		"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"generator\":"
		"\"smco-report " SMCO_VERSION "\",\"truncated\":%s,"
		"\"damaged_chunks\":%" PRIu64 ",\"lost_records\":%" PRIu64
		",\"dropped_records\":%" PRIu64 "},\"traceEvents\":[",
		model_is_truncated(s) ? "true" : "false", model_nr_damaged(s),
		model_nr_lost(s), model_nr_dropped(s));
	if (!w.failed) {
		put_processes(&w);
		put_naps(&w);
		put_ledger(&w);
		put_records(&w);
	}
	if (!w.failed) {
		fputs("\n],\"stackFrames\":{", out);
		put_frames(&w);
	}
	w.failed |= shortage_any();
	if (!w.failed)
		fputs("\n}}\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(w.counter); i++)
		free(w.counter[i]);
	if (w.failed)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (ferror(out))
		return smco_fail(err, SMCO_SYS, errno, "cannot write");
	return SMCO_OK;
}
