/* The smallest and the largest element of an array, see range-private.h. */
#include <string.h>

#include "supervisor/monitor/range-private.h"

/*
 * An element is compared as a number without sign: its bits moved to the top,
 * the uppermost turned round where that is a sign. Whatever the type, the order
 * is that of the values.
 */
struct keys {
	unsigned down, up; /* bits: away with those below, then to the top */
	uint64_t sign;
	uint64_t least, most;
};

static inline __attribute__((always_inline)) void
go_through(struct keys *k, unsigned width, const struct var_dim *d,
	   const uint8_t *bytes)
{
	uint64_t least = k->least, most = k->most;
	for (uint64_t i = 0; i < d->count; i++) {
		uint64_t word = 0;
		memcpy(&word, bytes + i * d->stride, width);
		word = (word >> k->down << k->up) ^ k->sign;
		least = word < least ? word : least;
		most = word > most ? word : most;
	}
	k->least = least;
	k->most = most;
}

/* A loop for each width, without a call for each element. */
static void row(struct keys *k, unsigned width, const struct var_dim *d,
		const uint8_t *bytes)
{
	switch (width) {
	case 1:
		go_through(k, 1, d, bytes);
		break;
	case 2:
		go_through(k, 2, d, bytes);
		break;
	case 4:
		go_through(k, 4, d, bytes);
		break;
	default:
		go_through(k, width < 8 ? width : 8, d, bytes);
		break;
	}
}

/* All elements of dimension @dim on. */
static void all(struct keys *k, const struct var_type *t, unsigned dim,
		const uint8_t *bytes)
{
	const struct var_dim *d = &t->dim[dim];
	if (dim + 1u == t->nr_dims) {
		row(k, t->width, d, bytes);
		return;
	}
	for (uint64_t i = 0; i < d->count; i++)
		all(k, t, dim + 1, bytes + i * d->stride);
}

static int64_t value_of(const struct keys *k, const struct var_type *t,
			uint64_t key)
{
	key ^= k->sign;
	return t->is_signed ? (int64_t)key >> k->up : (int64_t)(key >> k->up);
}

void range_elements(const struct var_type *t, const uint8_t *bytes,
		    int64_t *smallest_ret, int64_t *largest_ret)
{
	static const struct var_dim one = {.count = 1};
	struct keys k = {
		.down = t->bit_offset,
		.up = 64 - (t->bit_size ? t->bit_size : 8u * t->width),
		.sign = t->is_signed ? 1ULL << 63 : 0,
		.least = UINT64_MAX,
	};
	if (t->nr_dims)
		all(&k, t, 0, bytes);
	else
		row(&k, t->width, &one, bytes);
	*smallest_ret = value_of(&k, t, k.least);
	*largest_ret = value_of(&k, t, k.most);
}
