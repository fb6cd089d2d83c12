#include "supervisor/monitor/block.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_SHIFT  10
#define CHUNK_BLOCKS (1u << CHUNK_SHIFT)
#define NIL	     0 /* index 0 is never a block */

struct block_set {
	struct block **chunks;
	uint32_t nr_chunks;
	uint32_t next_fresh; /* first index never handed out */
	uint32_t free_list;  /* chained by left */
	uint32_t root;
	uint32_t nr;
};

static struct block *at(const struct block_set *s, uint32_t i)
{
	return &s->chunks[i >> CHUNK_SHIFT][i & (CHUNK_BLOCKS - 1)];
}

/* The treap's priorities are a hash of the index: no need to store them. */
static uint32_t priority(uint32_t i)
{
	uint32_t x = i * 0x9e3779b1u;
	x ^= x >> 15;
	x *= 0x85ebca77u;
	return x ^ (x >> 13);
}

struct block_set *block_set_create(void)
{
	struct block_set *s = calloc(1, sizeof(*s));
	if (s)
		s->next_fresh = 1;
	return s;
}

void block_set_destroy(struct block_set *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nr_chunks; i++)
		free(s->chunks[i]);
	free(s->chunks);
	free(s);
}

uint32_t block_set_nr(const struct block_set *s)
{
	return s->nr;
}

uint64_t block_set_bytes(const struct block_set *s)
{
	return (uint64_t)s->nr_chunks *
	       (CHUNK_BLOCKS * sizeof(struct block) + sizeof(void *));
}

static uint32_t take_index(struct block_set *s)
{
	uint32_t i = s->free_list;
	if (i != NIL) {
		s->free_list = at(s, i)->left;
		return i;
	}
	i = s->next_fresh;
	if (i == UINT32_MAX)
		return NIL;
	if (i >> CHUNK_SHIFT >= s->nr_chunks) {
		struct block **chunks = realloc(
			s->chunks, (s->nr_chunks + 1) * sizeof(*chunks));
		if (!chunks)
			return NIL;
		s->chunks = chunks;
		chunks[s->nr_chunks] =
			malloc(CHUNK_BLOCKS * sizeof(struct block));
		if (!chunks[s->nr_chunks])
			return NIL;
		s->nr_chunks++;
	}
	s->next_fresh++;
	return i;
}

/* Split @root into blocks below @addr and the rest. */
static void split(struct block_set *s, uint32_t root, taddr_t addr,
		  uint32_t *lo, uint32_t *hi)
{
	while (root != NIL) {
		struct block *b = at(s, root);
		if (b->addr < addr) {
			*lo = root;
			lo = &b->right;
			root = b->right;
		} else {
			*hi = root;
			hi = &b->left;
			root = b->left;
		}
	}
	*lo = NIL;
	*hi = NIL;
}

static uint32_t join(struct block_set *s, uint32_t lo, uint32_t hi)
{
	uint32_t root = NIL;
	uint32_t *link = &root;
	while (lo != NIL && hi != NIL) {
		if (priority(lo) > priority(hi)) {
			*link = lo;
			link = &at(s, lo)->right;
			lo = *link;
		} else {
			*link = hi;
			link = &at(s, hi)->left;
			hi = *link;
		}
	}
	*link = lo != NIL ? lo : hi;
	return root;
}

struct block *block_insert(struct block_set *s, taddr_t addr, uint64_t size)
{
	if (!size || addr + size < addr)
		return NULL;
	uint32_t i = take_index(s);
	if (i == NIL)
		return NULL;
	struct block *b = at(s, i);
	memset(b, 0, sizeof(*b));
	b->addr = addr;
	b->size = size;
	b->index = i;
	uint32_t *link = &s->root;
	while (*link != NIL && priority(*link) > priority(i)) {
		struct block *p = at(s, *link);
		link = addr < p->addr ? &p->left : &p->right;
	}
	split(s, *link, addr, &b->left, &b->right);
	*link = i;
	s->nr++;
	return b;
}

struct block *block_find(struct block_set *s, taddr_t addr)
{
	uint32_t i = s->root;
	while (i != NIL) {
		struct block *b = at(s, i);
		if (b->addr == addr)
			return b;
		i = addr < b->addr ? b->left : b->right;
	}
	return NULL;
}

struct block *block_first_overlap(struct block_set *s, taddr_t start,
				  taddr_t end)
{
	struct block *best = NULL;
	uint32_t i = s->root;
	while (i != NIL) {
		struct block *b = at(s, i);
		if (b->addr + b->size > start) {
			if (b->addr < end)
				best = b;
			i = b->left;
		} else {
			i = b->right;
		}
	}
	return best;
}

struct block *block_next(struct block_set *s, const struct block *b)
{
	struct block *best = NULL;
	uint32_t i = s->root;
	while (i != NIL) {
		struct block *c = at(s, i);
		if (c->addr > b->addr) {
			best = c;
			i = c->left;
		} else {
			i = c->right;
		}
	}
	return best;
}

void block_remove(struct block_set *s, struct block *b)
{
	uint32_t *link = &s->root;
	while (*link != b->index) {
		struct block *p = at(s, *link);
		link = b->addr < p->addr ? &p->left : &p->right;
	}
	*link = join(s, b->left, b->right);
	b->left = s->free_list;
	s->free_list = b->index;
	s->nr--;
}
