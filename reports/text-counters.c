/* The summary's lines about counters. */
#include <stdlib.h>
#include <string.h>

#include "reports/text.h"
#include "reports/shortage.h"
#include "reports/units.h"

#define VALUE_COL  34
#define RATE_COL   52
#define FULL_WIDTH 76 /* columns that a rate may need */
#define THREADS	   5

/* How much of the time it was counted, where that was not always. */
static void add_scaling(struct line *l, const struct counts_sum *s)
{
	if (!s->missed_ns)
		return;
	if (s->missed_ns >= s->enabled_ns)
		line_item(l, INK_WARN, "  ", "never counted: counter in use");
	else {
		char text[80];
		snprintf(text, sizeof(text), "scaled, counted %.3g %%",
			 100 * (1 -
				(double)s->missed_ns / (double)s->enabled_ns));
		line_item(l, INK_DIM, "  ", text);
	}
}

/* @value and @rate in columns, or one after the other where those do not fit.
 */
static void add_numbers(struct line *l, const struct page *page,
			const char *value, const char *rate)
{
	if (page->width && page->width < FULL_WIDTH) {
		line_item(l, INK_NONE, " ", value);
		if (*rate)
			line_item(l, INK_NONE, ", ", rate);
		return;
	}
	line_pad(l, VALUE_COL);
	line_addf(l, INK_NONE, " %s", value);
	if (*rate) {
		line_pad(l, RATE_COL);
		line_addf(l, INK_NONE, " %s", rate);
	}
}

/* Event @i among @sum, which have @time_ns together. */
static void total(const struct view *v, const struct counts *c,
		  const struct counts_sum *sum, size_t i, uint64_t time_ns,
		  const char *label)
{
	const struct counts_event *e = &c->event[i];
	char value[UNITS_MAX], rate[UNITS_MAX];
	struct line l;
	double r = 0;
	enum counts_rate kind = counts_derive(c, sum, i, time_ns, &r);
	counts_value_text(e, sum[i].scaled, value);
	counts_rate_text(kind, r, rate);
	text_begin(v, &l, label);
	line_add(&l, INK_BOLD, e->name);
	if (*e->level && !strchr(e->name, ':'))
		line_addf(&l, INK_DIM, " (%s)", e->level);
	add_numbers(&l, &v->page, value, rate);
	add_scaling(&l, &sum[i]);
	line_end(&l);
}

/* By CPU time if that was counted, else by the first event. */
static size_t sort_event(const struct counts *c)
{
	for (size_t i = 0; i < c->nr_events; i++)
		if (c->event[i].role == ROLE_TASK_CLOCK)
			return i;
	return 0;
}

struct ranked {
	const struct counts_thread *t;
	double v;
};

static int compare_ranked(const void *va, const void *vb)
{
	const struct ranked *a = va, *b = vb;
	if (a->v != b->v)
		return a->v > b->v ? -1 : 1;
	return a->t->tid < b->t->tid ? -1 : a->t->tid > b->t->tid;
}

static void thread(const struct view *v, const struct counts *c,
		   const struct counts_thread *t, const char *label)
{
	char value[UNITS_MAX], text[256];
	struct line l;
	text_begin(v, &l, label);
	if (t->tid)
		line_addf(&l, INK_BOLD, "%u", t->tid);
	else
		line_add(&l, INK_BOLD, t->pid ? "not followed" : "machine");
	if (t->tid != t->pid && t->tid)
		line_addf(&l, INK_DIM, " of %u", t->pid);
	for (size_t i = 0; i < c->nr_events; i++) {
		if (t->sum[i].scaled <= 0)
			continue;
		counts_value_text(&c->event[i], t->sum[i].scaled, value);
		snprintf(text, sizeof(text), "%s %.100s", value,
			 c->event[i].name);
		line_item(&l, INK_NONE, ", ", text);
	}
	line_end(&l);
}

static void threads(const struct view *v, const struct counts *c)
{
	size_t by = sort_event(c), nr = c->nr_threads;
	size_t max = v->style->max_sites ? THREADS : nr;
	char count[UNITS_MAX];
	if (nr < 2)
		return;
	struct ranked *sorted = calloc(nr, sizeof(*sorted));
	if (!sorted) {
		shortage_tell();
		return;
	}
	for (size_t i = 0; i < nr; i++)
		sorted[i] = (struct ranked){&c->thread[i],
					    c->thread[i].sum[by].scaled};
	qsort(sorted, nr, sizeof(*sorted), compare_ranked);
	for (size_t i = 0; i < nr && i < max; i++)
		thread(v, c, sorted[i].t, i ? "" : "threads");
	if (nr > max)
		text_paragraph(v, "", INK_DIM, "%s %s more (--top 0)", v->dots,
			       units_count(nr - max, count));
	free(sorted);
}

/* What was not counted; of @r where it is not what @before says as well. */
static void problems(const struct view *v, struct trace_reader *r,
		     struct trace_reader *before)
{
	static const struct {
		const char *key, *before;
	} notes[] = {
		{"counters.missing", "not counted: "},
		{"counters.failed", "not counted: "},
		{"counters.lost", "groups that lost their counters to "
				  "somebody else: "},
		{"counters.stops", ""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		const char *text = trace_meta(r, notes[i].key);
		const char *said =
			before ? trace_meta(before, notes[i].key) : NULL;
		if (text && *text && !(said && !strcmp(said, text)))
			text_paragraph(v, "", INK_WARN, "%s%.900s",
				       notes[i].before, text);
	}
}

/* Records that so many events end. */
static void every(const struct view *v, const struct model_file *f)
{
	const char *nr = trace_meta(f->reader, "counters.every"),
		   *event = trace_meta(f->reader, "counters.every_event"),
		   *joined = trace_meta(f->reader, "counters.every_joined");
	char each[UNITS_MAX], count[UNITS_MAX];
	if (!nr || !event)
		return;
	text_paragraph(v, "", INK_DIM, "%s records, each %s %.100s of a thread",
		       units_count(f->counts->nr_records, count),
		       units_count(strtoull(nr, NULL, 10), each), event);
	if (joined)
		text_paragraph(v, "", INK_WARN,
			       "they came too fast: %s are part of the one "
			       "after",
			       units_count(strtoull(joined, NULL, 10), count));
}

static void one_file(const struct view *v, const struct model_file *f)
{
	const struct counts *c = f->counts;
	const char *label = "counters";
	if (v->s->nr_files > 1 && f->name) {
		text_paragraph(v, label, INK_DIM, "%.200s", f->name);
		label = "";
	}
	for (size_t i = 0; i < c->nr_events; i++)
		total(v, c, c->total, i, f->counted_ns, i ? "" : label);
	if (!c->nr_records)
		text_paragraph(v, "", INK_WARN,
			       select_is_all(&v->s->select)
				       ? "no reading in the trace"
				       : "no reading selected");
	every(v, f);
	problems(v, f->reader, NULL);
	threads(v, c);
}

/* -------------------------------------------------------- several files --- */

static bool same_event(const struct counts_event *a,
		       const struct counts_event *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->unit, b->unit) &&
	       !strcmp(a->level, b->level) && a->scale == b->scale;
}

/* Did all files count the same, each for some time? */
static bool can_join(const struct summary *s)
{
	const struct counts *first = s->file[0].counts;
	for (size_t i = 0; i < s->nr_files; i++) {
		const struct counts *c = s->file[i].counts;
		if (!c || !c->nr_records || c->nr_events != first->nr_events ||
		    trace_meta(s->file[i].reader, "counters.every"))
			return false;
		for (size_t k = 0; k < c->nr_events; k++)
			if (!same_event(&c->event[k], &first->event[k]))
				return false;
	}
	return s->nr_files > 1;
}

static void joined(const struct view *v)
{
	const struct summary *s = v->s;
	const struct counts *first = s->file[0].counts;
	struct counts_sum sum[COUNTS_MAX_EVENTS] = {0};
	char nr[UNITS_MAX];
	uint64_t time_ns = 0;
	for (size_t i = 0; i < s->nr_files; i++) {
		for (size_t k = 0; k < first->nr_events; k++)
			counts_add(&sum[k], &s->file[i].counts->total[k]);
		time_ns += s->file[i].counted_ns;
	}
	for (size_t k = 0; k < first->nr_events; k++)
		total(v, first, sum, k, time_ns, k ? "" : "counters");
	text_paragraph(v, "", INK_DIM,
		       "of all %s traces (smco-report --counters: of each, "
		       "and of each thread)",
		       units_count(s->nr_files, nr));
	for (size_t i = 0; i < s->nr_files; i++)
		problems(v, s->file[i].reader, i ? s->file[0].reader : NULL);
}

bool text_counters(const struct view *v)
{
	bool any = false;
	if (can_join(v->s)) {
		joined(v);
		return true;
	}
	for (size_t i = 0; i < v->s->nr_files; i++) {
		if (!v->s->file[i].counts)
			continue;
		if (any)
			fputc('\n', v->page.out);
		one_file(v, &v->s->file[i]);
		any = true;
	}
	return any;
}
