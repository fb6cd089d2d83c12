/*
 * hindex.h - a hash index: finds numbers (positions in the caller's array) by
 * a hash and the caller's own comparison. Holds no keys, never removes.
 */
#ifndef SMCO_HINDEX_H
#define SMCO_HINDEX_H

#include "reports/base.h"

/* Zero-initialise, hindex_free at the end. */
struct hindex {
	/* private: */
	struct hindex_slot *slots;
	size_t cap; /* power of two */
	size_t nr;
};

void hindex_free(struct hindex *h);
/* The first entry with @hash for which @same(ctx, value) holds; false if
 * there is none. */
bool hindex_find(const struct hindex *h, uint64_t hash,
		 bool (*same)(const void *ctx, uint32_t value), const void *ctx,
		 uint32_t *ret);
/* False when out of memory; the index is unchanged then. @value must not be
 * UINT32_MAX. */
bool hindex_add(struct hindex *h, uint64_t hash, uint32_t value);

/* Hash of @n bytes, chained by @seed. */
uint64_t hindex_hash(uint64_t seed, const void *data, size_t n);

#endif
