/*
 * The set of blocks against a plain table of them: found by start and by
 * range, in order, through thousands of random insertions and removals.
 */
#include <string.h>

#include "supervisor/monitor/block.h"
#include "t/unit/tap.h"

#define PLACES 4096 /* where a block may begin, a page apart */
#define STEPS  200000
#define BASE   0x7f0000000000ull
/* Never looked into. */
#define OWNER ((struct nap_proc *)0x1000)

static uint64_t size_of[PLACES]; /* 0 = no block begins there */
static struct block *block_of[PLACES];

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252ull;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x >> 11;
}

static taddr_t addr_of(unsigned k)
{
	return BASE + k * TPAGE_SIZE + k % 16 * 16;
}

/* The lowest that overlaps [start, end), by looking at all. */
static struct block *plain_overlap(taddr_t start, taddr_t end)
{
	for (unsigned k = 0; k < PLACES; k++)
		if (size_of[k] && addr_of(k) < end &&
		    addr_of(k) + size_of[k] > start)
			return block_of[k];
	return NULL;
}

static unsigned nr_wrong;

static void look(struct block_set *s)
{
	unsigned k = next_random() % PLACES;
	taddr_t start = addr_of(k) + next_random() % 3 - 1;
	taddr_t end = start + 1 + next_random() % (8 * TPAGE_SIZE);
	nr_wrong +=
		block_find(s, addr_of(k)) != (size_of[k] ? block_of[k] : NULL);
	nr_wrong +=
		block_first_overlap(s, start, end) != plain_overlap(start, end);
}

static unsigned insert(struct block_set *s, unsigned k)
{
	uint64_t size = 1 + next_random() % (4 * TPAGE_SIZE);
	if (plain_overlap(addr_of(k), addr_of(k) + size))
		return 0;
	block_of[k] = block_insert(s, addr_of(k), size);
	if (!block_of[k])
		return 0;
	size_of[k] = size;
	block_of[k]->stack = k;
	return 1;
}

/* All of them, in order, each with what was written into it. */
static unsigned walk(struct block_set *s)
{
	unsigned nr = 0, k = 0;
	struct block *b = block_first_overlap(s, 0, UINT64_MAX);
	for (; b; b = block_next(s, b), k++, nr++) {
		while (k < PLACES && !size_of[k])
			k++;
		nr_wrong += block_proc(b) != OWNER;
		if (k == PLACES || b != block_of[k] || b->stack != k ||
		    b->addr != addr_of(k) || b->size != size_of[k])
			nr_wrong++;
	}
	return nr;
}

/*
 * Memory that only grows at its end, with something else far above it: an entry
 * of the index takes little more than its twelve bytes. No two blocks have the
 * same number.
 */
static void test_growing(void)
{
	enum { GROWN = 20000 };
	static bool is_taken[GROWN + 2];
	unsigned nr_bad = 0;
	struct block_set *s = block_set_create(OWNER);
	block_insert(s, BASE + (1ULL << 40), 4096);
	for (unsigned k = 0; k < GROWN; k++) {
		struct block *b = block_insert(s, BASE + k * 8192ULL, 4096);
		uint32_t number = b ? block_number(b) : GROWN + 2;
		if (number > GROWN + 1 || is_taken[number])
			nr_bad++;
		else
			is_taken[number] = true;
	}
	check_int(nr_bad, 0);
	check(block_set_bytes(s) <
	      GROWN * (sizeof(struct block) + 14) + 2 * BLOCK_CHUNK_BYTES);
	block_set_destroy(s);
}

int main(void)
{
	struct block_set *s = block_set_create(OWNER);
	unsigned nr = 0, most = 0;
	check(s != NULL);
	check(block_insert(s, BASE, 0) == NULL);
	check(block_insert(s, UINT64_MAX - 10, 100) == NULL);
	check(block_first_overlap(s, 0, UINT64_MAX) == NULL);
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned k = next_random() % PLACES;
		if (!size_of[k]) {
			nr += insert(s, k);
		} else if (next_random() % 3 == 0) {
			block_remove(s, block_of[k]);
			size_of[k] = 0;
			nr--;
		}
		if (nr > most)
			most = nr;
		if (i % 64 == 0)
			look(s);
	}
	check(most > 1100); /* of more than one chunk */
	check_int(block_set_nr(s), nr);
	check_int(walk(s), nr);
	/* The index becomes small again with what is in it. */
	uint64_t chunks = most * sizeof(struct block) + BLOCK_CHUNK_BYTES;
	for (unsigned k = 0; k < PLACES; k++)
		if (size_of[k] && k % 8) {
			block_remove(s, block_of[k]);
			size_of[k] = 0;
		}
	check(block_set_bytes(s) < chunks + 3 * block_set_nr(s) * 12 + 4096);
	for (unsigned k = 0; k < PLACES; k++)
		if (size_of[k])
			block_remove(s, block_of[k]);
	check_int(block_set_nr(s), 0);
	check(block_first_overlap(s, 0, UINT64_MAX) == NULL);
	check_int(nr_wrong, 0);
	/* What was given back is used again; the index takes two times what
	 * its entries do, at the most, and some. */
	memset(size_of, 0, sizeof(size_of));
	for (nr = 0; nr < most;)
		nr += insert(s, next_random() % PLACES);
	check(block_set_bytes(s) < chunks + 2 * most * 12 + 4096);
	block_set_destroy(s);
	test_growing();
	return tap_done();
}
