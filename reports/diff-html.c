/*
 * A comparison as one page that needs nothing else: no script, no font, no
 * address. Everything from a trace goes through
 * markup_text().
 */
#include "reports/diff-print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reports/diff-words.h"
#include "reports/html-image.h"
#include "reports/markup.h"
#include "reports/names.h"
#include "reports/shortage.h"
#include "reports/units.h"

#define COMMAND_MAX 200 /* bytes of one that are shown */

/* <@tag class=@class>@text</@tag>; @class may be NULL. */
static void element(FILE *out, const char *tag, const char *class,
		    const char *text)
{
	if (class)
		fprintf(out, "<%s class=\"%s\">", tag, class);
	else
		fprintf(out, "<%s>", tag);
	markup_text(out, text);
	fprintf(out, "</%s>", tag);
}

static const char *class_of(const struct diff_measure *m)
{
	if (!m->has_changed)
		return "dim";
	return m->test.change > 0 ? "bad" : "good";
}

static void row(FILE *out, const struct diff *d, const struct diff_change *c,
		enum diff_metric metric)
{
	const struct diff_measure *m = &c->measure[metric];
	enum diff_unit unit = diff_words_unit(c, metric);
	char text[WORDS_MAX];
	fputs("<tr>", out);
	element(out, "th", NULL, diff_metric[metric].label);
	for (int i = 0; i < DIFF_SIDES; i++)
		element(out, "td", NULL,
			diff_words_value(unit, m->side[i].mean, false, text));
	element(out, "td", class_of(m), diff_words_relative(unit, m, text));
	element(out, "td", "dim", diff_words_interval(unit, m, false, text));
	bool is_told = m->has_changed || m->test.change == 0 ||
		       diff_metric[metric].is_context;
	element(out, "td", "dim",
		is_told ? "" : diff_words_why_not(d, metric, m));
	fputs("</tr>\n", out);
}

static void table(FILE *out, const struct diff *d, const struct diff_change *c,
		  bool all)
{
	fputs("<table><tr><th></th><th>base</th><th>new</th><th>change</th>"
	      "<th>95 %</th><th></th></tr>\n",
	      out);
	for (size_t k = 0; k < DIFF_NR_METRICS; k++)
		if (c->measure[k].is_known &&
		    (all || c->measure[k].has_changed))
			row(out, d, c, k);
	fputs("</table>\n", out);
}

static void frames(FILE *out, const struct diff_item *item, unsigned max)
{
	char name[NAMES_MAX], place[NAMES_MAX], more[64];
	if (!item) {
		element(out, "p", "dim", "not there");
		return;
	}
	if (!item->nr_frames) {
		element(out, "p", "dim", "stacks that are not known");
		return;
	}
	size_t nr = max && item->nr_frames > max ? max : item->nr_frames;
	fputs("<ol>", out);
	for (size_t i = 0; i < nr; i++) {
		fputs("<li>", out);
		markup_text(out, names_function(&item->shown[i], 120, name));
		fputs(" <small>", out);
		markup_text(out, names_place(&item->shown[i], place));
		fputs("</small></li>\n", out);
	}
	if (nr < item->nr_frames) {
		snprintf(more, sizeof(more), "%zu more (--frames)",
			 item->nr_frames - nr);
		element(out, "li", "dim", more);
	}
	fputs("</ol>", out);
}

static void mistakes(FILE *out, const struct diff *d,
		     const struct diff_change *c)
{
	fputs("<div class=\"sides\">", out);
	for (int i = 0; i < DIFF_SIDES; i++) {
		const char *text = diff_mistake(d, c, i);
		fputs("<div>", out);
		element(out, "p", text ? "warn" : "dim",
			text	      ? text
			: c->entry[i] ? "looks right"
				      : "no such variable, or no value");
		fputs("</div>\n", out);
	}
	fputs("</div>\n", out);
}

static void change(FILE *out, const struct diff *d, const struct diff_style *st,
		   size_t rank, const struct diff_change *c)
{
	static const char *const class[VERDICT_NR] = {
		"dim", "bad", "bad", "good", "good", "warn",
	};
	char text[NOTE_MAX];
	fprintf(out, "<section><h2>%zu ", rank);
	element(out, "span", class[c->verdict], diff_verdict_name(c->verdict));
	fputc(' ', out);
	if (c->verdict != VERDICT_SAME)
		markup_text(out, diff_words_finding(c, false, text));
	fputs("</h2>\n", out);
	if (c->kind == DIFF_MISTAKE)
		mistakes(out, d, c);
	else
		table(out, d, c, st->all);
	if (*diff_words_watched(d, c, text)) {
		fputs("<p class=\"warn\">watched ", out);
		markup_text(out, text);
		fputs("</p>\n", out);
	}
	if (diff_words_match(c)) {
		fputs("<p class=\"dim\">matched ", out);
		markup_text(out, diff_words_match(c));
		fputs("</p>\n", out);
	}
	if (c->kind != DIFF_SITE) {
		fputs("</section>\n", out);
		return;
	}
	fputs("<div class=\"sides\">", out);
	for (int i = 0; i < DIFF_SIDES; i++) {
		fputs("<div>", out);
		frames(out, c->item[i], st->max_frames);
		fputs("</div>\n", out);
	}
	fputs("</div></section>\n", out);
}

static void sides(const struct diff *d, FILE *out)
{
	static const char *const label[DIFF_SIDES] = {"base", "new"};
	char text[NOTE_MAX], command[COMMAND_MAX];
	fputs("<section class=\"sides\">", out);
	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct diff_side *s = &d->side[i];
		fputs("<div>", out);
		element(out, "h2", NULL, label[i]);
		snprintf(command, sizeof(command), "%s", diff_words_command(s));
		markup_text(out, command);
		markup_text(out,
			    strlen(diff_words_command(s)) >= sizeof(command)
				    ? " \u2026, "
				    : ", ");
		markup_text(out, diff_words_runs(s, text));
		fputs("<br><small>", out);
		for (size_t k = 0; k < s->nr_runs; k++) {
			fputs(k ? ", " : "", out);
			markup_text(out, s->run[k].path);
		}
		fputs("</small></div>\n", out);
	}
	fputs("</section>\n", out);
	for (size_t i = 0; diff_words_note(d, i, text); i++)
		element(out, "p", "warn", text);
}

void diff_print_html(const struct diff *d, const struct diff_rules *rules,
		     const struct diff_style *style)
{
	FILE *out = style->page.out;
	char text[NOTE_MAX];
	size_t rest = 0;
	html_image_write(html_diff_start, html_diff_data, out);
	sides(d, out);
	for (size_t i = 0; i < rules->nr; i++)
		element(out, "p", rules->rule[i].is_crossed ? "bad" : "good",
			diff_rule_outcome(&rules->rule[i], false, text,
					  sizeof(text)));
	fputs("<section><h2>in all</h2>\n", out);
	table(out, d, &d->change[0], true);
	fputs("</section>\n", out);
	for (size_t i = 1; i < d->nr_changes; i++) {
		if (!d->change[i].is_told && !style->all)
			continue;
		if (style->max_changes && i > style->max_changes)
			rest++;
		else
			change(out, d, style, i, &d->change[i]);
	}
	if (rest) {
		snprintf(text, sizeof(text), "%zu more (--top)", rest);
		element(out, "p", "dim", text);
	}
	for (size_t kind = DIFF_SITE; kind < DIFF_NR_KINDS; kind++) {
		if (!diff_words_counts(d, (enum diff_kind)kind, text))
			continue;
		fprintf(out, "<p class=\"dim\">%s: ",
			diff_kind_name((enum diff_kind)kind));
		markup_text(out, text);
		fputs("</p>\n", out);
	}
	if (!shortage_any())
		html_image_write(html_diff_data, html_diff_end, out);
}
