#include "supervisor/monitor/block.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/monitor/addr-index.h"

#define CHUNK_BLOCKS                                                           \
	((uint32_t)((BLOCK_CHUNK_BYTES - sizeof(struct block_chunk)) /         \
		    sizeof(struct block)))
#define NIL ADDR_INDEX_NONE /* number 0 is never a block */
_Static_assert(sizeof(struct block) == 88, "blocks are small");

struct block_set {
	struct nap_proc *proc;
	struct block_chunk **chunks;
	struct addr_index by_addr;
	uint32_t nr_chunks;
	uint32_t next_fresh; /* first number never handed out */
	uint32_t free_list;  /* chained by their plants */
	uint32_t nr;
};

static struct block *at(const struct block_set *s, uint32_t i)
{
	return &s->chunks[i / CHUNK_BLOCKS]->blocks[i % CHUNK_BLOCKS];
}

struct block_set *block_set_create(struct nap_proc *proc)
{
	struct block_set *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->proc = proc;
	s->next_fresh = 1;
	return s;
}

void block_set_destroy(struct block_set *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->nr_chunks; i++)
		munmap(s->chunks[i], BLOCK_CHUNK_BYTES);
	free(s->chunks);
	addr_index_deinit(&s->by_addr);
	free(s);
}

uint32_t block_set_nr(const struct block_set *s)
{
	return s->nr;
}

uint64_t block_set_bytes(const struct block_set *s)
{
	return s->nr_chunks * (BLOCK_CHUNK_BYTES + sizeof(void *)) +
	       addr_index_bytes(&s->by_addr);
}

/* Aligned to its size. NULL: memory is out. */
static struct block_chunk *map_chunk(void)
{
	const size_t size = BLOCK_CHUNK_BYTES;
	char *at = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	size_t before = -(uintptr_t)at % size;
	if (before)
		munmap(at, before);
	munmap(at + before + size, size - before);
	return (struct block_chunk *)(void *)(at + before);
}

static bool add_chunk(struct block_set *s)
{
	uint32_t nr = s->nr_chunks + 1;
	struct block_chunk **chunks = realloc(s->chunks, nr * sizeof(*chunks));
	if (!chunks)
		return false;
	s->chunks = chunks;
	struct block_chunk *c = map_chunk();
	if (!c)
		return false;
	c->proc = s->proc;
	c->first = s->nr_chunks * CHUNK_BLOCKS;
	chunks[s->nr_chunks] = c;
	s->nr_chunks = nr;
	return true;
}

static uint32_t take_index(struct block_set *s)
{
	uint32_t i = s->free_list;
	if (i != NIL) {
		s->free_list = at(s, i)->plant;
		return i;
	}
	i = s->next_fresh;
	if (i == UINT32_MAX ||
	    (i / CHUNK_BLOCKS >= s->nr_chunks && !add_chunk(s)))
		return NIL;
	s->next_fresh++;
	return i;
}

static void give_back(struct block_set *s, uint32_t i)
{
	at(s, i)->plant = s->free_list;
	s->free_list = i;
}

struct block *block_insert(struct block_set *s, taddr_t addr, uint64_t size)
{
	if (!size || addr + size < addr)
		return NULL;
	uint32_t i = take_index(s);
	if (i == NIL)
		return NULL;
	struct block *b = at(s, i);
	if (!addr_index_add(&s->by_addr, addr, i)) {
		give_back(s, i);
		return NULL;
	}
	memset(b, 0, sizeof(*b));
	b->addr = addr;
	b->size = size;
	s->nr++;
	return b;
}

struct block *block_find(struct block_set *s, taddr_t addr)
{
	uint32_t i = addr_index_get(&s->by_addr, addr);
	return i != NIL ? at(s, i) : NULL;
}

struct block *block_first_overlap(struct block_set *s, taddr_t start,
				  taddr_t end)
{
	uint32_t next, i = addr_index_search(&s->by_addr, start, &next);
	struct block *b = i != NIL ? at(s, i) : NULL;
	if (!b || b->addr + b->size <= start)
		b = next != NIL ? at(s, next) : NULL;
	return b && b->addr < end ? b : NULL;
}

struct block *block_next(struct block_set *s, const struct block *b)
{
	uint32_t next;
	addr_index_search(&s->by_addr, b->addr, &next);
	return next != NIL ? at(s, next) : NULL;
}

void block_remove(struct block_set *s, struct block *b)
{
	addr_index_remove(&s->by_addr, b->addr);
	give_back(s, block_number(b));
	s->nr--;
}
