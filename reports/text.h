/*
 * text.h - the parts of the summary's text, in the order they are printed.
 * Only for summary-text.c.
 */
#ifndef SMCO_TEXT_H
#define SMCO_TEXT_H

#include "reports/line.h"
#include "reports/model.h"

struct view {
	const struct summary *s;
	const struct summary_style *style;
	struct page page;
	const char *trace_path; /* or NULL */
	const char *dots;
	const char *arrow; /* before a caller */
};

/* A paragraph behind a label starts with this, text follows. */
void text_begin(const struct view *v, struct line *l, const char *label);
/* A whole paragraph behind @label, wrapped. */
void text_paragraph(const struct view *v, const char *label, enum ink ink,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void text_head(const struct view *v);
void text_overhead(const struct view *v);
void text_unused(const struct view *v, const struct model_sites *sites);
void text_sites(const struct view *v, const struct model_sites *sites);
/* False, and nothing, where no trace has counters. */
bool text_counters(const struct view *v);
void text_ranges(const struct view *v);
void text_samples(const struct view *v);
void text_phases(const struct view *v);
void text_processes(const struct view *v);
void text_coverage(const struct view *v);
void text_mechanism(const struct view *v);
void text_session(const struct view *v);

#endif
