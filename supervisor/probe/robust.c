#include "supervisor/probe/robust.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROBUST_MAX 2048 /* the kernel's ROBUST_LIST_LIMIT */
/* Around the head, in the thread descriptors of glibc and musl: the thread
 * id lies close before it, the rest of the descriptor after it. Not more: what
 * lies before the descriptor may be anybody's. */
#define AREA_BELOW 736
#define AREA_ABOVE 4096

/* What overlaps is one, lest stack pointers that move make ever more. */
static bool join(struct addr_range *v, taddr_t start, taddr_t end)
{
	if (v->start >= end || v->end <= start)
		return false;
	if (start < v->start)
		v->start = start;
	if (end > v->end)
		v->end = end;
	return true;
}

bool addr_ranges_add(struct addr_ranges *r, taddr_t start, taddr_t end)
{
	for (size_t i = 0; i < r->nr; i++)
		if (join(&r->v[i], start, end))
			return true;
	if (r->nr == r->cap) {
		size_t cap = r->cap ? r->cap * 2 : 32;
		struct addr_range *v = realloc(r->v, cap * sizeof(*v));
		if (!v)
			return false;
		r->v = v;
		r->cap = cap;
	}
	r->v[r->nr++] = (struct addr_range){start, end};
	return true;
}

bool addr_ranges_hit(const struct addr_ranges *r, taddr_t start, taddr_t end)
{
	for (size_t i = 0; i < r->nr; i++)
		if (r->v[i].start < end && r->v[i].end > start)
			return true;
	return false;
}

void addr_ranges_free(struct addr_ranges *r)
{
	free(r->v);
	memset(r, 0, sizeof(*r));
}

static void add_entry(struct addr_ranges *ret, taddr_t entry, int64_t offset)
{
	taddr_t futex = entry + (uint64_t)offset;
	addr_ranges_add(ret, entry, entry + 8);
	addr_ranges_add(ret, futex, futex + 4);
}

void robust_list_add(struct tproc *p, pid_t tid, struct addr_ranges *ret)
{
	struct {
		uint64_t next;
		int64_t futex_offset;
		uint64_t pending;
	} head;
	uint64_t at = 0, next;
	size_t len = 0;
	if (syscall(SYS_get_robust_list, tid, &at, &len) || !at ||
	    tmem_read(p, at, &head, sizeof(head)))
		return;
	addr_ranges_add(ret, at < AREA_BELOW ? 0 : at - AREA_BELOW,
			at + AREA_ABOVE);
	/* Bit 0 marks a priority inheriting one. */
	next = head.next & ~1ULL;
	for (int i = 0; i < ROBUST_MAX && next && next != at; i++) {
		add_entry(ret, next, head.futex_offset);
		if (tmem_read(p, next, &next, sizeof(next)))
			break;
		next &= ~1ULL;
	}
	if (head.pending)
		add_entry(ret, head.pending & ~1ULL, head.futex_offset);
}
