/* The summary's part about the ranges of variables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reports/names.h"
#include "reports/text.h"
#include "reports/units.h"

static const char *bound_text(const struct model_range *r, int64_t bound,
			      char *buf)
{
	if (r->var.flags & VARIABLE_SIGNED)
		snprintf(buf, UNITS_MAX, "%" PRId64, bound);
	else
		snprintf(buf, UNITS_MAX, "%" PRIu64, (uint64_t)bound);
	return buf;
}

/* "i - 1: 0 to 256": of a subscript what it was as one. */
static void values(struct line *l, const struct model_range *r)
{
	char lo[UNITS_MAX], hi[UNITS_MAX], words[RANGE_WORDS];
	const struct model_subscript *s = r->subscript;
	line_add(l, INK_NAME,
		 s ? subscript_words(r, words) : r->decl->function);
	if (s) {
		snprintf(lo, sizeof(lo), "%" PRId64, s->smallest);
		snprintf(hi, sizeof(hi), "%" PRId64, s->largest);
	} else {
		bound_text(r, r->smallest, lo);
		bound_text(r, r->largest, hi);
	}
	line_addf(l, INK_NONE, ": %s", lo);
	if (strcmp(lo, hi))
		line_addf(l, INK_NONE, " to %s", hi);
}

static void what(const struct view *v, const struct model_range *r)
{
	char words[RANGE_WORDS], place[NAMES_MAX];
	const struct model_subscript *s = r->subscript;
	struct line l;
	line_begin(&l, &v->page, 4, "", INK_NONE, 4);
	if (!s) {
		line_words(&l, INK_WARN, finding_text(r->finding));
		line_add(&l, INK_WARN, range_odd_words(r, words));
	} else {
		line_words(&l, INK_WARN, "subscript of");
		line_words(&l, INK_NAME, subscript_array_words(s, words));
		if (*names_place(s->array, place)) {
			line_add(&l, INK_DIM, ",");
			line_words(&l, INK_DIM, place);
		}
	}
	line_end(&l);
}

static void finding(const struct view *v, const struct model_range *r,
		    size_t rank)
{
	char place[NAMES_MAX], share[UNITS_MAX];
	struct line l;
	line_begin(&l, &v->page, 0, "", INK_NONE, 0);
	line_addf(&l, INK_BOLD, "%zu", rank);
	line_pad(&l, 4);
	values(&l, r);
	line_end(&l);
	what(v, r);
	line_begin(&l, &v->page, 4, "", INK_NONE, 4);
	line_words(&l, INK_DIM, *r->type ? r->type : "unknown type");
	if (*names_place(r->decl, place)) {
		line_add(&l, INK_DIM, ",");
		line_words(&l, INK_DIM, place);
	}
	if (range_watched_ppb(r) >= 0) {
		line_add(&l, INK_DIM, ",");
		line_words(&l, INK_DIM, "watched");
		line_words(&l, INK_DIM,
			   units_percent(range_watched_ppb(r), share));
		line_words(&l, INK_DIM, "of the time");
		if (r->flags & RANGE_WATCHPOINT)
			line_words(&l, INK_DIM, "by a watchpoint");
		else if (r->flags & RANGE_BREAKPOINT)
			line_words(&l, INK_DIM,
				   r->flags & RANGE_SENSED
					   ? "by sensors and a breakpoint"
					   : "by a breakpoint");
	} else if (r->flags & RANGE_POLLED) {
		line_add(&l, INK_DIM, ",");
		line_words(&l, INK_DIM, "polled");
	}
	line_end(&l);
}

#define MOST_REASONS 32

struct reason {
	const char *text;
	size_t nr;
};

static int by_number(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;
	if (x->nr != y->nr)
		return x->nr > y->nr ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* "751 cannot be watched: 700 optimised out, 51 constant" */
static void unwatched(const struct view *v, size_t nr)
{
	const struct model_ranges *rs = &v->s->ranges;
	struct reason why[MOST_REASONS];
	char number[UNITS_MAX];
	size_t nr_why = 0;
	struct line l;
	for (size_t i = 0; i < rs->nr; i++) {
		const struct model_range *r = &rs->range[i];
		size_t k = 0;
		if (r->has_value || !*r->unwatched)
			continue;
		while (k < nr_why && strcmp(why[k].text, r->unwatched) != 0)
			k++;
		if (k == nr_why && nr_why < MOST_REASONS)
			why[nr_why++] = (struct reason){.text = r->unwatched};
		if (k < nr_why)
			why[k].nr++;
	}
	qsort(why, nr_why, sizeof(*why), by_number);
	line_begin(&l, &v->page, 11, "", INK_NONE, 11);
	line_words(&l, INK_NONE, units_count(nr, number));
	line_words(&l, INK_NONE, "cannot be watched:");
	for (size_t k = 0; k < nr_why; k++) {
		line_words(&l, INK_NONE, units_count(why[k].nr, number));
		line_words(&l, INK_NONE, why[k].text);
		if (k + 1 < nr_why)
			line_add(&l, INK_NONE, ",");
	}
	line_end(&l);
}

static void counts(const struct view *v)
{
	const struct model_ranges *rs = &v->s->ranges;
	char all[UNITS_MAX], had[UNITS_MAX], found[UNITS_MAX];
	size_t nr_unwatched = 0;
	for (size_t i = 0; i < rs->nr; i++)
		nr_unwatched +=
			!rs->range[i].has_value && *rs->range[i].unwatched;
	text_paragraph(v, "ranges", INK_NONE,
		       "of %s of %s integer variables (smco-report --ranges)",
		       units_count(rs->nr_with_value, had),
		       units_count(rs->nr, all));
	if (rs->nr_initial)
		text_paragraph(
			v, "", INK_NONE,
			"%s of them not seen assigned: what they had when "
			"the watch began",
			units_count(rs->nr_initial, found));
	if (nr_unwatched)
		unwatched(v, nr_unwatched);
	const char *how = trace_meta(v->s->reader, "range.watchpoints");
	if (how)
		text_paragraph(v, "", INK_NONE, "watchpoints: %s", how);
	if (rs->nr > rs->nr_with_value + nr_unwatched)
		text_paragraph(
			v, "", INK_NONE,
			"%s had no value while they were watched",
			units_count(rs->nr - rs->nr_with_value - nr_unwatched,
				    all));
	if (rs->nr_findings)
		text_paragraph(v, "", INK_WARN, "%s may be mistakes%s",
			       units_count(rs->nr_findings, found),
			       rs->nr_findings == 1 ? "" : ", worst first");
	else
		text_paragraph(v, "", INK_GOOD, "none looks like a mistake");
}

void text_ranges(const struct view *v)
{
	const struct model_ranges *rs = &v->s->ranges;
	size_t max = v->style->max_sites;
	char more[UNITS_MAX];
	if (!model_has_monitor(v->s, "range"))
		return;
	const char *missing = trace_meta(v->s->reader, "range.missing");
	const char *beside = trace_meta(v->s->reader, "range.beside");
	if (!rs->nr) {
		text_paragraph(v, "ranges", INK_WARN, "none: %s",
			       missing ? missing : "no variable was found");
		return;
	}
	counts(v);
	if (missing)
		text_paragraph(v, "", INK_WARN, "%s", missing);
	if (beside)
		text_paragraph(v, "", INK_DIM, "%s", beside);
	for (size_t i = 0; i < rs->nr_findings && (!max || i < max); i++) {
		fputc('\n', v->page.out);
		finding(v, &rs->range[i], i + 1);
	}
	if (max && rs->nr_findings > max)
		text_paragraph(v, "", INK_DIM, "%s %s more (--top)", v->dots,
			       units_count(rs->nr_findings - max, more));
}
