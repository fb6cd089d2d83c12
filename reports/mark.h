/*
 * mark.h - the last line of a text that is not all there is. Where lines are
 * read one by one, nothing else says that some are missing once the exit status
 * and standard error have gone another way.
 */
#ifndef SMCO_MARK_H
#define SMCO_MARK_H

#include "reports/line.h"

/* @tool NULL: for people, @text as wide as the page. Otherwise for programs: "#
 * @tool: @text", one line, which is no row of a table, no record, no stack. */
void mark_put(const struct page *page, const char *tool, const char *text);

#endif
