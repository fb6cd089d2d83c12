/* The summary for a person: what they need first, stands first. */
#include "reports/summary.h"

#include <stdarg.h>

#include "reports/section.h"
#include "reports/text.h"

#define LABEL_COL 11 /* where texts behind a label start */

void text_begin(const struct view *v, struct line *l, const char *label)
{
	line_begin(l, &v->page, 0, label, INK_BOLD, LABEL_COL);
}

void text_paragraph(const struct view *v, const char *label, enum ink ink,
		    const char *fmt, ...)
{
	char text[1024];
	struct line l;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text_begin(v, &l, label);
	line_words(&l, ink, text);
	line_end(&l);
}

void summary_print(const struct summary *s, FILE *out, const char *trace_path,
		   const struct summary_style *style)
{
	struct view v = {
		.s = s,
		.style = style,
		.page = {out, style->width, style->color, style->ascii},
		.trace_path = trace_path,
		.dots = style->ascii ? "..." : "\u2026",
		.arrow = style->ascii ? " <- " : " \u2190 ",
	};
	struct model_sites sites;
	if (model_sites(s, style->max_frames, &sites)) {
		fputs("out of memory\n", out);
		return;
	}
	if (style->sort)
		sites_sort(s, &sites, style->sort);
	text_head(&v);
	text_overhead(&v);
	bool naps = model_has_monitor(s, "nap");
	if (naps)
		text_unused(&v, &sites);
	if (text_counters(&v) &&
	    (model_has_monitor(s, "samples") ||
	     model_has_monitor(s, "phases") || model_has_monitor(s, "range")))
		fputc('\n', out);
	text_samples(&v);
	text_phases(&v);
	text_ranges(&v);
	if (naps) {
		text_sites(&v, &sites);
		text_processes(&v);
	}
	fputc('\n', out);
	text_coverage(&v);
	if (naps)
		text_mechanism(&v);
	text_session(&v);
	model_sites_free(&sites);
}
