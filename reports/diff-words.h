/*
 * diff-words.h - numbers of a comparison as people read them; what the text
 * and the HTML page have in common. Each returns @buf (WORDS_MAX bytes).
 */
#ifndef SMCO_DIFF_WORDS_H
#define SMCO_DIFF_WORDS_H

#include "reports/diff.h"

#define WORDS_MAX 128

/* Of a metric of @c: of an event that counts ns that, too. */
enum diff_unit diff_words_unit(const struct diff_change *c,
			       enum diff_metric metric);
/* "8.21 GiB·s", "3.8 s", "200". */
char *diff_words_value(enum diff_unit unit, double v, bool ascii, char *buf);
/* The same with a sign: "+8.21 GiB·s". Of an overhead: points. */
char *diff_words_delta(enum diff_unit unit, double v, bool ascii, char *buf);
/* The change as a share of the base: "+12 %", "-100 %", "13 times as much",
 * "from nothing"; of an overhead: points. */
char *diff_words_relative(enum diff_unit unit, const struct diff_measure *m,
			  char *buf);
/* Why a change does not count: "small", "noise", ... */
const char *diff_words_why_not(const struct diff *d, enum diff_metric metric,
			       const struct diff_measure *m);
/* The interval of the change: "+8 to +15 %"; in its unit where the base
 * is nothing. "" if there is none, or no width to it. */
char *diff_words_interval(enum diff_unit unit, const struct diff_measure *m,
			  bool ascii, char *buf);
/* The name of what is compared; "" of a site. */
const char *diff_words_name(const struct diff_change *c);
/* "+32 MiB unused at the end": what stands over a change. */
char *diff_words_finding(const struct diff_change *c, bool ascii, char *buf);
/* Why the pair is less than certain; NULL if it is certain. */
const char *diff_words_match(const struct diff_change *c);
/* How much was watched: "30 % of its blocks, before 99 %" (of a variable: of
 * the time), and why it is unsure if not for that; "" if alike. @buf has
 * NOTE_MAX bytes. */
char *diff_words_watched(const struct diff *d, const struct diff_change *c,
			 char *buf);

/* Sentences about the sides, for (i = 0; diff_words_note(d, i, buf); i++): what
 * keeps them from being compared well. @buf has NOTE_MAX bytes. */
#define NOTE_MAX 512
bool diff_words_note(const struct diff *d, size_t i, char *buf);
/* "1 new, 2 grown; 5 unchanged"; @buf has NOTE_MAX bytes. False: there are none
 * of @kind, nor was it asked whether there are. */
bool diff_words_counts(const struct diff *d, enum diff_kind kind, char *buf);
/* "python3 x.py", as long as it is. */
const char *diff_words_command(const struct diff_side *s);
/* "3 runs of 4.02 s", or "4.02 s". */
char *diff_words_runs(const struct diff_side *s, char *buf);

#endif
