/*
 * block.h - the memory blocks that are alive in one process: what the NAP
 * monitor watches. An ordered set by address (blocks from a pool),
 * because blocks are looked up by their start when they are freed and by range
 * when mappings go. Blocks never overlap: what is inserted over older blocks
 * replaces them (their end was not seen).
 *
 * Memory: one struct block per live block, from chunks that are reused, never
 * moved: a pointer to a block is valid until block_remove(). Twelve to twenty
 * bytes more for the index. What all blocks of a chunk have in common stands
 * once, where the chunk begins.
 */
#ifndef SMCO_BLOCK_H
#define SMCO_BLOCK_H

#include "reports/base.h"

struct nap_proc;

enum block_state {
	BLOCK_IDLE,   /* not looked at; its plant's delay runs */
	BLOCK_SAMPLE, /* a few pages are armed */
	BLOCK_WIDEN,  /* more and more pages are being armed */
	BLOCK_WATCH,  /* every page is armed: a quiet block is a nap */
};

enum block_flags {
	BLOCK_IN_NAP = 1 << 0,	   /* reported, not ended yet */
	BLOCK_EVER_SEEN = 1 << 1,  /* an access was seen at least once */
	BLOCK_WATCHED = 1 << 2,	   /* was in BLOCK_WATCH at least once */
	BLOCK_ARMED_ONCE = 1 << 3, /* had at least one turn */
	BLOCK_STUCK = 1 << 4,	 /* its bits cannot be reset (shared, locked) */
	BLOCK_MAPPED = 1 << 5,	 /* a mapping, not a heap block */
	BLOCK_ADOPTED = 1 << 6,	 /* existed before we came */
	BLOCK_GUARDED = 1 << 7,	 /* a guard waits for the end of its nap */
	BLOCK_REPORTED = 1 << 8, /* at least one nap of it was reported */
	BLOCK_SETTLED = 1 << 10, /* its reservation counts as long quiet */
	BLOCK_AGED = 1 << 11,	 /* a mark of others was in the way once */
	BLOCK_UNASKED = 1 << 12, /* one may have been there when it was armed */
	BLOCK_SHADED = 1 << 13,	 /* sampling stacks touches it, nap-shade.c */
	/* More than its share is held for it, if all; under guards: it has a
	 * claim to all of it. */
	BLOCK_DEAR = 1 << 14,
	BLOCK_FRESH = 1 << 9, /* arming saw it untouched since it was mapped */
};

#define BLOCK_MOST_THEIRS 15u

struct block {
	taddr_t addr;
	uint64_t size;		/* bytes */
	uint64_t alloc_ns;	/* session time; 0 = before we came */
	uint64_t armed_ns;	/* the current sample or widening began */
	uint64_t full_ns;	/* every page armed and quiet since */
	uint64_t touched_lo_ns; /* the last access seen is not before this */
	uint64_t checked_ns;	/* last look at it; quiet up to here */
	uint32_t stack;		/* id of its allocation's stack; 0 = unknown */
	uint32_t plant; /* handle at the controller; the next free block */
	union {
		uint32_t nr_clear; /* pages whose bit is clear by our doing */
		uint32_t held_ns;  /* reserved for guards, where they watch */
	};
	uint32_t cursor;     /* pages armed so far while widening */
	uint32_t witness;    /* page where the last access was seen */
	uint32_t last_stack; /* who was seen at the last access; 0 = unknown */
	uint32_t queue_pos;  /* place among the blocks under watch */
	uint16_t flags;	     /* enum block_flags */
	uint8_t state : 4;   /* enum block_state */
	uint8_t level : 4;   /* how often its samples missed what was used */
	uint8_t nr_failed : 4; /* times in a row that it could not be armed */
	uint8_t nr_theirs : 4; /* of nr_clear: reset by others, or charged to
				* them; at most BLOCK_MOST_THEIRS */
};

#define BLOCK_CHUNK_BYTES 65536UL /* also its alignment */

struct block_chunk {
	struct nap_proc *proc;
	uint32_t first; /* number of the first block */
	struct block blocks[];
};

static inline const struct block_chunk *block_chunk(const struct block *b)
{
	uintptr_t at = (uintptr_t)b;
	return (const void *)((const char *)b - at % BLOCK_CHUNK_BYTES);
}
/* Whose it is. */
static inline struct nap_proc *block_proc(const struct block *b)
{
	return block_chunk(b)->proc;
}
/* Different for each live block of a process, reused later. */
static inline uint32_t block_number(const struct block *b)
{
	const struct block_chunk *c = block_chunk(b);
	return c->first + (uint32_t)(b - c->blocks);
}

/* Pages that overlap the block: [first, first + n). */
static inline taddr_t block_first_page(const struct block *b)
{
	return b->addr & ~(TPAGE_SIZE - 1);
}
static inline taddr_t block_end_page(const struct block *b)
{
	return (b->addr + b->size + TPAGE_SIZE - 1) & ~(TPAGE_SIZE - 1);
}
static inline uint64_t block_nr_pages(const struct block *b)
{
	return (block_end_page(b) - block_first_page(b)) / TPAGE_SIZE;
}

struct block_set;

/* Of blocks of @proc. */
struct block_set *block_set_create(struct nap_proc *proc);
void block_set_destroy(struct block_set *s); /* frees the blocks, too */
uint32_t block_set_nr(const struct block_set *s);

/*
 * A new zeroed block [addr, addr + size). The range must be free: see
 * block_first_overlap. NULL when out of memory or @size is 0.
 */
struct block *block_insert(struct block_set *s, taddr_t addr, uint64_t size);
struct block *block_find(struct block_set *s, taddr_t addr); /* exact start */
/* The lowest block that overlaps [start, end), or NULL. */
struct block *block_first_overlap(struct block_set *s, taddr_t start,
				  taddr_t end);
struct block *block_next(struct block_set *s, const struct block *b);
void block_remove(struct block_set *s, struct block *b);
/* Bytes the set needs for itself, for the memory figure in the report. */
uint64_t block_set_bytes(const struct block_set *s);

#endif
