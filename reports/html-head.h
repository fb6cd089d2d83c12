/*
 * html-head.h - the page's first lines: what ran, and the figures in short.
 * They are not drawn by its script, so that they are there before it has begun.
 */
#ifndef SMCO_HTML_HEAD_H
#define SMCO_HTML_HEAD_H

#include <stdio.h>

#include "reports/summary.h"

/* A line for each run. SMCO_NOMEM if one is not whole. */
int html_head_print(const struct summary *s, FILE *out);

#endif
