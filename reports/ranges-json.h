/* ranges-json.h - the bounds of a range as JSON.md has them. */
#ifndef SMCO_RANGES_JSON_H
#define SMCO_RANGES_JSON_H

#include <jansson.h>

#include "reports/ranges.h"

/* @bound of @r, a whole number of any sign; null if @r has no value. NULL when
 * out of memory. */
json_t *range_bound_json(const struct model_range *r, int64_t bound);

/* What it was as a subscript outside of its array; JSON.md. null: never. */
json_t *subscript_json(const struct model_range *r);

#endif
