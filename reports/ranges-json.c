#include "reports/ranges-json.h"

#include "reports/json-values.h"

json_t *subscript_json(const struct model_range *r)
{
	const struct model_subscript *s = r->subscript;
	char words[RANGE_WORDS];
	if (!s)
		return json_null();
	return JSON_OBJECT_OF(
		{"of", json_of_text(subscript_array_words(s, words))},
		{"array", json_of_text(s->array->function)},
		{"elements", json_of_u64(s->elements)},
		{"file", json_of_text(s->array->file)},
		{"line", json_integer(s->array->line)},
		{"offset", json_integer(s->offset)},
		{"smallest", json_integer(s->smallest)},
		{"largest", json_integer(s->largest)});
}

json_t *range_bound_json(const struct model_range *r, int64_t bound)
{
	if (!r->has_value)
		return json_null();
	return r->var.flags & VARIABLE_SIGNED ? json_integer(bound)
					      : json_of_u64((uint64_t)bound);
}
