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

static void count_up(uint8_t *p)
{
	uint8_t n = load(p);
	while (n != 255 && !cas(p, &n, n + 1))
		;
}

/* A counter that was ever full stays: it no longer knows how many. */
static void count_down(uint8_t *p)
{
	uint8_t n = load(p);
	while (n != 255 && n != 0 && !cas(p, &n, n - 1))
		;
}

static uint8_t *filter_count(uint64_t addr)
{
	return &agent_filter[AGENT_FILTER_INDEX(addr)];
}

static uint8_t *segment_count(unsigned nr, uint64_t base, uint64_t addr)
{
	return (uint8_t *)(base + agent_segment_count(nr, addr));
}

/* Counted, in @count, before it can be found, so that no free overlooks it. */
static bool bucket_insert(struct agent_bucket *b, uint8_t *count, uint64_t addr,
			  uint64_t val)
{
	for (int i = 0; i < AGENT_BUCKET_SLOTS; i++) {
		uint64_t free_slot = 0;
		if (load(&b->key[i]))
			continue;
		count_up(count);
		if (cas(&b->key[i], &free_slot, addr)) {
			store(&b->val[i], val);
			return true;
		}
		count_down(count);
	}
	return false;
}

/* Any thread maps the next segment; of two at once, one gives its own back. */
static uint64_t segment_grow(unsigned nr)
{
	uint64_t none = 0, base = load_acquire(&agent_priv.segments[nr]);
	if (base || load(&agent_priv.no_calls))
		return base;
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

static unsigned nr_segments(void)
{
	unsigned n = 0;
	while (n < AGENT_MAX_SEGMENTS && load_acquire(&agent_priv.segments[n]))
		n++;
	return n;
}

static bool segment_insert(unsigned nr, uint64_t addr, uint64_t val)
{
	uint64_t base = load(&agent_priv.segments[nr]);
	uint64_t log2 = AGENT_SEGMENT_LOG2(nr);
	uint8_t *count = segment_count(nr, base, addr);
	return bucket_insert(bucket(base, log2, agent_hash1(addr)), count, addr,
			     val) ||
	       bucket_insert(bucket(base, log2, agent_hash2(addr)), count, addr,
			     val);
}

/*
 * The last segment is larger than all others together, and the only one with
 * much room: each of the others would be waited for in vain. For the same
 * reason most are found there.
 */
bool table_insert(uint64_t addr, uint64_t val)
{
	unsigned nr = nr_segments();
	/* Counted before it can be found, so that no free overlooks it. */
	count_up(filter_count(addr));
	for (unsigned s = nr; s-- > 0;)
		if (segment_insert(s, addr, val))
			return true;
	for (unsigned s = nr; s < AGENT_MAX_SEGMENTS && segment_grow(s); s++)
		if (segment_insert(s, addr, val))
			return true;
	count_down(filter_count(addr));
	return false;
}

static uint64_t *slot_find(uint64_t addr, uint64_t *val_ret,
			   uint8_t **count_ret)
{
	uint64_t hash[2] = {agent_hash1(addr), agent_hash2(addr)};
	for (unsigned s = nr_segments(); s-- > 0;) {
		uint64_t base = load(&agent_priv.segments[s]);
		*count_ret = segment_count(s, base, addr);
		if (!load(*count_ret))
			continue;
		for (int k = 0; k < 2; k++) {
			struct agent_bucket *b =
				bucket(base, AGENT_SEGMENT_LOG2(s), hash[k]);
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
	uint8_t *count;
	return load(filter_count(addr)) && slot_find(addr, val_ret, &count);
}

bool table_remove(uint64_t addr, uint64_t *val_ret)
{
	uint8_t *count;
	if (!load(filter_count(addr)))
		return false;
	uint64_t *slot = slot_find(addr, val_ret, &count);
	/* A double free in the program: two threads here at once, one wins. */
	uint64_t expected = addr;
	if (!slot || !cas(slot, &expected, 0))
		return false;
	count_down(count);
	count_down(filter_count(addr));
	return true;
}
