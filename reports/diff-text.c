/* A comparison for a person: the sides, the whole, then what changed. */
#include "reports/diff-print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/diff-words.h"
#include "reports/names.h"
#include "reports/text-frames.h"
#include "reports/units.h"

#define LABEL_COL 11 /* texts behind a label of the whole */
#define SITE_COL  4  /* texts of a change */
#define VALUE_COL 23 /* its numbers */
#define PART_COL  15 /* its stacks */

static void paragraph(const struct diff_style *st, unsigned indent,
		      unsigned col, const char *label, enum ink ink,
		      const char *text)
{
	struct line l;
	line_begin(&l, &st->page, indent, label, INK_BOLD, col);
	line_words(&l, ink, text);
	line_end(&l);
}

static void sides(const struct diff *d, const struct diff_style *st)
{
	static const char *const label[DIFF_SIDES] = {"base", "new"};
	char text[NOTE_MAX];
	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct diff_side *s = &d->side[i];
		struct line l;
		diff_words_runs(s, text);
		line_begin(&l, &st->page, 0, label[i], INK_BOLD, LABEL_COL);
		line_add_before(&l, INK_NONE, diff_words_command(s),
				line_columns(text) + 3);
		line_add(&l, INK_NONE, ",");
		line_words(&l, INK_NONE, text);
		line_add(&l, INK_NONE, ":");
		for (size_t k = 0; k < s->nr_runs; k++)
			line_item(&l, INK_DIM, k ? ", " : " ", s->run[k].path);
		line_end(&l);
	}
	for (size_t i = 0; diff_words_note(d, i, text); i++)
		paragraph(st, 0, LABEL_COL, i ? "" : "note", INK_WARN, text);
}

/* More of anything here is worse. */
static enum ink ink_of(const struct diff_measure *m)
{
	if (!m->has_changed)
		return INK_DIM;
	return m->test.change > 0 ? INK_BAD : INK_GOOD;
}

static void row(const struct diff *d, const struct diff_style *st,
		unsigned indent, const struct diff_change *c,
		enum diff_metric metric)
{
	const struct diff_measure *m = &c->measure[metric];
	enum diff_unit unit = diff_words_unit(c, metric);
	bool ascii = st->page.ascii;
	char base[WORDS_MAX], text[WORDS_MAX + 16], part[WORDS_MAX];
	struct line l;
	line_begin(&l, &st->page, indent, diff_metric[metric].label, INK_NONE,
		   VALUE_COL + indent - SITE_COL);
	diff_words_value(unit, m->side[DIFF_BASE].mean, ascii, base);
	diff_words_value(unit, m->side[DIFF_NEW].mean, ascii, part);
	line_add(&l, INK_NONE, base);
	if (m->test.change == 0) {
		line_item(&l, INK_DIM, ", ", "no change");
		line_end(&l);
		return;
	}
	line_item(&l, INK_NONE, " ", ascii ? "->" : "\u2192");
	line_item(&l, INK_NONE, " ", part);
	line_item(&l, ink_of(m), ", ", diff_words_relative(unit, m, part));
	if (*diff_words_interval(unit, m, ascii, part)) {
		snprintf(text, sizeof(text), "(95 %%: %s)", part);
		line_item(&l, INK_DIM, " ", text);
	}
	if (!m->has_changed && !diff_metric[metric].is_context)
		line_item(&l, INK_DIM, ", ", diff_words_why_not(d, metric, m));
	line_end(&l);
}

static void whole(const struct diff *d, const struct diff_style *st)
{
	const struct diff_change *c = &d->change[0];
	struct line l;
	line_begin(&l, &st->page, 0, "in all", INK_BOLD, 0);
	line_end(&l);
	for (size_t k = 0; k < DIFF_NR_METRICS; k++)
		if (c->measure[k].is_known)
			row(d, st, SITE_COL, c, k);
}

/* -------------------------------------------------------------- changes --- */

static enum ink ink_of_verdict(enum diff_verdict v)
{
	switch (v) {
	case VERDICT_NEW:
	case VERDICT_GROWN:
		return INK_BAD;
	case VERDICT_GONE:
	case VERDICT_SHRUNK:
		return INK_GOOD;
	case VERDICT_UNSURE:
		return INK_WARN;
	default:
		return INK_DIM;
	}
}

/* Notes behind the frames of @new: the lines that @base had. */
static const char **moved_lines(const struct diff_item *base,
				const struct diff_item *new, size_t nr)
{
	const char **note = calloc(nr, sizeof(*note) + 32);
	char *text = note ? (char *)(note + nr) : NULL;
	for (size_t i = 0; note && i < nr; i++, text += 32) {
		uint32_t was = base->shown[i].line, is = new->shown[i].line;
		if (!was || !is || was == is)
			continue;
		snprintf(text, 32, " (line %u before)", was);
		note[i] = text;
	}
	return note;
}

static void frames(const struct diff_style *st, const char *label,
		   const struct diff_item *item, const struct diff_item *base)
{
	size_t nr = item->nr_frames;
	const struct frames_place at = {SITE_COL, PART_COL, label};
	struct line l;
	if (!nr) {
		line_begin(&l, &st->page, SITE_COL, label, INK_DIM, PART_COL);
		line_words(&l, INK_NONE,
			   "by stacks that are not known: from before the "
			   "attach, or that could not be read");
		line_end(&l);
		return;
	}
	if (st->max_frames && nr > st->max_frames)
		nr = st->max_frames;
	const char **note = base ? moved_lines(base, item, nr) : NULL;
	frames_print(&st->page, &at, item->shown, nr, note);
	free(note);
	if (nr == item->nr_frames)
		return;
	line_begin(&l, &st->page, SITE_COL, "", INK_DIM, PART_COL);
	line_addf(&l, INK_DIM, "%s %zu more (--frames)",
		  st->page.ascii ? "..." : "\u2026", item->nr_frames - nr);
	line_end(&l);
}

/* The frames are the same ones, but for lines. */
static bool is_same_stack(const struct diff_change *c)
{
	return c->how == MATCH_EXACT || c->how == MATCH_MOVED ||
	       c->how == MATCH_FUNCTIONS;
}

static void stacks(const struct diff_style *st, const struct diff_change *c)
{
	const struct diff_item *base = c->item[DIFF_BASE];
	const struct diff_item *new = c->item[DIFF_NEW];
	if (base && new && c->how == MATCH_CUT)
		frames(st, "allocated",
		       new->nr_frames > base->nr_frames ? new : base, NULL);
	else if (!base || !new) {
		frames(st, "allocated", new ? new : base, NULL);
	} else if (is_same_stack(c)) {
		frames(st, "allocated", new, base);
	} else {
		frames(st, "allocated", new, NULL);
		frames(st, "before", base, NULL);
	}
}

static void mistakes(const struct diff *d, const struct diff_style *st,
		     const struct diff_change *c)
{
	static const char *const label[DIFF_SIDES] = {"before", "now"};
	for (int i = 0; i < DIFF_SIDES; i++) {
		const char *text = diff_mistake(d, c, i);
		paragraph(st, SITE_COL, PART_COL, label[i],
			  text ? INK_WARN : INK_DIM,
			  text		? text
			  : c->entry[i] ? "looks right"
					: "no such variable, or no value");
	}
}

static void change(const struct diff *d, const struct diff_style *st,
		   size_t rank, const struct diff_change *c)
{
	char text[NOTE_MAX];
	struct line l;
	fputc('\n', st->page.out);
	snprintf(text, sizeof(text), "%zu", rank);
	line_begin(&l, &st->page, 0, text, INK_BOLD, SITE_COL);
	line_add(&l, ink_of_verdict(c->verdict), diff_verdict_name(c->verdict));
	line_pad(&l, SITE_COL + 8);
	if (c->verdict != VERDICT_SAME)
		line_add(&l, INK_BOLD,
			 diff_words_finding(c, st->page.ascii, text));
	else
		line_add(&l, INK_NONE, diff_words_name(c));
	line_end(&l);
	if (c->kind == DIFF_MISTAKE)
		mistakes(d, st, c);
	for (size_t k = 0; k < DIFF_NR_METRICS; k++) {
		const struct diff_measure *m = &c->measure[k];
		if (k == DIFF_IS_MISTAKE)
			continue; /* said in words */
		if (m->is_known && (m->has_changed || st->all))
			row(d, st, SITE_COL, c, k);
	}
	if (*diff_words_watched(d, c, text))
		paragraph(st, SITE_COL, VALUE_COL, "watched",
			  c->verdict == VERDICT_UNSURE ? INK_WARN : INK_DIM,
			  text);
	if (c->kind == DIFF_SITE)
		stacks(st, c);
	if (diff_words_match(c))
		paragraph(st, SITE_COL, PART_COL, "matched",
			  c->ambiguous ? INK_WARN : INK_DIM,
			  diff_words_match(c));
}

static void counts_of(const struct diff *d, const struct diff_style *st,
		      enum diff_kind kind)
{
	char text[NOTE_MAX];
	if (diff_words_counts(d, kind, text))
		paragraph(st, 0, LABEL_COL, diff_kind_name(kind), INK_NONE,
			  text);
}

static void counts(const struct diff *d, const struct diff_style *st)
{
	fputc('\n', st->page.out);
	for (size_t kind = DIFF_SITE; kind < DIFF_NR_KINDS; kind++)
		counts_of(d, st, (enum diff_kind)kind);
}

static void changes(const struct diff *d, const struct diff_style *st)
{
	size_t rest = 0;
	for (size_t i = 1; i < d->nr_changes; i++) {
		const struct diff_change *c = &d->change[i];
		if (!c->is_told && !st->all)
			break;
		if (st->max_changes && i > st->max_changes)
			rest++;
		else
			change(d, st, i, c);
	}
	if (rest) {
		struct line l;
		fputc('\n', st->page.out);
		line_begin(&l, &st->page, 0, st->page.ascii ? "..." : "\u2026",
			   INK_DIM, SITE_COL);
		line_addf(&l, INK_DIM, "%zu more (--top)", rest);
		line_end(&l);
	}
}

static void outcome(const struct diff_rules *rules, const struct diff_style *st)
{
	char text[NOTE_MAX];
	for (size_t i = 0; i < rules->nr; i++) {
		const struct diff_rule *r = &rules->rule[i];
		paragraph(st, 0, LABEL_COL, i ? "" : "fail-on",
			  r->is_crossed ? INK_BAD : INK_GOOD,
			  diff_rule_outcome(r, st->page.ascii, text,
					    sizeof(text)));
	}
}

void diff_print_text(const struct diff *d, const struct diff_rules *rules,
		     const struct diff_style *style)
{
	sides(d, style);
	fputc('\n', style->page.out);
	whole(d, style);
	changes(d, style);
	counts(d, style);
	outcome(rules, style);
}
