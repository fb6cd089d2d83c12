/*
 * Blocks that a forked copy has from before its fork. While the process that it
 * was copied from lives they share their pages and cannot be watched; when that
 * has ended, as a daemon's does, they are the copy's. Until then nothing is
 * kept of them but what the copy has let go of, so that a process that is made
 * for one request costs nothing.
 */
#include "supervisor/monitor/nap-private.h"

#include <stdlib.h>

/* What its parent allocated less than this before we heard of the copy may be
 * from after the fork. */
#define HEARD_NS (20 * NSEC_PER_MSEC)
/* One that has let go of more than this has nothing of its parent's. */
#define MAX_GONE 4096u
/* As many are taken over of one parent, by all of its copies. */
#define MAX_BLOCKS 32768u

struct nap_gone {
	taddr_t start, end;
};

void nap_copied(struct nap_proc *np, const struct nap_proc *parent,
		uint64_t now_ns)
{
	np->parent = parent;
	np->copied_ns = now_ns > HEARD_NS ? now_ns - HEARD_NS : 0;
}

void nap_forget_parent(struct nap_proc *np)
{
	free(np->gone);
	np->gone = NULL;
	np->nr_gone = np->cap_gone = 0;
	np->parent = NULL;
}

void nap_note_gone(struct nap_proc *np, taddr_t start, taddr_t end)
{
	if (!np->parent)
		return;
	if (np->nr_gone == np->cap_gone) {
		uint32_t cap = np->cap_gone ? np->cap_gone * 2 : 64;
		struct nap_gone *g =
			cap > MAX_GONE ? NULL
				       : realloc(np->gone, cap * sizeof(*g));
		if (!g) {
			nap_forget_parent(np);
			return;
		}
		np->gone = g;
		np->cap_gone = cap;
	}
	np->gone[np->nr_gone++] = (struct nap_gone){start, end};
}

static int by_start(const void *a, const void *b)
{
	taddr_t x = ((const struct nap_gone *)a)->start;
	taddr_t y = ((const struct nap_gone *)b)->start;
	return x < y ? -1 : x > y;
}

/* In order; each ends no sooner than those before it. */
static void sort_gone(struct nap_proc *np)
{
	if (np->nr_gone)
		qsort(np->gone, np->nr_gone, sizeof(*np->gone), by_start);
	for (uint32_t i = 1; i < np->nr_gone; i++)
		if (np->gone[i].end < np->gone[i - 1].end)
			np->gone[i].end = np->gone[i - 1].end;
}

static bool is_gone(const struct nap_proc *np, taddr_t start, taddr_t end)
{
	uint32_t lo = 0,
		 hi = np->nr_gone; /* those before lo start before end */
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (np->gone[mid].start < end)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && np->gone[lo - 1].end > start;
}

/* At most *left of them. */
static void take_over(struct nap_proc *np, const struct nap_proc *parent,
		      uint64_t now_ns, uint32_t *left)
{
	sort_gone(np);
	for (const struct block *b =
		     block_first_overlap(parent->blocks, 0, UINT64_MAX);
	     b && *left; b = block_next(parent->blocks, b)) {
		taddr_t end = b->addr + b->size;
		if (b->alloc_ns >= np->copied_ns || is_gone(np, b->addr, end) ||
		    block_first_overlap(np->blocks, b->addr, end))
			continue;
		struct block *own = nap_block_add(
			np, b->addr, b->size, b->stack, now_ns,
			b->flags & (BLOCK_MAPPED | BLOCK_ADOPTED));
		if (!own)
			return;
		own->alloc_ns = b->alloc_ns;
		--*left;
	}
}

/* Whose @np was a copy is perhaps not heard of yet: @child is one, too. */
static void hand_on(struct nap_proc *child, const struct nap_proc *np)
{
	child->parent = np->parent;
	if (child->copied_ns > np->copied_ns)
		child->copied_ns = np->copied_ns;
	for (uint32_t i = 0; child->parent && i < np->nr_gone; i++)
		nap_note_gone(child, np->gone[i].start, np->gone[i].end);
}

void nap_hand_down(struct nap_proc *np, uint64_t now_ns, bool gone)
{
	uint32_t left = MAX_BLOCKS;
	for (struct nap_proc *c = np->nap->procs; c; c = c->next) {
		if (c->parent != np)
			continue;
		if (gone)
			take_over(c, np, now_ns, &left);
		if (gone && np->parent)
			hand_on(c, np);
		else
			nap_forget_parent(c);
	}
}
