#include "reports/hindex.h"

#include <stdlib.h>

#include "reports/shortage.h"

struct hindex_slot {
	uint32_t hash;
	uint32_t value_plus_1; /* 0 = empty */
};

void hindex_free(struct hindex *h)
{
	free(h->slots);
	*h = (struct hindex){0};
}

bool hindex_find(const struct hindex *h, uint64_t hash,
		 bool (*same)(const void *ctx, uint32_t value), const void *ctx,
		 uint32_t *ret)
{
	if (!h->cap)
		return false;
	size_t mask = h->cap - 1;
	for (size_t i = hash & mask; h->slots[i].value_plus_1;
	     i = (i + 1) & mask) {
		uint32_t value = h->slots[i].value_plus_1 - 1;
		if (h->slots[i].hash == (uint32_t)hash && same(ctx, value)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static void insert(struct hindex_slot *slots, size_t cap,
		   struct hindex_slot new)
{
	size_t i = new.hash &(cap - 1);
	while (slots[i].value_plus_1)
		i = (i + 1) & (cap - 1);
	slots[i] = new;
}

bool hindex_add(struct hindex *h, uint64_t hash, uint32_t value)
{
	if (h->nr + 1 > h->cap / 2) {
		size_t cap = h->cap ? h->cap * 2 : 64;
		struct hindex_slot *slots = calloc(cap, sizeof(*slots));
		if (!slots) {
			shortage_tell();
			return false;
		}
		for (size_t i = 0; i < h->cap; i++)
			if (h->slots[i].value_plus_1)
				insert(slots, cap, h->slots[i]);
		free(h->slots);
		h->slots = slots;
		h->cap = cap;
	}
	insert(h->slots, h->cap,
	       (struct hindex_slot){(uint32_t)hash, value + 1});
	h->nr++;
	return true;
}

uint64_t hindex_hash(uint64_t seed, const void *data, size_t n)
{
	/* FNV-1a, then a multiply and shift so that the low bits that pick
	 * the slot depend on all of it. */
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325ULL ^ seed;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3ULL;
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}
