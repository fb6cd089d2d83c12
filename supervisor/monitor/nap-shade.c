/*
 * Stacks are sampled by copying so many bytes from the stack pointer on, also
 * beyond the stack's end: a block directly above it has the accessed bits of
 * its first pages set by that. These pages are its shade. What is said of the
 * block is what its other pages say; the shade is reset and looked at by
 * itself, seldom, and its bits are evidence of use where no sample explains
 * them. A sample can be read a moment after it has touched them, so that it
 * takes as long until a bit is known not to be its; meanwhile no nap begins.
 * Where samples come all the time the shade is not watched, and naps say so.
 *
 * Few blocks have one: they stand in a list.
 */
#include "supervisor/monitor/nap-private.h"

#include <stdlib.h>

#define LOOK_NS (100 * NSEC_PER_MSEC)
/* By then a sample that was being taken at a look has been read. */
#define WAIT_NS (200 * NSEC_PER_MSEC)
/* A sample tells when it began, which is before it copies. */
#define COPY_NS	  (10 * NSEC_PER_MSEC)
#define FORGET_NS (10 * NSEC_PER_SEC)
#define HUGE_SIZE (2ULL << 20)

struct nap_shade {
	struct block *block;
	uint64_t nr;	     /* pages from its first on, not more than it has */
	uint64_t sampled_ns; /* the last copy that reached it */
	uint64_t armed_ns;   /* its pages were reset then; 0 = they are not */
	uint64_t clear_ns;   /* and seen untouched last */
	uint64_t dark_ns;    /* an access up to then would not be known */
	uint64_t doubt_ns;   /* then seen touched, by nobody known; 0 = not */
	uint64_t due_ns;
	bool is_dark; /* a copy reached it after .clear_ns */
};

static struct nap_shade *shade_of(const struct block *b)
{
	struct nap_proc *np = block_proc(b);
	if (b->flags & BLOCK_SHADED)
		for (uint32_t i = 0; i < np->nr_shades; i++)
			if (np->shade[i].block == b)
				return &np->shade[i];
	return NULL;
}

uint64_t nap_shade_pages(const struct block *b)
{
	const struct nap_shade *s = shade_of(b);
	return s ? s->nr : 0;
}

bool nap_shade_was_dark(const struct block *b, uint64_t since_ns)
{
	const struct nap_shade *s = shade_of(b);
	return s && (s->sampled_ns >= since_ns || s->dark_ns >= since_ns);
}

void nap_shade_forget(struct block *b)
{
	struct nap_proc *np = block_proc(b);
	struct nap_shade *s = shade_of(b);
	b->flags &= (uint16_t)~BLOCK_SHADED;
	if (s)
		*s = np->shade[--np->nr_shades];
}

/* What the rest of it says would say little. */
static bool hides(const struct nap_shade *s)
{
	return 2 * s->nr > block_nr_pages(s->block);
}

bool nap_shade_hides(struct block *b, uint64_t now_ns)
{
	const struct nap_shade *s = shade_of(b);
	if (!s || !hides(s))
		return false;
	if (now_ns < s->sampled_ns + FORGET_NS)
		return true;
	nap_shade_forget(b);
	return false;
}

/* Others may lie in the page where it begins, and their marks would be lost. */
static struct page_range range_of(const struct nap_shade *s)
{
	struct block *b = s->block;
	taddr_t first = block_first_page(b);
	struct page_range r = {
		.start = first,
		.end = first + s->nr * TPAGE_SIZE,
		.user = b,
		.armed_ns = s->armed_ns,
	};
	if (block_first_overlap(block_proc(b)->blocks, first, b->addr + 1) != b)
		r.start += TPAGE_SIZE;
	return r;
}

/* What was armed was counted from another page on. */
static void arm_anew(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	if (b->flags & BLOCK_IN_NAP)
		nap_end(b, b->checked_ns, b->checked_ns, NAP_UNWATCHED, 0, -1);
	nap_queue_remove(&np->queue, b);
	b->state = BLOCK_IDLE;
	b->cursor = 0;
	control_disarm(np->nap->control, b->plant, now_ns,
		       now_ns + np->nap->window_ns);
}

static void grow(struct nap_shade *s, uint64_t nr, uint64_t now_ns)
{
	struct block *b = s->block;
	if (nr > block_nr_pages(b))
		nr = block_nr_pages(b);
	if (nr <= s->nr)
		return;
	s->nr = nr;
	s->armed_ns = 0;
	b->witness = 0;
	if (b->state != BLOCK_IDLE && (hides(s) || b->state != BLOCK_WATCH))
		arm_anew(b, now_ns);
}

/* A huge page has one bit. */
static void grow_over_huge(struct nap_shade *s, const struct page_range *r,
			   uint64_t now_ns)
{
	taddr_t end = (r->end + HUGE_SIZE - 1) & ~(HUGE_SIZE - 1);
	if (r->nr_huge)
		grow(s, (end - block_first_page(s->block)) / TPAGE_SIZE,
		     now_ns);
}

static void reset(struct nap_shade *s, struct page_range *r)
{
	struct nap_proc *np = block_proc(s->block);
	uint64_t now_ns = np->nap->params.clock();
	int rc = np->primary->ops->arm(np->primary, r, 1);
	bool is_reset = !rc && r->nr_reset != UINT32_MAX && !r->nr_stuck &&
			!r->nr_waiting;
	s->armed_ns = is_reset ? now_ns : 0;
	s->clear_ns = now_ns;
	s->doubt_ns = 0;
	s->is_dark = s->sampled_ns + COPY_NS >= now_ns;
}

/* It was the program, between .clear_ns and .doubt_ns. */
static void used(struct nap_shade *s, uint64_t p_ns, uint64_t now_ns)
{
	struct block *b = s->block;
	uint64_t lo_ns = s->clear_ns;
	if (b->flags & BLOCK_IN_NAP)
		nap_end(b, lo_ns < b->checked_ns ? lo_ns : b->checked_ns,
			s->doubt_ns, 0, 0, -1);
	if (b->state == BLOCK_WATCH && b->full_ns > s->doubt_ns)
		return; /* before that */
	if (b->state != BLOCK_IDLE) {
		nap_block_hit(b, lo_ns, now_ns, p_ns);
		return;
	}
	b->touched_lo_ns = lo_ns;
	b->flags |= BLOCK_EVER_SEEN;
}

static void look_at(struct nap_shade *s, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(s->block);
	struct page_range r = range_of(s);
	s->due_ns = now_ns + LOOK_NS;
	if (r.start >= r.end || np->primary->ops->collect(np->primary, &r, 1))
		return;
	grow_over_huge(s, &r, now_ns);
	if (!s->armed_ns) {
		r = range_of(s);
		reset(s, &r);
		return;
	}
	if (!r.nr_touched) {
		s->clear_ns = now_ns;
		s->doubt_ns = 0;
		s->is_dark = s->sampled_ns + COPY_NS >= now_ns;
		return;
	}
	if (!s->is_dark && !s->doubt_ns)
		s->doubt_ns = now_ns;
	if (!s->is_dark && now_ns < s->doubt_ns + WAIT_NS)
		return;
	uint64_t p_ns = r.nr_touched * nap_touch_cost(np);
	ledger_charge(np->nap->ledger, LEDGER_TOUCH, NAP_MONITOR, p_ns);
	if (s->is_dark)
		s->dark_ns = now_ns;
	else
		used(s, p_ns, now_ns);
	reset(s, &r);
}

/* May move the list. */
static void read_samples(const struct nap *n)
{
	if (n->params.read_samples)
		n->params.read_samples(n->params.ctx);
}

static bool is_due(const struct nap_shade *s, uint64_t now_ns)
{
	return now_ns >= s->due_ns && !hides(s);
}

void nap_shade_look(struct nap_proc *np, uint64_t now_ns)
{
	bool any = false;
	for (uint32_t i = 0; i < np->nr_shades; i++)
		any |= is_due(&np->shade[i], now_ns);
	if (any)
		read_samples(np->nap);
	for (uint32_t i = 0; i < np->nr_shades; i++)
		if (is_due(&np->shade[i], now_ns))
			look_at(&np->shade[i], now_ns);
}

bool nap_shade_allows(struct block *b, uint64_t now_ns)
{
	if (!(b->flags & BLOCK_SHADED))
		return true;
	read_samples(block_proc(b)->nap);
	struct nap_shade *s = shade_of(b);
	look_at(s, now_ns);
	return b->state == BLOCK_WATCH && !s->doubt_ns;
}

static struct nap_shade *add(struct block *b)
{
	struct nap_proc *np = block_proc(b);
	if (np->nr_shades == np->cap_shades) {
		uint32_t cap = np->cap_shades ? 2 * np->cap_shades : 16;
		struct nap_shade *more =
			realloc(np->shade, cap * sizeof(*more));
		if (!more)
			return NULL;
		np->shade = more;
		np->cap_shades = cap;
	}
	b->flags |= BLOCK_SHADED;
	np->shade[np->nr_shades] = (struct nap_shade){.block = b};
	return &np->shade[np->nr_shades++];
}

/* A copy that began at @time_ns reached @b up to @end. */
static void reached(struct block *b, taddr_t end, uint64_t time_ns)
{
	struct nap_proc *np = block_proc(b);
	struct nap_shade *s = shade_of(b);
	taddr_t first = block_first_page(b);
	uint64_t nr = (end - first + TPAGE_SIZE - 1) / TPAGE_SIZE;
	if (!s)
		s = add(b);
	if (!s)
		return;
	if (nr > s->nr) {
		uint64_t now_ns = np->nap->params.clock();
		grow(s, nr, now_ns);
		struct page_range r = range_of(s);
		if (r.start < r.end &&
		    !np->primary->ops->collect(np->primary, &r, 1))
			grow_over_huge(s, &r, now_ns);
	}
	if (time_ns > s->sampled_ns)
		s->sampled_ns = time_ns;
	if (time_ns + COPY_NS >= s->clear_ns &&
	    (!s->doubt_ns || time_ns <= s->doubt_ns))
		s->is_dark = true;
}

void nap_sampled(struct nap_proc *np, taddr_t sp, taddr_t end, uint64_t time_ns)
{
	if (!np->primary || np->primary->ops->is_guard ||
	    !(np->primary->ops->sees & ACCESS_READS))
		return;
	/* Where the stack pointer is the block itself is in use. */
	struct block *b = block_first_overlap(np->blocks, sp, end);
	for (; b && b->addr < end; b = block_next(np->blocks, b))
		if (b->addr > sp)
			reached(b, end, time_ns);
}
