/*
 * terse-read.h - what terse.h has written, as the document that it was.
 */
#ifndef TERSE_READ_H
#define TERSE_READ_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

static inline json_t *terse_value(json_t *v, json_t *shapes, json_t *texts);

static inline json_t *terse_member(json_t *v, char kind, json_t *shapes,
				   json_t *texts)
{
	if (kind == '$')
		return json_incref(
			json_array_get(texts, (size_t)json_integer_value(v)));
	if (kind == '#')
		return json_loads(json_string_value(v), 0, NULL);
	return terse_value(v, shapes, texts);
}

/* A new reference; NULL if it is not what terse.h says. */
static inline json_t *terse_value(json_t *v, json_t *shapes, json_t *texts)
{
	if (!json_is_array(v))
		return json_incref(v);
	size_t nr = json_array_size(v) - 1;
	json_int_t n = json_integer_value(json_array_get(v, nr));
	json_t *keys = json_array_get(shapes, (size_t)n);
	json_t *o = n < 0 ? json_array() : json_object();
	if (!json_is_integer(json_array_get(v, nr)) ||
	    (n >= 0 && json_array_size(keys) != nr))
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		json_t *x = json_array_get(v, i);
		const char *key =
			n < 0 ? NULL
			      : json_string_value(json_array_get(keys, i));
		x = key ? terse_member(x, *key, shapes, texts)
			: terse_value(x, shapes, texts);
		if (key ? json_object_set_new(o, key + 1, x)
			: json_array_append_new(o, x))
			return NULL;
	}
	return o;
}

/* All members that are in @page, whose end is that of the last one's element;
 * NULL if one of them is not JSON, or not what terse.h says. */
static inline json_t *terse_read(const char *page)
{
	static const char begin[] =
		"<script type=\"application/json\" id=\"data-";
	json_t *doc = json_object();
	for (const char *at = page; (at = strstr(at, begin)) != NULL;) {
		char key[64];
		const char *text = strstr(at, "\">{");
		const char *end = strstr(at, "</script>");
		json_error_t err = {0};
		at += strlen(begin);
		if (!text || !end || text - at >= (long)sizeof(key))
			return NULL;
		snprintf(key, sizeof(key), "%.*s", (int)(text - at), at);
		text += 2;
		json_t *part = json_loadb(text, (size_t)(end - text), 0, &err);
		if (!part)
			printf("# %s: %s at %d\n", key, err.text, err.position);
		json_t *v = terse_value(json_object_get(part, "data"),
					json_object_get(part, "shapes"),
					json_object_get(part, "texts"));
		if (!part || json_object_set_new(doc, key, v))
			return NULL;
		json_decref(part);
		at = end;
	}
	return doc;
}

#endif
