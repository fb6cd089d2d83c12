#include "supervisor/monitor/addr-index.h"

#include <stdlib.h>
#include <string.h>

#define LEAF_SIZE 128

struct addr_leaf {
	taddr_t addr[LEAF_SIZE];
	uint32_t value[LEAF_SIZE];
	uint32_t nr;
};

void addr_index_deinit(struct addr_index *ix)
{
	for (uint32_t i = 0; i < ix->nr; i++)
		free(ix->leaf[i]);
	free(ix->leaf);
	free(ix->first);
	*ix = (struct addr_index){0};
}

uint64_t addr_index_bytes(const struct addr_index *ix)
{
	return ix->nr * sizeof(struct addr_leaf) +
	       ix->cap * (sizeof(*ix->first) + sizeof(*ix->leaf));
}

/* How many of the @nr sorted addresses are @addr or below. Without branches
 * that nobody could predict. */
static uint32_t nr_until(const taddr_t *v, uint32_t nr, taddr_t addr)
{
	const taddr_t *at = v;
	while (nr > 1) {
		uint32_t half = nr / 2;
		at += at[half - 1] <= addr ? half : 0;
		nr -= half;
	}
	return (uint32_t)(at - v) + (nr && *at <= addr);
}

static uint32_t leaf_of(const struct addr_index *ix, taddr_t addr)
{
	return ix->nr > 1 ? nr_until(ix->first + 1, ix->nr - 1, addr) : 0;
}

static bool add_leaf(struct addr_index *ix, uint32_t at, taddr_t first)
{
	if (ix->nr == ix->cap) {
		uint32_t cap = ix->cap + ix->cap / 2 + 8;
		taddr_t *f = realloc(ix->first, cap * sizeof(*f));
		if (f)
			ix->first = f;
		struct addr_leaf **l = realloc(ix->leaf, cap * sizeof(*l));
		if (l)
			ix->leaf = l;
		if (!f || !l)
			return false;
		ix->cap = cap;
	}
	struct addr_leaf *leaf = malloc(sizeof(*leaf));
	if (!leaf)
		return false;
	leaf->nr = 0;
	memmove(ix->first + at + 1, ix->first + at,
		(ix->nr - at) * sizeof(*ix->first));
	memmove(ix->leaf + at + 1, ix->leaf + at,
		(ix->nr - at) * sizeof(struct addr_leaf *));
	ix->first[at] = first;
	ix->leaf[at] = leaf;
	ix->nr++;
	return true;
}

static void drop_leaf(struct addr_index *ix, uint32_t at)
{
	free(ix->leaf[at]);
	ix->nr--;
	memmove(ix->first + at, ix->first + at + 1,
		(ix->nr - at) * sizeof(*ix->first));
	memmove(ix->leaf + at, ix->leaf + at + 1,
		(ix->nr - at) * sizeof(struct addr_leaf *));
}

/* The last @nr of @from go behind those of @to. */
static void move_tail(struct addr_leaf *from, struct addr_leaf *to, uint32_t nr)
{
	from->nr -= nr;
	memcpy(to->addr + to->nr, from->addr + from->nr,
	       nr * sizeof(*to->addr));
	memcpy(to->value + to->nr, from->value + from->nr,
	       nr * sizeof(*to->value));
	to->nr += nr;
}

/* Room in the leaf for @addr, whose number is returned; negative: no memory. */
static int64_t leaf_with_room(struct addr_index *ix, taddr_t addr)
{
	if (!ix->nr && !add_leaf(ix, 0, 0))
		return -1;
	uint32_t at = leaf_of(ix, addr);
	struct addr_leaf *leaf = ix->leaf[at];
	if (leaf->nr < LEAF_SIZE)
		return at;
	/* Memory grows at its end, which in a leaf may be followed by what lies
	 * far above it: where that is parted, leaves become full. */
	uint32_t keep = nr_until(leaf->addr, LEAF_SIZE, addr);
	taddr_t first = addr;
	if (keep < LEAF_SIZE * 3 / 4) {
		keep = LEAF_SIZE / 2;
		first = leaf->addr[keep];
	}
	if (!add_leaf(ix, at + 1, first))
		return -1;
	move_tail(leaf, ix->leaf[at + 1], LEAF_SIZE - keep);
	return addr < first ? at : at + 1;
}

bool addr_index_add(struct addr_index *ix, taddr_t addr, uint32_t value)
{
	int64_t at = leaf_with_room(ix, addr);
	if (at < 0)
		return false;
	struct addr_leaf *leaf = ix->leaf[at];
	uint32_t i = nr_until(leaf->addr, leaf->nr, addr);
	memmove(leaf->addr + i + 1, leaf->addr + i,
		(leaf->nr - i) * sizeof(*leaf->addr));
	memmove(leaf->value + i + 1, leaf->value + i,
		(leaf->nr - i) * sizeof(*leaf->value));
	leaf->addr[i] = addr;
	leaf->value[i] = value;
	leaf->nr++;
	return true;
}

/* Leaf @at and the one behind it, if there is one and both fit into one. */
static bool merge(struct addr_index *ix, uint32_t at)
{
	if (at + 1 >= ix->nr)
		return false;
	struct addr_leaf *a = ix->leaf[at], *b = ix->leaf[at + 1];
	/* Not so tight that the next address would part them again. */
	if (a->nr + b->nr > LEAF_SIZE * 3 / 4)
		return false;
	move_tail(b, a, b->nr);
	drop_leaf(ix, at + 1);
	return true;
}

void addr_index_remove(struct addr_index *ix, taddr_t addr)
{
	if (!ix->nr)
		return;
	uint32_t at = leaf_of(ix, addr);
	struct addr_leaf *leaf = ix->leaf[at];
	uint32_t i = nr_until(leaf->addr, leaf->nr, addr);
	if (!i || leaf->addr[i - 1] != addr)
		return;
	leaf->nr--;
	memmove(leaf->addr + i - 1, leaf->addr + i,
		(leaf->nr - i + 1) * sizeof(*leaf->addr));
	memmove(leaf->value + i - 1, leaf->value + i,
		(leaf->nr - i + 1) * sizeof(*leaf->value));
	if (!leaf->nr)
		drop_leaf(ix, at);
	else if (leaf->nr < LEAF_SIZE / 2 && !merge(ix, at) && at)
		merge(ix, at - 1);
}

uint32_t addr_index_search(const struct addr_index *ix, taddr_t addr,
			   uint32_t *next_ret)
{
	*next_ret = ADDR_INDEX_NONE;
	if (!ix->nr)
		return ADDR_INDEX_NONE;
	uint32_t at = leaf_of(ix, addr);
	const struct addr_leaf *leaf = ix->leaf[at];
	uint32_t i = nr_until(leaf->addr, leaf->nr, addr);
	if (i < leaf->nr)
		*next_ret = leaf->value[i];
	else if (at + 1 < ix->nr)
		*next_ret = ix->leaf[at + 1]->value[0];
	if (i)
		return leaf->value[i - 1];
	return at ? ix->leaf[at - 1]->value[ix->leaf[at - 1]->nr - 1]
		  : ADDR_INDEX_NONE;
}

uint32_t addr_index_get(const struct addr_index *ix, taddr_t addr)
{
	if (!ix->nr)
		return ADDR_INDEX_NONE;
	const struct addr_leaf *leaf = ix->leaf[leaf_of(ix, addr)];
	uint32_t i = nr_until(leaf->addr, leaf->nr, addr);
	return i && leaf->addr[i - 1] == addr ? leaf->value[i - 1]
					      : ADDR_INDEX_NONE;
}
