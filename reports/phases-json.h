/* phases-json.h - the phases of a summary as values of a JSON document. */
#ifndef SMCO_PHASES_JSON_H
#define SMCO_PHASES_JSON_H

#include <jansson.h>

struct summary;

/* Phase @i as reports/JSON.md has it; its pieces of time no more than
 * @max_pieces for all phases together (0: all), of the first threads where
 * there are too many. NULL when out of memory. */
json_t *phase_json(const struct summary *s, size_t i, size_t max_pieces);
/* Threads in phases of which nothing is shown then. */
size_t phases_left_out(const struct summary *s, size_t max_pieces);
/* Ranges of variables in phases that are not shown then. */
size_t phase_ranges_left_out(const struct summary *s, size_t max_pieces);

#endif
