/*
 * Watching by accessed bits. Each window a few pages of every busy block are
 * reset and looked at; a block whose sample stayed quiet is armed page by page
 * (each step sixteen times as many, so that a busy block is found out after a
 * few touches) until it is armed as a whole; quiet then means a nap.
 */
#include "supervisor/monitor/nap-private.h"

#include <stdlib.h>

#define SHARERS_MAX	  8 /* blocks at a range's ends */
#define DUE_BATCH	  2048
#define OVERDRAWN_WINDOWS 4
#define MAX_LEVEL	  6
#define MAX_SAMPLE_LOG	  3 /* each page is a call of the kernel's */
#define SETTLE_NS	  (250 * NSEC_PER_MSEC)
#define SETTLE_PAGES	  64
#define ASK_PART	  16 /* of the time that makes a nap */

bool nap_ranges_add(struct nap_ranges *l, struct block *b, uint64_t first,
		    uint64_t nr)
{
	if (l->nr == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 256;
		struct page_range *r = realloc(l->range, cap * sizeof(*r));
		if (!r)
			return false;
		l->range = r;
		l->cap = cap;
	}
	l->range[l->nr++] = (struct page_range){
		.start = block_first_page(b) + first * TPAGE_SIZE,
		.end = block_first_page(b) + (first + nr) * TPAGE_SIZE,
		.user = b,
		.armed_ns = b->armed_ns,
	};
	return true;
}

/* Page @k of the sample that was armed at b->armed_ns: the witness first, then
 * pages spread by a hash, the same again when asked again. */
uint64_t nap_sample_page(const struct block *b, unsigned k)
{
	uint64_t nr = nap_nr_pages(b);
	if (k == 0)
		return b->witness < nr ? b->witness : 0;
	uint64_t x = b->armed_ns + k * 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % nr;
}

unsigned nap_sample_nr(const struct block *b)
{
	return 1u << (b->level < MAX_SAMPLE_LOG ? b->level : MAX_SAMPLE_LOG);
}

/* What of @b is armed now. */
static void add_armed(struct nap_ranges *l, struct block *b)
{
	uint64_t shade = nap_shade(b);
	switch (b->state) {
	case BLOCK_SAMPLE:
		for (unsigned k = 0; k < nap_sample_nr(b); k++)
			nap_ranges_add(l, b, shade + nap_sample_page(b, k), 1);
		break;
	case BLOCK_WIDEN:
		if (b->cursor)
			nap_ranges_add(l, b, shade, b->cursor);
		else /* no room so far: the sample still stands */
			nap_ranges_add(l, b, shade + nap_sample_page(b, 0), 1);
		break;
	case BLOCK_WATCH:
		nap_ranges_add(l, b, shade, nap_nr_pages(b));
		break;
	}
}

/* What is reserved for @b, of which it has its part or more. */
static void hold_dear(const struct block *b, uint64_t ns)
{
	if (b->flags & BLOCK_DEAR)
		block_proc(b)->nap->dear_ns += ns;
}

static void release_dear(const struct block *b, uint64_t ns)
{
	if (b->flags & BLOCK_DEAR)
		block_proc(b)->nap->dear_ns -= ns;
}

/* Of the pages of @b that stand reset so many are not for it to pay: all that
 * can be noted. */
static void note_theirs(struct block *b, uint32_t nr)
{
	b->nr_theirs = (nr < BLOCK_MOST_THEIRS ? nr : BLOCK_MOST_THEIRS) &
		       BLOCK_MOST_THEIRS;
}

/*
 * @nr_clear pages of @b now stand reset: untouched, they cost nothing, but the
 * program may wake up and walk through them all, so their price is reserved
 * while they stand.
 */
void nap_set_clear(struct block *b, uint32_t nr_clear)
{
	struct ledger *l = block_proc(b)->nap->ledger;
	uint64_t cost = nap_touch_cost(block_proc(b));
	if (nr_clear == b->nr_clear)
		return;
	if (b->flags & BLOCK_SETTLED) {
		ledger_release_settled(l, b->nr_clear * cost);
		ledger_reserve(l, b->nr_clear * cost);
		b->flags &= (uint16_t)~BLOCK_SETTLED;
		hold_dear(b, b->nr_clear * cost);
	}
	release_dear(b, b->nr_clear * cost);
	if (nr_clear > b->nr_clear)
		ledger_reserve(l, (nr_clear - b->nr_clear) * cost);
	else
		ledger_release(l, (b->nr_clear - nr_clear) * cost);
	b->nr_clear = nr_clear;
	if (b->nr_theirs > nr_clear)
		b->nr_theirs = nr_clear & BLOCK_MOST_THEIRS;
	hold_dear(b, nr_clear * cost);
}

void nap_add_clear(struct block *b, uint32_t nr, uint32_t nr_ours)
{
	nap_set_clear(b, b->nr_clear + nr);
	note_theirs(b, b->nr_theirs + nr - nr_ours);
}

void nap_judge_dear(struct block *b)
{
	const struct nap_proc *np = block_proc(b);
	uint64_t nr = nap_nr_pages(b), cost = nap_touch_cost(np);
	uint64_t held = b->flags & BLOCK_SETTLED ? 0 : b->nr_clear * cost;
	bool is =
		nr > NAP_SMALL_PAGES && (int64_t)(nr * cost) > np->nap->fair_ns;
	if (is == !!(b->flags & BLOCK_DEAR))
		return;
	release_dear(b, held);
	b->flags ^= BLOCK_DEAR;
	hold_dear(b, held);
}

void nap_poll_forget(struct block *b)
{
	if (b->nr_clear)
		nap_set_clear(b, 0);
}

/* Long quiet: likely to stay so. */
static void settle_reservation(struct block *b, uint64_t now_ns)
{
	if (b->flags & BLOCK_SETTLED || !b->nr_clear ||
	    now_ns < b->full_ns + NAP_LONG_QUIET_NS)
		return;
	uint64_t ns = b->nr_clear * nap_touch_cost(block_proc(b));
	ledger_settle(block_proc(b)->nap->ledger, ns);
	release_dear(b, ns);
	b->flags |= BLOCK_SETTLED;
}

void nap_account_for(struct block *b, uint32_t nr_clear)
{
	uint32_t ours = b->nr_clear - b->nr_theirs;
	if (nr_clear < b->nr_clear) {
		uint32_t nr = b->nr_clear - nr_clear;
		nr = nr < ours ? nr : ours;
		ledger_charge(block_proc(b)->nap->ledger, LEDGER_TOUCH,
			      NAP_MONITOR, nr * nap_touch_cost(block_proc(b)));
		ours -= nr;
	}
	nap_set_clear(b, nr_clear);
	note_theirs(b, nr_clear - ours);
}

void nap_account(struct block *b)
{
	struct nap_proc *np = block_proc(b);
	struct page_range r = nap_whole_range(b);
	if (!np->primary->ops->collect(np->primary, &r, 1))
		nap_account_for(b, r.nr_present - r.nr_touched);
}

void nap_poll_settle(struct nap_proc *np, uint64_t now_ns)
{
	for (uint32_t i = 0; i < np->settle.nr; i++) {
		struct nap_queue_entry *e = &np->settle.entry[i];
		if (now_ns < e->due_ns)
			continue;
		e->due_ns = now_ns + SETTLE_NS;
		if (e->block->state <= BLOCK_SAMPLE)
			nap_account(e->block);
		if (e->block->nr_clear < SETTLE_PAGES)
			np->settle.entry[i--] =
				np->settle.entry[--np->settle.nr];
	}
}

static void settle_later(struct block *b, uint64_t now_ns)
{
	struct nap_queue *q = &block_proc(b)->settle;
	if (b->nr_clear < SETTLE_PAGES)
		return;
	for (uint32_t i = 0; i < q->nr; i++)
		if (q->entry[i].block == b)
			return;
	uint32_t pos = b->queue_pos; /* of the other queue; not ours to set */
	nap_queue_add(q, b, now_ns + SETTLE_NS);
	b->queue_pos = pos;
}

/*
 * Of the touched pages of @b those that stood reset, @was_clear in all when it
 * was armed: the first touch of a new page costs nothing more. To tell the
 * controller of a block that was filled under watch as if it did would keep it
 * from its turn for as long as the run lasts. One at least is its turn.
 */
static uint64_t nr_paid(const struct block *b, uint32_t was_clear,
			uint32_t nr_touched)
{
	uint32_t nr = was_clear > b->nr_clear ? was_clear - b->nr_clear : 0;
	if (nr > nr_touched)
		nr = nr_touched;
	return nr ? nr : 1;
}

static void hit(struct block *b, const struct page_range *sum, uint64_t now_ns)
{
	struct nap *n = block_proc(b)->nap;
	uint64_t lo = b->state == BLOCK_WATCH ? b->checked_ns : b->armed_ns;
	uint64_t cost = nap_touch_cost(block_proc(b));
	uint64_t nr = sum->nr_touched;
	uint32_t was_clear = b->nr_clear;

	if (b->state == BLOCK_SAMPLE) {
		ledger_charge(n->ledger, LEDGER_TOUCH, NAP_MONITOR, nr * cost);
		nap_set_clear(b, b->nr_clear > sum->nr_touched
					 ? b->nr_clear - sum->nr_touched
					 : 0);
		if (sum->nr_touched > 2 && b->level)
			b->level--;
	} else {
		if (b->state == BLOCK_WATCH) /* looked at as a whole */
			nap_account_for(b, sum->nr_present - sum->nr_touched);
		else
			nap_account(b);
		nr = nr_paid(b, was_clear, sum->nr_touched);
		/* The sample missed a busy block, or would have. */
		if (sum->nr_touched > 2)
			b->level = b->level > 2 ? b->level - 2 : 0;
		else if (now_ns - b->armed_ns < n->params.nap_ns)
			b->level = (uint8_t)(b->level + 2 < MAX_LEVEL
						     ? b->level + 2
						     : MAX_LEVEL);
	}
	settle_later(b, now_ns);
	b->witness = (uint32_t)((sum->first_touched - nap_first_page(b)) /
				TPAGE_SIZE);
	if (b->flags & BLOCK_IN_NAP)
		nap_end(b, b->checked_ns, now_ns, 0, 0, -1);
	nap_block_hit(b, lo, now_ns, nr * cost);
}

/* Was @b, which is in no nap, armed as a whole @ns or longer before @now_ns? */
static bool is_watched_for(const struct block *b, uint64_t ns, uint64_t now_ns)
{
	return b->state == BLOCK_WATCH && !(b->flags & BLOCK_IN_NAP) &&
	       now_ns >= b->full_ns + ns;
}

/* Is it a nap if @b is quiet at @now_ns? */
static bool completes_nap(const struct block *b, uint64_t now_ns)
{
	return is_watched_for(b, block_proc(b)->nap->params.nap_ns, now_ns);
}

/*
 * Is @b, which has become quiet, to be asked for marks that may be from before
 * it was armed? Where a nap would begin they would be taken for an access, and
 * all the time until then be lost. It takes long: not where CPU time is dear.
 */
static bool asks_early(const struct block *b, uint64_t now_ns)
{
	const struct nap *n = block_proc(b)->nap;
	return b->flags & BLOCK_UNASKED && n->stretch <= 1 &&
	       is_watched_for(b, n->params.nap_ns / ASK_PART, now_ns);
}

/*
 * Who took the mark away did not flush the TLB, and neither does arming what
 * has no mark: accesses might go unseen as long as they find the old entry
 * there. Setting a guard flushes; one that stands already would not be set
 * again. Where there is none, only time and other resets help.
 *
 * When it was is known only if there was no such mark when the block was armed:
 * else it may be from before.
 *
 * Of pinned pages nothing can be said as long as they are: arming asks again.
 */
static void hit_unseen(struct block *b, const struct page_range *sum,
		       uint64_t now_ns)
{
	struct nap *n = block_proc(b)->nap;
	ledger_charge(n->ledger, LEDGER_TOUCH, NAP_MONITOR,
		      sum->nr_aged * nap_touch_cost(block_proc(b)));
	settle_later(b, now_ns);
	b->flags |= BLOCK_AGED;
	if (sum->nr_pinned)
		b->flags |= BLOCK_STUCK;
	if (sum->nr_pinned && b->flags & BLOCK_IN_NAP)
		nap_end(b, now_ns, now_ns, NAP_UNWATCHED, 0, -1);
	nap_block_hit(b,
		      b->flags & BLOCK_UNASKED ? b->touched_lo_ns : b->full_ns,
		      now_ns, 0);
	nap_unguard(b, true);
	nap_plan_guard(b);
}

static void quiet(struct block *b, const struct page_range *sum,
		  uint64_t looked_ns)
{
	struct nap_proc *np = block_proc(b);
	struct nap *n = np->nap;
	uint64_t wait = 1;

	b->checked_ns = looked_ns;
	bool is_nap = completes_nap(b, looked_ns);
	if (sum->nr_aged || sum->nr_pinned) {
		hit_unseen(b, sum, looked_ns);
		return;
	}
	if (sum->want_aged && !is_nap) /* there was none */
		b->flags &= (uint16_t)~BLOCK_UNASKED;
	if (is_nap && !nap_shade_allows(b, looked_ns)) {
		if (b->state == BLOCK_WATCH)
			np->queue.entry[b->queue_pos].due_ns =
				looked_ns + n->window_ns;
		return;
	}
	if (b->state == BLOCK_WATCH) {
		/* Others clear the bits, too (reclaim, DAMON), and do not flush
		 * the TLB, so that later accesses leave no mark. A guard makes
		 * a second witness, and flushes. A tenth of the time that is
		 * left comes together in one batch. */
		if (looked_ns >= b->full_ns + n->params.nap_ns / 2 &&
		    looked_ns >= np->guard_ns)
			nap_plan_guard(b);
		if (is_nap)
			nap_begin(b, looked_ns);
		settle_reservation(b, looked_ns);
	} else {
		if (b->state == BLOCK_SAMPLE)
			b->cursor = 0;
		/* Or wait for room and try again; where CPU time is dear, not
		 * as often. */
		if (!nap_poll_widen(b) && n->stretch > 1)
			wait = OVERDRAWN_WINDOWS;
	}
	np->queue.entry[b->queue_pos].due_ns =
		b->state == BLOCK_WATCH ? nap_recheck_ns(b, looked_ns)
					: looked_ns + wait * n->window_ns;
}

/* One block's ranges lie together; add up what was seen in them. */
static uint32_t sum_ranges(const struct page_range *r, uint32_t nr,
			   struct page_range *sum)
{
	uint32_t i = 0;
	*sum = (struct page_range){.user = r->user};
	for (; i < nr && r[i].user == r->user; i++) {
		sum->nr_present += r[i].nr_present;
		sum->nr_touched += r[i].nr_touched;
		sum->nr_aged += r[i].nr_aged;
		sum->nr_pinned += r[i].nr_pinned;
		sum->want_aged |= r[i].want_aged;
		if (r[i].nr_touched)
			sum->first_touched = r[i].first_touched;
	}
	return i;
}

/* Sampling may have touched what is touched. */
static void catch_up_if_touched(struct nap_proc *np)
{
	const struct nap_params *p = &np->nap->params;
	for (uint32_t i = 0; p->read_samples && i < np->look.nr; i++)
		if (np->look.range[i].nr_touched) {
			p->read_samples(p->ctx);
			return;
		}
}

/* Has its block a shade since @r was made? */
static bool is_shaded_now(const struct page_range *r)
{
	const struct block *b = r->user;
	return b->flags & BLOCK_SHADED && r->start < nap_first_page(b);
}

/* Look at it again. False: it is not armed any more. */
static bool look_behind_shade(struct block *b, struct page_range *ret)
{
	struct nap_proc *np = block_proc(b);
	if (b->state != BLOCK_WATCH)
		return false;
	*ret = nap_whole_range(b);
	return !np->primary->ops->collect(np->primary, ret, 1);
}

/* Look at a batch; its blocks lie at places of the queue that the caller has
 * left behind. */
static void look(struct nap_proc *np)
{
	struct nap_ranges *l = &np->look;
	uint64_t before = np->nap->params.clock();
	/* Was what looks quiet accessed after all, and somebody else (DAMON)
	 * took the mark away? Asked where a nap would begin, and perhaps once
	 * before: it takes longer than a look. */
	for (uint32_t i = 0; i < l->nr; i++)
		l->range[i].want_aged =
			completes_nap(l->range[i].user, before) ||
			asks_early(l->range[i].user, before);
	if (np->primary->ops->collect(np->primary, l->range, l->nr))
		return;
	uint64_t after = np->nap->params.clock();
	catch_up_if_touched(np);
	for (uint32_t i = 0; i < l->nr;) {
		struct page_range sum;
		struct block *b = l->range[i].user;
		bool is_stale = is_shaded_now(&l->range[i]);
		i += sum_ranges(&l->range[i], l->nr - i, &sum);
		if (is_stale && !look_behind_shade(b, &sum))
			continue;
		if (sum.nr_touched)
			hit(b, &sum, after);
		else
			quiet(b, &sum, before);
	}
}

/* A block with its address at hand: to look there for each comparison took
 * longer than all else of sorting. */
struct due {
	taddr_t addr;
	struct block *b;
};

static int by_address(const void *a, const void *b)
{
	taddr_t x = ((const struct due *)a)->addr;
	taddr_t y = ((const struct due *)b)->addr;
	return x < y ? -1 : x > y;
}

/* Look at @nr blocks, each once. */
static void look_at(struct nap_proc *np, struct due *due, uint32_t nr)
{
	/* Neighbours share page tables, which are then found once. */
	qsort(due, nr, sizeof(*due), by_address);
	np->look.nr = 0;
	for (uint32_t i = 0; i < nr; i++)
		if (!i || due[i].b != due[i - 1].b)
			add_armed(&np->look, due[i].b);
	if (np->look.nr)
		look(np);
}

/* Is there room beside @b in @page, one of its pages? */
static bool has_room_beside(const struct block *b, taddr_t page)
{
	return b->addr > page || b->addr + b->size < page + TPAGE_SIZE;
}

/* Those under watch that share a page with range @r of another. */
static uint32_t add_sharers(struct nap_proc *np, const struct page_range *r,
			    struct due *ret)
{
	taddr_t ends[] = {r->start, r->end - TPAGE_SIZE};
	uint32_t nr = 0;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		taddr_t page = ends[i];
		struct block *b = NULL;
		if (has_room_beside(r->user, page))
			b = block_first_overlap(np->blocks, page,
						page + TPAGE_SIZE);
		for (; b && b->addr < page + TPAGE_SIZE && nr < SHARERS_MAX;
		     b = block_next(np->blocks, b))
			if (b != r->user && b->state == BLOCK_WATCH)
				ret[nr++] = (struct due){b->addr, b};
	}
	return nr;
}

void nap_poll_look_sharers(struct nap_proc *np)
{
	struct due due[DUE_BATCH];
	/* What is quiet may widen, so that the plan grows meanwhile. */
	for (uint32_t i = 0; i < np->plan.nr;) {
		uint32_t nr = 0;
		for (; i < np->plan.nr && nr + SHARERS_MAX <= DUE_BATCH; i++)
			nr += add_sharers(np, &np->plan.range[i], due + nr);
		look_at(np, due, nr);
	}
}

void nap_poll_begin(struct nap_proc *np, uint64_t now_ns)
{
	nap_shade_look(np, now_ns);
	/* Looking costs nothing but our own CPU time. If even that was too
	 * much, look less often. */
	bool too_soon =
		ledger_room_ns(np->nap->ledger) < 0 &&
		now_ns < np->looked_ns + OVERDRAWN_WINDOWS * np->nap->window_ns;
	np->look_left = too_soon ? 0 : np->queue.nr;
	if (!too_soon)
		np->looked_ns = now_ns;
}

bool nap_poll_go_on(struct nap_proc *np, uint64_t now_ns, uint64_t until_ns)
{
	/* Backwards: what is hit or freed leaves the queue, and the last takes
	 * its place. */
	if (np->look_left > np->queue.nr)
		np->look_left = np->queue.nr;
	while (np->look_left > 0) {
		struct due due[DUE_BATCH];
		uint32_t nr = 0;
		if (np->nap->params.clock() >= until_ns)
			return false;
		while (np->look_left > 0 && nr < DUE_BATCH) {
			struct nap_queue_entry *e =
				&np->queue.entry[--np->look_left];
			if (e->due_ns <= now_ns)
				due[nr++] =
					(struct due){e->block->addr, e->block};
		}
		look_at(np, due, nr);
		if (np->plan.nr >= NAP_PLAN_BATCH)
			nap_poll_flush(np, now_ns);
	}
	return true;
}
