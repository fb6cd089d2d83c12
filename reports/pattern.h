/*
 * pattern.h - which POSIX extended regular expressions may be given to the
 * C library: those that it can neither need much memory nor much time for.
 */
#ifndef SMCO_PATTERN_H
#define SMCO_PATTERN_H

#include "reports/base.h"

#define PATTERN_MAX 256 /* bytes */

/* NULL if @pattern may be compiled (which can still fail), otherwise why not,
 * as a sentence's end for people. */
const char *pattern_problem(const char *pattern);

#endif
