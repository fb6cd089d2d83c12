#include "reports/ranges-json.h"

#include "reports/json-values.h"

json_t *range_bound_json(const struct model_range *r, int64_t bound)
{
	if (!r->has_value)
		return json_null();
	return r->var.flags & VARIABLE_SIGNED ? json_integer(bound)
					      : json_of_u64((uint64_t)bound);
}
