/*
 * html.h - what runs found, as one page that opens in a browser and needs
 * nothing else: no network, no other file. Its data is JSON.md's document, cut
 * to what a page can show, and strips: what happened when, added up into
 * buckets of time, so that the page does not grow with the length of a run.
 */
#ifndef SMCO_HTML_H
#define SMCO_HTML_H

#include <stdio.h>

#include "reports/summary.h"

/* For struct select's nr_buckets: how finely the page shows counters. */
#define HTML_BUCKETS 4096

/* 0, SMCO_NOMEM, or SMCO_SYS: cannot write. */
int html_print(const struct summary *s, FILE *out, struct smco_err *err);

#endif
