/*
 * samples-json.h - the samples of a summary as a JSON value.
 */
#ifndef SMCO_SAMPLES_JSON_H
#define SMCO_SAMPLES_JSON_H

#include <jansson.h>

#include "reports/model.h"

/* What JSON.md calls samples; null without any. NULL when out of memory. */
json_t *samples_json(const struct summary *s);

#endif
