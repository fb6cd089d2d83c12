#include "pmu/call-columns.h"

#include <string.h>

void call_columns_init(struct call_columns *c)
{
	memset(c, 0, sizeof(*c));
	c->nr = 1;
}

/* Where its calls are, and where others are. */
static void find(const struct call_columns *c, const struct pmu_event *ev,
		 uint32_t *inside, uint32_t *outside)
{
	*inside = *outside = 0;
	for (unsigned abi = 0; abi < PMU_CALL_ABIS; abi++)
		for (long nr = 0; nr <= CALL_NUMBERS; nr++)
			*(pmu_counts_call(ev, abi, nr) ? inside : outside) |=
				1u << c->of[abi][nr];
}

bool call_columns_add(struct call_columns *c, const struct pmu_event *ev)
{
	uint32_t inside, outside;
	uint8_t new_of[CALL_COLUMNS];
	find(c, ev, &inside, &outside);
	uint32_t both = inside & outside;
	if (c->nr + (size_t)__builtin_popcount(both) > CALL_COLUMNS)
		return false;
	for (uint8_t i = 0; i < CALL_COLUMNS; i++)
		new_of[i] = both & 1u << i ? (uint8_t)c->nr++ : i;
	for (unsigned abi = 0; abi < PMU_CALL_ABIS; abi++)
		for (long nr = 0; nr <= CALL_NUMBERS; nr++)
			if (pmu_counts_call(ev, abi, nr))
				c->of[abi][nr] = new_of[c->of[abi][nr]];
	return true;
}

uint32_t call_columns_of(const struct call_columns *c,
			 const struct pmu_event *ev)
{
	uint32_t inside, outside;
	find(c, ev, &inside, &outside);
	return inside;
}
