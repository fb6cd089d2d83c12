/*
 * html-image.h - the HTML pages that html/build.mk puts together from the
 * files there: what stands before and behind what is of the run.
 */
#ifndef SMCO_HTML_IMAGE_H
#define SMCO_HTML_IMAGE_H

#include <stdio.h>

/* The page of smco-report --html: where html-head.h's lines go, where the data,
 * which terse.h has written. */
extern const char html_page_start[], html_page_runs[], html_page_data[],
	html_page_end[];
/* That of smco-diff --html: the data is HTML. */
extern const char html_diff_start[], html_diff_data[], html_diff_end[];

static inline void html_image_write(const char *start, const char *end,
				    FILE *out)
{
	fwrite(start, 1, (size_t)(end - start), out);
}

#endif
