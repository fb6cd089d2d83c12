/*
 * text-frames.h - a stack as lines of a report: functions, and in a column
 * behind them where they are.
 */
#ifndef SMCO_TEXT_FRAMES_H
#define SMCO_TEXT_FRAMES_H

#include "reports/line.h"
#include "reports/trace.h"

struct frames_place {
	unsigned indent; /* where the label starts */
	unsigned col;	 /* where frames start */
	const char *label;
};

/* Longest function name to show in full on @page. */
unsigned frames_name_columns(const struct page *page);
/* One line for each of the @nr frames @f, innermost first, the label in front
 * of the first. @note: NULL, or a text behind each frame, NULL for none. */
void frames_print(const struct page *page, const struct frames_place *at,
		  const struct trace_frame *f, size_t nr,
		  const char *const *note);

#endif
