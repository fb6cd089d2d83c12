/*
 * Blocks that were recorded, so that their free is too. Every segment is an
 * array of buckets, an address has two in each; a removed slot is free again
 * at once, so there are no tombstones. Same-address calls are ordered by the
 * program itself (it may not free what malloc has not returned yet), so an
 * insert and a remove of one address never race.
 */
#include "agent.h"

#define SYS_mmap   9
#define SYS_munmap 11

static struct agent_bucket *bucket(uint64_t base, uint64_t log2, uint64_t hash)
{
	return (struct agent_bucket *)base + (hash & ((1ULL << log2) - 1));
}

static void filter_add(uint64_t addr)
{
	uint8_t *p = &agent_filter[AGENT_FILTER_INDEX(addr)];
	uint8_t n = load(p);
	while (n != 255 && !cas(p, &n, n + 1))
		;
}

/* A counter that was ever full stays: it no longer knows how many. */
static void filter_drop(uint64_t addr)
{
	uint8_t *p = &agent_filter[AGENT_FILTER_INDEX(addr)];
	uint8_t n = load(p);
	while (n != 255 && n != 0 && !cas(p, &n, n - 1))
		;
}

static bool bucket_insert(struct agent_bucket *b, uint64_t addr, uint64_t val)
{
	for (int i = 0; i < AGENT_BUCKET_SLOTS; i++) {
		uint64_t free_slot = 0;
		if (load(&b->key[i]) == 0 &&
		    cas(&b->key[i], &free_slot, addr)) {
			store(&b->val[i], val);
			return true;
		}
	}
	return false;
}

/* Any thread maps the next segment; of two at once, one gives its own back. */
static uint64_t segment_grow(unsigned nr)
{
	uint64_t none = 0;
	if (load(&agent_priv.no_calls))
		return 0;
	/* PROT_READ|WRITE, MAP_PRIVATE|ANONYMOUS|NORESERVE */
	int64_t ret = sys6(SYS_mmap, 0, AGENT_SEGMENT_BYTES(nr), 3, 0x4022,
			   (uint64_t)-1, 0);
	if (ret < 0)
		return 0;
	if (cas(&agent_priv.segments[nr], &none, (uint64_t)ret))
		return ret;
	sys3(SYS_munmap, ret, AGENT_SEGMENT_BYTES(nr), 0);
	return none;
}

bool table_insert(uint64_t addr, uint64_t val)
{
	uint64_t h1 = agent_hash1(addr), h2 = agent_hash2(addr);
	/* Counted before it can be found, so that no free overlooks it. */
	filter_add(addr);
	for (unsigned s = 0; s < AGENT_MAX_SEGMENTS; s++) {
		uint64_t base = load_acquire(&agent_priv.segments[s]);
		if (unlikely(!base))
			base = segment_grow(s);
		if (!base)
			break;
		uint64_t log2 = AGENT_SEGMENT_LOG2(s);
		if (bucket_insert(bucket(base, log2, h1), addr, val) ||
		    bucket_insert(bucket(base, log2, h2), addr, val))
			return true;
	}
	filter_drop(addr);
	return false;
}

static uint64_t *slot_find(uint64_t addr, uint64_t *val_ret)
{
	uint64_t h1 = agent_hash1(addr), h2 = agent_hash2(addr);
	for (unsigned s = 0; s < AGENT_MAX_SEGMENTS; s++) {
		uint64_t base = load_acquire(&agent_priv.segments[s]);
		if (!base)
			break;
		uint64_t log2 = AGENT_SEGMENT_LOG2(s);
		for (int k = 0; k < 2; k++) {
			struct agent_bucket *b =
				bucket(base, log2, k ? h2 : h1);
			for (int i = 0; i < AGENT_BUCKET_SLOTS; i++) {
				if (load(&b->key[i]) != addr)
					continue;
				*val_ret = load(&b->val[i]);
				return &b->key[i];
			}
		}
	}
	return NULL;
}

bool table_find(uint64_t addr, uint64_t *val_ret)
{
	return load(&agent_filter[AGENT_FILTER_INDEX(addr)]) &&
	       slot_find(addr, val_ret);
}

bool table_remove(uint64_t addr, uint64_t *val_ret)
{
	if (!load(&agent_filter[AGENT_FILTER_INDEX(addr)]))
		return false;
	uint64_t *slot = slot_find(addr, val_ret);
	/* A double free in the program: two threads here at once, one wins. */
	uint64_t expected = addr;
	if (!slot || !cas(slot, &expected, 0))
		return false;
	filter_drop(addr);
	return true;
}
