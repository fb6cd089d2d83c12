/* See range-cover.h. */
#include "supervisor/probe/range-cover.h"

/* Is @delta bytes behind the place an element of the variable? */
static bool element_at(const struct var_type *t, int64_t delta)
{
	if (delta == 0)
		return true;
	if (delta < 0 || !t->nr_dims || t->nr_dims > VAR_MAX_DIMS)
		return false;
	uint64_t left = (uint64_t)delta;
	for (unsigned i = 0; i < t->nr_dims; i++) {
		uint64_t n = t->dim[i].count, stride = t->dim[i].stride;
		if (!n || !stride || left / stride >= n)
			return false;
		left %= stride;
	}
	return left == 0;
}

struct range_cover range_covers(const struct range_insn *in,
				const struct var_type *t, int64_t offset)
{
	int64_t skip = t->bit_size ? t->bit_offset / 8 : 0;
	int64_t bytes = t->width;
	struct range_cover c = {.yes = false};
	if (t->bit_size)
		bytes = (t->bit_offset + t->bit_size + 7) / 8 - skip;
	if (in->index != RANGE_NO_REG)
		return c;
	/* Of the elements that it could be, the first that it covers. */
	for (int64_t d = 0; d + bytes <= in->mem_size; d++) {
		int64_t element = in->disp + d - skip;
		if (!element_at(t, element - offset))
			continue;
		c = (struct range_cover){true, false, d - skip, element};
		c.whole = c.delta >= 0 && c.delta + t->width <= in->mem_size;
		break;
	}
	return c;
}
