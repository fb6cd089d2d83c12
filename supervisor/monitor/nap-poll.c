/*
 * Watching by accessed bits. Each window a few pages of every busy block are
 * reset and looked at; a block whose sample stayed quiet is armed page by page
 * (each step sixteen times as many, so that a busy block is found out after a
 * few touches) until it is armed as a whole; quiet then means a nap.
 */
#include "supervisor/monitor/nap-private.h"

#include <stdlib.h>

#define SMALL_PAGES   16 /* armed as a whole at once when nothing is known */
#define MAX_LEVEL     6	 /* a sample has at most 64 pages */
#define WIDEN_FACTOR  16
#define WIDEN_FIRST   64
#define SETTLE_NS     (250 * NSEC_PER_MSEC)
#define SETTLE_PAGES  64
#define RETRY_NS      NSEC_PER_SEC
#define LONG_QUIET_NS (10 * NSEC_PER_SEC) /* as ledger_settle has it */

static void range_add(struct nap_proc *np, struct block *b, uint64_t first,
		      uint64_t nr)
{
	if (np->nr_ranges == np->cap_ranges) {
		uint32_t cap = np->cap_ranges ? np->cap_ranges * 2 : 1024;
		struct page_range *r = realloc(np->ranges, cap * sizeof(*r));
		if (!r)
			return;
		np->ranges = r;
		np->cap_ranges = cap;
	}
	np->ranges[np->nr_ranges++] = (struct page_range){
		.start = block_first_page(b) + first * TPAGE_SIZE,
		.end = block_first_page(b) + (first + nr) * TPAGE_SIZE,
		.user = b,
		.armed_ns = b->armed_ns,
	};
}

/* Page @k of the sample that was armed at b->armed_ns: the witness first, then
 * pages spread by a hash, the same again when asked again. */
static uint64_t sample_page(const struct block *b, unsigned k)
{
	uint64_t nr = block_nr_pages(b);
	if (k == 0)
		return b->witness < nr ? b->witness : 0;
	uint64_t x = b->armed_ns + k * 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return (x ^ (x >> 31)) % nr;
}

/* What of @b is armed now, for arming and for looking. */
static void add_armed(struct nap_proc *np, struct block *b)
{
	switch (b->state) {
	case BLOCK_SAMPLE:
		for (unsigned k = 0; k < 1u << b->level; k++)
			range_add(np, b, sample_page(b, k), 1);
		break;
	case BLOCK_WIDEN:
		range_add(np, b, 0, b->cursor);
		break;
	case BLOCK_WATCH:
		range_add(np, b, 0, block_nr_pages(b));
		break;
	}
}

static uint64_t touch_cost(const struct nap_proc *np)
{
	return np->primary->ops->touch_cost_ns(np->primary);
}

/*
 * @nr_clear pages of @b now stand reset: untouched, they cost nothing, but the
 * program may wake up and walk through them all, so their price is reserved
 * while they stand.
 */
static void set_clear(struct block *b, uint32_t nr_clear)
{
	struct ledger *l = b->proc->nap->ledger;
	uint64_t cost = touch_cost(b->proc);
	if (nr_clear == b->nr_clear)
		return;
	if (b->flags & BLOCK_SETTLED) {
		ledger_release_settled(l, b->nr_clear * cost);
		ledger_reserve(l, b->nr_clear * cost);
		b->flags &= (uint16_t)~BLOCK_SETTLED;
	}
	if (nr_clear > b->nr_clear)
		ledger_reserve(l, (nr_clear - b->nr_clear) * cost);
	else
		ledger_release(l, (b->nr_clear - nr_clear) * cost);
	b->nr_clear = nr_clear;
}

void nap_poll_forget(struct block *b)
{
	if (b->nr_clear)
		set_clear(b, 0);
}

/* Long quiet: likely to stay so. */
static void settle_reservation(struct block *b, uint64_t now_ns)
{
	if (b->flags & BLOCK_SETTLED || !b->nr_clear ||
	    now_ns < b->full_ns + LONG_QUIET_NS)
		return;
	ledger_settle(b->proc->nap->ledger, b->nr_clear * touch_cost(b->proc));
	b->flags |= BLOCK_SETTLED;
}

/*
 * Look at the whole block: those of its pages that stood reset and are touched
 * now have cost their price.
 */
static void account(struct block *b)
{
	struct nap_proc *np = b->proc;
	struct page_range r = {
		.start = block_first_page(b),
		.end = block_end_page(b),
		.user = b,
		.armed_ns = b->armed_ns,
	};
	if (np->primary->ops->collect(np->primary, &r, 1))
		return;
	uint32_t clear = r.nr_present - r.nr_touched;
	if (clear < b->nr_clear)
		ledger_charge(np->nap->ledger, LEDGER_TOUCH, NAP_MONITOR,
			      (b->nr_clear - clear) * touch_cost(np));
	set_clear(b, clear);
}

void nap_poll_settle(struct nap_proc *np, uint64_t now_ns)
{
	for (uint32_t i = 0; i < np->settle.nr; i++) {
		struct nap_queue_entry *e = &np->settle.entry[i];
		if (now_ns < e->due_ns)
			continue;
		e->due_ns = now_ns + SETTLE_NS;
		if (e->block->state <= BLOCK_SAMPLE)
			account(e->block);
		if (e->block->nr_clear < SETTLE_PAGES)
			np->settle.entry[i--] =
				np->settle.entry[--np->settle.nr];
	}
}

static void settle_later(struct block *b, uint64_t now_ns)
{
	struct nap_queue *q = &b->proc->settle;
	if (b->nr_clear < SETTLE_PAGES)
		return;
	for (uint32_t i = 0; i < q->nr; i++)
		if (q->entry[i].block == b)
			return;
	uint32_t pos = b->queue_pos; /* of the other queue; not ours to set */
	nap_queue_add(q, b, now_ns + SETTLE_NS);
	b->queue_pos = pos;
}

/* How many more pages of @b may be armed now. */
static uint64_t widen_step(const struct block *b)
{
	uint64_t left = block_nr_pages(b) - b->cursor;
	uint64_t step =
		b->cursor ? (uint64_t)b->cursor * WIDEN_FACTOR : WIDEN_FIRST;
	uint64_t cost = touch_cost(b->proc);
	int64_t room = ledger_room_ns(b->proc->nap->ledger);
	uint64_t most = room <= 0 ? 0 : cost ? (uint64_t)room / cost : left;
	if (step > left)
		step = left;
	return step < most ? step : most;
}

/*
 * Arm the next pages of a block that is being widened. False if nothing could
 * be armed: no room, or the memory is gone.
 */
static bool widen(struct block *b)
{
	struct nap_proc *np = b->proc;
	if (!b->cursor && b->nr_clear)
		account(b);
	uint64_t step = widen_step(b);
	if (!step)
		return false;
	struct page_range r = {
		.start = block_first_page(b) + b->cursor * TPAGE_SIZE,
		.end = block_first_page(b) + (b->cursor + step) * TPAGE_SIZE,
		.user = b,
		.armed_ns = b->armed_ns,
	};
	bool known = !np->primary->ops->collect(np->primary, &r, 1);
	uint32_t nr_touched = known ? r.nr_touched : (uint32_t)step;
	if (np->primary->ops->arm(np->primary, &r, 1) ||
	    r.nr_reset == UINT32_MAX || r.nr_stuck) {
		b->flags |= BLOCK_STUCK;
		return false;
	}
	set_clear(b, b->nr_clear + nr_touched);
	b->cursor += (uint32_t)step;
	b->state = BLOCK_WIDEN;
	if (b->cursor == block_nr_pages(b)) {
		b->state = BLOCK_WATCH;
		b->full_ns = b->checked_ns = np->nap->params.clock();
		b->flags |= BLOCK_WATCHED;
		b->flags &= (uint16_t)~BLOCK_STUCK;
	}
	return true;
}

static void hit(struct block *b, const struct page_range *sum, uint64_t now_ns)
{
	struct nap *n = b->proc->nap;
	uint64_t lo = b->state == BLOCK_WATCH ? b->checked_ns : b->armed_ns;
	uint64_t p = sum->nr_touched * touch_cost(b->proc);

	if (b->state == BLOCK_SAMPLE) {
		ledger_charge(n->ledger, LEDGER_TOUCH, NAP_MONITOR, p);
		set_clear(b, b->nr_clear > sum->nr_touched
				     ? b->nr_clear - sum->nr_touched
				     : 0);
		if (sum->nr_touched > 2 && b->level)
			b->level--;
	} else {
		account(b);
		/* The sample missed a busy block. */
		if (now_ns - b->armed_ns < n->params.nap_ns / 4)
			b->level = (uint8_t)(b->level + 2 < MAX_LEVEL
						     ? b->level + 2
						     : MAX_LEVEL);
	}
	settle_later(b, now_ns);
	b->witness = (uint32_t)((sum->first_touched - block_first_page(b)) /
				TPAGE_SIZE);
	if (b->flags & BLOCK_IN_NAP)
		nap_end(b, b->checked_ns, now_ns, 0, 0, -1);
	nap_block_hit(b, lo, now_ns, p);
}

static void quiet(struct block *b, uint64_t looked_ns)
{
	struct nap_proc *np = b->proc;
	struct nap *n = np->nap;

	b->checked_ns = looked_ns;
	if (b->state == BLOCK_WATCH) {
		if (!(b->flags & BLOCK_IN_NAP) &&
		    looked_ns >= b->full_ns + n->params.nap_ns)
			nap_begin(b, looked_ns);
		settle_reservation(b, looked_ns);
	} else {
		if (b->state == BLOCK_SAMPLE)
			b->cursor = 0;
		widen(b); /* or wait for room and try again */
	}
	np->queue.entry[b->queue_pos].due_ns = nap_recheck_ns(b, looked_ns);
	if (b->state != BLOCK_WATCH)
		np->queue.entry[b->queue_pos].due_ns = looked_ns + n->window_ns;
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
		if (r[i].nr_touched)
			sum->first_touched = r[i].first_touched;
	}
	return i;
}

void nap_poll_tick(struct nap_proc *np, uint64_t now_ns)
{
	np->nr_ranges = 0;
	for (uint32_t i = 0; i < np->queue.nr; i++)
		if (np->queue.entry[i].due_ns <= now_ns)
			add_armed(np, np->queue.entry[i].block);
	if (!np->nr_ranges)
		return;
	uint64_t before = np->nap->params.clock();
	if (np->primary->ops->collect(np->primary, np->ranges, np->nr_ranges))
		return;
	uint64_t after = np->nap->params.clock();
	/* quiet() may widen, which uses no ranges of this array */
	for (uint32_t i = 0; i < np->nr_ranges;) {
		struct page_range sum;
		struct block *b = np->ranges[i].user;
		i += sum_ranges(&np->ranges[i], np->nr_ranges - i, &sum);
		if (sum.nr_touched)
			hit(b, &sum, after);
		else
			quiet(b, before);
	}
	np->nr_ranges = 0;
}

/* Memory that was never touched since it was mapped needs no arming: its first
 * page fault sets the bit. */
static bool watch_fresh(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = b->proc;
	struct page_range r = {
		.start = block_first_page(b),
		.end = block_end_page(b),
		.user = b,
		.armed_ns = b->armed_ns,
	};
	if (np->primary->ops->collect(np->primary, &r, 1) || r.nr_present)
		return false;
	b->flags |= BLOCK_FRESH | BLOCK_WATCHED;
	b->state = BLOCK_WATCH;
	b->full_ns = b->touched_lo_ns;
	b->checked_ns = now_ns;
	return true;
}

bool nap_poll_arm(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = b->proc;
	struct nap *n = np->nap;
	uint64_t nr = block_nr_pages(b);
	bool first = !(b->flags & BLOCK_ARMED_ONCE);

	b->armed_ns = now_ns;
	b->flags |= BLOCK_ARMED_ONCE;
	if (first && watch_fresh(b, now_ns))
		goto armed;
	if (first)
		b->touched_hi_ns = now_ns;
	if ((first && nr <= SMALL_PAGES) || nr <= 1ull << b->level) {
		b->cursor = 0;
		if (!widen(b)) {
			if (b->flags & BLOCK_STUCK)
				control_defer(n->control, b->plant,
					      now_ns + RETRY_NS);
			return (b->flags & BLOCK_STUCK) != 0;
		}
		goto armed;
	}
	b->state = BLOCK_SAMPLE;
	add_armed(np, b);
armed:
	if (!nap_queue_add(&np->queue, b, now_ns + n->window_ns)) {
		b->state = BLOCK_IDLE;
		return false;
	}
	control_armed(n->control, b->plant, now_ns);
	return true;
}

void nap_poll_flush(struct nap_proc *np, uint64_t now_ns)
{
	struct nap *n = np->nap;
	if (!np->nr_ranges)
		return;
	/* What is reset now was set before: these pages stand from here on. */
	int rc = np->primary->ops->collect(np->primary, np->ranges,
					   np->nr_ranges);
	for (uint32_t i = 0; !rc && i < np->nr_ranges; i++) {
		struct block *b = np->ranges[i].user;
		set_clear(b, b->nr_clear + np->ranges[i].nr_touched);
	}
	rc = np->primary->ops->arm(np->primary, np->ranges, np->nr_ranges);
	for (uint32_t i = 0; i < np->nr_ranges; i++) {
		struct block *b = np->ranges[i].user;
		if (!rc && np->ranges[i].nr_reset != UINT32_MAX &&
		    !np->ranges[i].nr_stuck)
			continue;
		if (b->state != BLOCK_SAMPLE)
			continue; /* an earlier page of it failed already */
		nap_queue_remove(&np->queue, b);
		b->state = BLOCK_IDLE;
		b->flags |= BLOCK_STUCK;
		control_disarm(n->control, b->plant, now_ns, now_ns + RETRY_NS);
	}
	np->nr_ranges = 0;
}
