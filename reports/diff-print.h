/*
 * diff-print.h - a comparison for people, for programs and for a browser.
 */
#ifndef SMCO_DIFF_PRINT_H
#define SMCO_DIFF_PRINT_H

#include "reports/diff-rule.h"
#include "reports/line.h"

struct diff_style {
	struct page page;     /* width, colours; page.out is written to */
	unsigned max_changes; /* 0 = all */
	unsigned max_frames;  /* per stack; 0 = all */
	bool all;	      /* also what did not change */
};

/* @rules: how each came out is said at the end; may be none. */
void diff_print_text(const struct diff *d, const struct diff_rules *rules,
		     const struct diff_style *style);
/* One JSON document, everything; schema in reports/JSON.md. 0 or negative. */
int diff_print_json(const struct diff *d, const struct diff_rules *rules,
		    FILE *out, struct smco_err *err);
/* One self-contained page, base and new side by side. */
void diff_print_html(const struct diff *d, const struct diff_rules *rules,
		     const struct diff_style *style);

#endif
