/*
 * suppress.h - suppressions in LeakSanitizer's format: one `leak:PATTERN` a
 * line, blank lines and those that start with # are comments. A pattern
 * matches if it is found in the function, source file or module of any frame;
 * * stands for any text, ^ at its start and $ at its end anchor it.
 */
#ifndef SMCO_SUPPRESS_H
#define SMCO_SUPPRESS_H

#include "reports/trace.h"

struct suppress;

/* SMCO_NOTFOUND, SMCO_PERM, SMCO_SYS: cannot be read; SMCO_FORMAT: a line is
 * none, the message says which; SMCO_NOMEM. */
int suppress_load(const char *path, struct suppress **ret,
		  struct smco_err *err);
/* The same from @text, which @name stands for in messages. */
int suppress_parse(const char *name, const char *text, size_t len,
		   struct suppress **ret, struct smco_err *err);
void suppress_free(struct suppress *s); /* NULL is fine */

bool suppress_matches(const struct suppress *s, const struct trace_frame *f,
		      size_t nr);
/* One pattern against one text. Takes time in proportion to the product of
 * their lengths at most. */
bool suppress_pattern_matches(const char *pattern, const char *text);

#endif
