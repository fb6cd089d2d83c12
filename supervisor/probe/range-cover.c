/* See range-cover.h. */
#include "supervisor/probe/range-cover.h"
#include "supervisor/probe/range-doubt.h"

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
				const struct var_type *t, int64_t offset,
				int64_t from)
{
	int64_t skip = t->bit_size ? t->bit_offset / 8 : 0;
	int64_t bytes = t->width;
	struct range_cover c = {.yes = false};
	if (t->bit_size)
		bytes = (t->bit_offset + t->bit_size + 7) / 8 - skip;
	if (in->index != RANGE_NO_REG)
		return c;
	/* Of the elements that it could be, the first that it covers. */
	for (int64_t d = from; d + bytes <= in->mem_size; d++) {
		int64_t element = in->disp + d - skip;
		if (!element_at(t, element - offset))
			continue;
		c = (struct range_cover){.yes = true,
					 .delta = d - skip,
					 .offset = element,
					 .next = d + bytes};
		c.whole = c.delta >= 0 && c.delta + t->width <= in->mem_size;
		break;
	}
	return c;
}

/* Each is a load of its own in the sensor. */
#define MOST_AT_ONCE 8

unsigned range_cover_most(const struct range_insn *in, const struct var_type *t)
{
	const unsigned number = RB_READS | RB_IMM;
	bool vector = in->mem_size > 8 ||
		      (in->reg == RANGE_NO_REG && !(in->bits & number));
	unsigned nr =
		vector && t->nr_dims && t->width ? in->mem_size / t->width : 0;
	return in->bits & RB_WRITES && nr && nr <= MOST_AT_ONCE ? nr : 1;
}

bool range_covers_one(const struct range_insn *in, const struct var_type *t,
		      int64_t offset, struct range_within *ret)
{
	int64_t delta;
	uint64_t extent, stride = t->nr_dims == 1 ? t->dim[0].stride : 0;
	if (in->index == RANGE_NO_REG || !in->scale || t->bit_size ||
	    in->mem_size != t->width || !stride || in->scale % stride ||
	    __builtin_mul_overflow(t->dim[0].count, stride, &extent) ||
	    !extent || extent > INT32_MAX ||
	    __builtin_sub_overflow(in->disp, offset, &delta) ||
	    delta != (int32_t)delta || delta % (int64_t)stride)
		return false;
	*ret = (struct range_within){.index = in->index,
				     .scale = in->scale,
				     .base = RANGE_NO_REG,
				     .delta = (int32_t)delta,
				     .extent = (uint32_t)extent};
	return delta >= -(int64_t)extent && delta < (int64_t)extent;
}

bool range_covers_through(const struct range_insn *in, const struct var_type *t,
			  uint8_t frame, int64_t offset,
			  struct range_within *ret)
{
	const int64_t most = 1 << 30;
	int64_t delta;
	uint64_t extent;
	bool indexed = in->index != RANGE_NO_REG;
	if (in->base >= 16 || in->base == RANGE_RSP ||
	    (indexed && !in->scale) || t->nr_dims != 1 || t->bit_size ||
	    in->mem_size != t->width || t->dim[0].stride != t->width ||
	    t->width > 8 || t->width & (t->width - 1) ||
	    __builtin_mul_overflow(t->dim[0].count, t->width, &extent) ||
	    !extent || extent > INT32_MAX ||
	    __builtin_sub_overflow(in->disp, offset, &delta) ||
	    delta <= -most || delta >= most)
		return false;
	*ret = (struct range_within){.index = in->index,
				     .scale = indexed ? in->scale : 0,
				     .base = in->base,
				     .frame = frame,
				     .step = (uint8_t)t->width,
				     .delta = (int32_t)delta,
				     .extent = (uint32_t)extent};
	return true;
}

bool range_cover_half(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	uint32_t by = (in->index == RANGE_NO_REG ? 0 : 1u << in->index) |
		      (in->base == RANGE_NO_REG ? 0 : 1u << in->base);
	for (size_t k = i; code->insns[k].kind == RK_PLAIN &&
			   range_falls(code, k) && !(code->insns[k].wrote & by);
	     k++) {
		const struct range_insn *next = &code->insns[k + 1];
		if (next->bits & RB_LEADER)
			return false;
		if (next->base == in->base && next->index == in->index &&
		    next->scale == in->scale && next->disp == in->disp &&
		    next->bits & (RB_READS | RB_WRITES))
			return next->bits & RB_READS && next->bits & RB_WRITES;
	}
	return false;
}

bool range_doubt_kept_field(const struct range_code *code, size_t i,
			    const struct var_type *t, int64_t delta)
{
	int64_t low = 8 * delta + t->bit_offset;
	if (!t->bit_size || low < 0 || low + t->bit_size > 63)
		return false;
	uint64_t mask = (UINT64_C(1) << t->bit_size) - 1;
	return range_doubt_kept(code, i, mask << low);
}
