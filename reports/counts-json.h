/* counts-json.h - the counters as JSON.md has them. */
#ifndef SMCO_COUNTS_JSON_H
#define SMCO_COUNTS_JSON_H

#include <jansson.h>

#include "reports/model.h"

/* An element of "counters": null where the file has none. @text makes a JSON
 * string of bytes that may be no UTF-8; at most @max_threads of them, 0 = all.
 * NULL when out of memory. */
json_t *counts_json(const struct model_file *f, size_t max_threads,
		    json_t *(*text)(const char *));

#endif
