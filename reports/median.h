/*
 * median.h - what measured times are in the middle, so that the few in which
 * somebody interrupted say nothing. Pure.
 */
#ifndef SMCO_MEDIAN_H
#define SMCO_MEDIAN_H

#include "reports/base.h"

/* The upper one where @nr is even; 0 of none. @value is sorted then. */
int64_t median_i64(int64_t *value, size_t nr);

#endif
