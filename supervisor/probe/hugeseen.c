#include "supervisor/probe/hugeseen.h"

#include <stdlib.h>

#define HUGE_SHIFT 21

/* key is the address >> HUGE_SHIFT, plus 1; 0 is an empty slot. A dropped
 * entry keeps its key with seen_ns 0. */
struct hugeseen_entry {
	uint64_t key;
	uint64_t seen_ns;
};

static struct hugeseen_entry *find(const struct hugeseen *h, uint64_t key)
{
	size_t mask = h->nr_slots - 1;
	size_t i = (size_t)(key * 0x9e3779b97f4a7c15ULL >> 32) & mask;
	while (h->entries[i].key && h->entries[i].key != key)
		i = (i + 1) & mask;
	return &h->entries[i];
}

/* Double, leaving out what was dropped. */
static bool grow(struct hugeseen *h)
{
	struct hugeseen bigger = {.nr_slots =
					  h->nr_slots ? h->nr_slots * 2 : 64,
				  .lost_ns = h->lost_ns};
	bigger.entries = calloc(bigger.nr_slots, sizeof(*bigger.entries));
	if (!bigger.entries)
		return false;
	for (size_t i = 0; i < h->nr_slots; i++) {
		if (!h->entries[i].key || !h->entries[i].seen_ns)
			continue;
		*find(&bigger, h->entries[i].key) = h->entries[i];
		bigger.nr_used++;
	}
	free(h->entries);
	*h = bigger;
	return true;
}

void hugeseen_deinit(struct hugeseen *h)
{
	free(h->entries);
	*h = (struct hugeseen){0};
}

void hugeseen_note(struct hugeseen *h, taddr_t addr, uint64_t now_ns)
{
	if (h->nr_used * 4 >= h->nr_slots * 3 && !grow(h)) {
		h->lost_ns = now_ns;
		return;
	}
	struct hugeseen_entry *e = find(h, (addr >> HUGE_SHIFT) + 1);
	if (!e->key) {
		e->key = (addr >> HUGE_SHIFT) + 1;
		h->nr_used++;
	}
	e->seen_ns = now_ns;
}

uint64_t hugeseen_last(const struct hugeseen *h, taddr_t addr)
{
	uint64_t seen = 0;
	if (h->nr_slots)
		seen = find(h, (addr >> HUGE_SHIFT) + 1)->seen_ns;
	return seen > h->lost_ns ? seen : h->lost_ns;
}

void hugeseen_drop(struct hugeseen *h, taddr_t start, taddr_t end)
{
	uint64_t first = (start + (1ULL << HUGE_SHIFT) - 1) >> HUGE_SHIFT;
	uint64_t last = end >> HUGE_SHIFT;
	if (!h->nr_slots || first >= last)
		return;
	if (last - first < h->nr_slots) {
		for (uint64_t k = first; k < last; k++)
			find(h, k + 1)->seen_ns = 0;
		return;
	}
	for (size_t i = 0; i < h->nr_slots; i++)
		if (h->entries[i].key > first && h->entries[i].key <= last)
			h->entries[i].seen_ns = 0;
}
