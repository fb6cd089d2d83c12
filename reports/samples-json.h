/*
 * samples-json.h - the samples of a summary as a JSON value.
 */
#ifndef SMCO_SAMPLES_JSON_H
#define SMCO_SAMPLES_JSON_H

#include <jansson.h>

#include "reports/model.h"

/* What JSON.md calls samples; null without any. At most @max functions and
 * stacks, 0 = all. NULL when out of memory. */
json_t *samples_json(const struct summary *s, size_t max);

#endif
