#include "supervisor/probe/guardtab.h"

#include <stdlib.h>
#include <string.h>

void guardtab_init(struct guardtab *t, uint32_t max_slots)
{
	*t = (struct guardtab){.max_slots = max_slots};
}

void guardtab_deinit(struct guardtab *t)
{
	free(t->v);
	free(t->free_slots);
	guardtab_init(t, t->max_slots);
}

size_t guardtab_first(const struct guardtab *t, taddr_t addr)
{
	size_t lo = 0, hi = t->nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct guard_entry *guardtab_overlap(const struct guardtab *t,
					   taddr_t start, taddr_t end)
{
	size_t i = guardtab_first(t, start);
	return i < t->nr && t->v[i].start < end ? &t->v[i] : NULL;
}

/* Room for one more entry, and for as many free slots as there are entries,
 * so that removing never needs memory. */
static int reserve(struct guardtab *t)
{
	if (t->nr < t->cap)
		return 0;
	size_t cap = t->cap ? t->cap * 2 : 64;
	struct guard_entry *v = realloc(t->v, cap * sizeof(*v));
	if (!v)
		return SMCO_NOMEM;
	t->v = v;
	uint32_t *f = realloc(t->free_slots, cap * sizeof(*f));
	if (!f)
		return SMCO_NOMEM;
	t->free_slots = f;
	t->cap = cap;
	return 0;
}

int guardtab_add(struct guardtab *t, taddr_t start, taddr_t end, uint32_t prot,
		 void *user, uint32_t *slot_ret)
{
	if (start >= end)
		return SMCO_FORMAT;
	size_t i = guardtab_first(t, start);
	if (i < t->nr && t->v[i].start < end)
		return SMCO_BUSY;
	if (!t->nr_free && t->next_slot >= t->max_slots)
		return SMCO_BUSY;
	if (reserve(t))
		return SMCO_NOMEM;
	uint32_t slot =
		t->nr_free ? t->free_slots[--t->nr_free] : t->next_slot++;
	memmove(t->v + i + 1, t->v + i, (t->nr - i) * sizeof(t->v[0]));
	t->v[i] = (struct guard_entry){start, end, prot, slot, user};
	t->nr++;
	*slot_ret = slot;
	return 0;
}

void guardtab_remove(struct guardtab *t, size_t index)
{
	t->free_slots[t->nr_free++] = t->v[index].slot;
	t->nr--;
	memmove(t->v + index, t->v + index + 1,
		(t->nr - index) * sizeof(t->v[0]));
}
