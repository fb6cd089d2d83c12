/*
 * json-values.h - values of JSON documents: texts that need not be UTF-8,
 * numbers that need not fit, objects from pairs. NULL if memory runs out;
 * the caller owns what is returned.
 */
#ifndef SMCO_JSON_VALUES_H
#define SMCO_JSON_VALUES_H

#include <jansson.h>

#include "reports/trace.h"

/* JSON must be UTF-8; what is not is replaced, not dropped. */
json_t *json_of_text(const char *s);
/* An integer, which json_write writes with all its digits; above 2^63 - 1 it is
 * nothing for others that write or read values. */
json_t *json_of_u64(uint64_t v);
/* "0x1f" */
json_t *json_of_address(uint64_t v);
/* null where @v is not finite. */
json_t *json_of_double(double v);
/* An array of @words, which end with NULL; null if they are NULL. */
json_t *json_of_words(char *const *words);
/* The same of command_words(). */
json_t *json_of_command(struct trace_reader *r);
/* What JSON.md calls frames. */
json_t *json_of_frames(const struct trace_frame *f, size_t nr);

/* @array, which takes @value over; NULL, and neither is left, when out of
 * memory. */
json_t *json_append(json_t *array, json_t *value);
/* json_dumpf for values with those; -1: no memory, or it cannot be written. */
int json_write(const json_t *v, FILE *out, size_t flags);
/* Write the document @doc and drop it; NULL is SMCO_NOMEM. SMCO_SYS. */
int json_print(json_t *doc, FILE *out, struct smco_err *err);

struct json_pair {
	const char *key;
	json_t *value; /* taken over; NULL makes the whole object NULL */
};
json_t *json_of_pairs(const struct json_pair *pairs, size_t nr);
#define JSON_OBJECT_OF(...)                                                    \
	json_of_pairs((const struct json_pair[]){__VA_ARGS__},                 \
		      ARRAY_SIZE(((const struct json_pair[]){__VA_ARGS__})))

#endif
