/*
 * Arming for the watching by accessed bits: what is to be reset is planned
 * first, block by block, and carried out in batches, because a call for each
 * of 100 000 small blocks would cost more than everything else.
 */
#include "supervisor/monitor/nap-private.h"

#include <string.h>

#include "supervisor/control/fixed.h"

#define WIDEN_FACTOR 16
#define WIDEN_FIRST  64
#define RETRY_NS     NSEC_PER_SEC
#define WHOLE_PAGES  64ull /* see whole_pages */

uint64_t nap_touch_cost(const struct nap_proc *np)
{
	return np->primary->ops->touch_cost_ns(np->primary);
}

/* What is left of @room after what is planned, at its worst. */
static int64_t after_planned(const struct nap_proc *np, int64_t room)
{
	if (room == INT64_MAX)
		return room;
	return room - (int64_t)(np->planned_pages * nap_touch_cost(np));
}

/* What arming has cost in this tick comes to the accounts with the next one. */
int64_t nap_room_ns(const struct nap_proc *np)
{
	int64_t room = ledger_room_ns(np->nap->ledger);
	if (room != INT64_MAX)
		room -= (int64_t)np->nap->tick_arming_ns;
	return after_planned(np, room);
}

/* Of the planned pages @nr_touched have their bit set. */
static bool plan(struct block *b, uint64_t first, uint64_t nr,
		 uint64_t nr_touched)
{
	struct nap_proc *np = block_proc(b);
	if (!nap_ranges_add(&np->plan, b, nap_shade(b) + first, nr))
		return false;
	np->planned_pages += nr_touched;
	return true;
}

/* Up to so many @b is armed without a sample, which would not pay: to arm
 * once more, and later, costs more than the touches. */
static uint64_t whole_pages(const struct block *b)
{
	if (!(b->flags & BLOCK_ARMED_ONCE))
		return NAP_SMALL_PAGES;
	return WHOLE_PAGES << b->level;
}

/* Pages of @b of which it is not known that they are clear from before: for the
 * others, to be armed costs nothing more. */
static uint64_t nr_unarmed(const struct block *b)
{
	uint64_t nr = nap_nr_pages(b);
	return nr > b->nr_clear ? nr - b->nr_clear : 0;
}

/* So many pages of it are left to be armed, for all that is known. */
static uint64_t nr_left(const struct block *b)
{
	return b->cursor ? nap_nr_pages(b) - b->cursor : nr_unarmed(b);
}

/* That takes more than one step. */
static bool is_large(const struct block *b)
{
	return nr_left(b) > WIDEN_FIRST;
}

/* It takes no more than a small block does: what stands reset of it already was
 * reserved then. */
static bool is_dear(const struct block *b)
{
	return b->flags & BLOCK_DEAR && nr_left(b) > NAP_SMALL_PAGES;
}

/* Does it need at most half of what any may need in this tick? */
static bool is_smaller(const struct block *b)
{
	return nr_left(b) <= block_proc(b)->nap->large_most / 2;
}

/* What of the room for large ones is for @b. */
static int64_t large_room_ns(const struct block *b)
{
	const struct nap *n = block_proc(b)->nap;
	if (nr_left(b) > n->large_most)
		return 0;
	return n->large_room_ns - (is_smaller(b) ? 0 : n->smaller_ns);
}

/* How many more pages of @b may have to be touched again. */
static uint64_t widen_most(const struct block *b)
{
	const struct nap_proc *np = block_proc(b);
	uint64_t step = whole_pages(b);
	uint64_t cost = nap_touch_cost(np);
	int64_t room = after_planned(np, ledger_reservable_ns(np->nap->ledger));
	if (step < WIDEN_FIRST)
		step = WIDEN_FIRST;
	if (b->cursor)
		step = (uint64_t)b->cursor * WIDEN_FACTOR;
	/* One of many pages may not take all the room there is at each tick
	 * while smaller ones wait for a turn. */
	if (is_large(b) && room > large_room_ns(b))
		room = large_room_ns(b);
	if (is_dear(b) && room > np->nap->dear_room_ns)
		room = np->nap->dear_room_ns;
	if (room <= 0)
		return 0;
	uint64_t most = cost ? (uint64_t)room / cost : step;
	return step < most ? step : most;
}

/*
 * Each block may have an even part of what the bound lets stand reset at once,
 * as each plant has one of the budget. Those that take more get what is left:
 * while others wait, half of it at most. Else a few large ones, held ready for
 * as long as they are quiet, would keep hundreds from their turn.
 */
static void share_reservable(struct nap *n)
{
	int64_t room = ledger_window_room_ns(n->ledger);
	uint32_t nr = control_nr_plants(n->control);
	if (room == INT64_MAX) {
		n->fair_ns = n->dear_room_ns = INT64_MAX;
		return;
	}
	struct ledger_totals t;
	ledger_get(n->ledger, &t);
	int64_t all = sat_i64((i128)room + t.reserved_ns);
	n->fair_ns = all / (nr ? nr : 1);
	n->dear_room_ns = n->waits_cheap ? sat_i64((i128)all / 2 - n->dear_ns)
					 : INT64_MAX;
}

/*
 * Of the large ones that wait for room those come first that need the least:
 * what one of 64 MiB takes is enough for dozens of others.
 */
static void choose_large(struct nap *n)
{
	int64_t left = n->large_room_ns;
	unsigned size = 0;
	while (size + 1 < NAP_SIZES && (int64_t)n->waits_ns[size] <= left)
		left -= (int64_t)n->waits_ns[size++];
	n->large_most = size + 1 < NAP_SIZES ? (2ull << size) - 1 : UINT64_MAX;
	n->smaller_ns = n->large_room_ns - left;
	memset(n->waits_ns, 0, sizeof(n->waits_ns));
}

void nap_share_room(struct nap *n)
{
	/* Half of it is left to smaller ones that wait. */
	n->large_room_ns = ledger_reservable_ns(n->ledger);
	if (n->was_short)
		n->large_room_ns /= 2;
	choose_large(n);
	share_reservable(n);
}

/* Of the pages from the cursor on. What is not touched costs nothing to arm. */
static uint64_t nr_touched_left(struct block *b)
{
	struct access *a = block_proc(b)->primary;
	struct page_range r = nap_whole_range(b);
	r.start += b->cursor * TPAGE_SIZE;
	if (a->ops->collect(a, &r, 1))
		return (r.end - r.start) / TPAGE_SIZE;
	return r.nr_touched;
}

/* For @nr pages of @b there is no room. */
static void note_waits(struct block *b, uint64_t nr)
{
	struct nap *n = block_proc(b)->nap;
	unsigned size = 63 - (unsigned)__builtin_clzll(nr_left(b) | 1);
	if (size >= NAP_SIZES)
		size = NAP_SIZES - 1;
	if (is_large(b))
		n->waits_ns[size] += nr * nap_touch_cost(block_proc(b));
}

static void take_large(const struct block *b, int64_t ns)
{
	struct nap *n = block_proc(b)->nap;
	n->large_room_ns -= ns;
	if (is_smaller(b))
		n->smaller_ns -= ns < n->smaller_ns ? ns : n->smaller_ns;
}

bool nap_poll_widen(struct block *b)
{
	struct nap *n = block_proc(b)->nap;
	uint64_t left = nap_nr_pages(b) - b->cursor, step = left;
	uint64_t most = widen_most(b);
	if (!most) {
		n->was_short |= !is_large(b);
		note_waits(b, nr_left(b));
		n->waits_cheap |= !is_dear(b);
		return false;
	}
	/* What stands reset from before was reserved then. */
	uint64_t touched = b->cursor ? left : nr_unarmed(b);
	if (touched > most && left > NAP_SMALL_PAGES)
		touched = nr_touched_left(b);
	if (touched > most) {
		note_waits(b, touched - most);
		touched = step = most;
	}
	/* A range that is the whole block tells by itself, see flush. */
	if (!b->cursor && b->nr_clear && step < nap_nr_pages(b))
		nap_account(b);
	if (!plan(b, b->cursor, step, touched))
		return false;
	int64_t ns = (int64_t)(touched * nap_touch_cost(block_proc(b)));
	if (is_large(b))
		take_large(b, ns);
	if (b->flags & BLOCK_DEAR)
		n->dear_room_ns -= ns;
	b->state = BLOCK_WIDEN;
	return true;
}

/* Memory that was never touched since it was mapped needs no arming: its first
 * page fault sets the bit. */
static void watch_fresh(struct block *b)
{
	b->flags |= BLOCK_FRESH | BLOCK_WATCHED;
	b->state = BLOCK_WATCH;
	b->full_ns = b->touched_lo_ns;
	b->checked_ns = b->armed_ns;
}

static bool is_untouched(struct block *b)
{
	struct access *a = block_proc(b)->primary;
	struct page_range r = nap_whole_range(b);
	return !a->ops->collect(a, &r, 1) && !r.nr_present;
}

bool nap_poll_arm(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	if (nap_shade_hides(b, now_ns)) {
		b->flags |= BLOCK_STUCK;
		control_defer(np->nap->control, b->plant, now_ns + RETRY_NS);
		return true;
	}
	uint64_t nr = nap_nr_pages(b);
	bool first = !(b->flags & BLOCK_ARMED_ONCE);

	b->armed_ns = now_ns;
	b->cursor = 0;
	nap_judge_dear(b);
	if (first && nr > NAP_SMALL_PAGES && is_untouched(b)) {
		watch_fresh(b);
	} else if (nr_unarmed(b) <= whole_pages(b)) {
		if (!nap_poll_widen(b))
			return false;
	} else {
		b->state = BLOCK_SAMPLE;
		for (unsigned k = 0; k < nap_sample_nr(b); k++)
			if (!plan(b, nap_sample_page(b, k), 1, 1))
				break;
	}
	if (!nap_queue_add(&np->queue, b, now_ns + np->nap->window_ns)) {
		b->state = BLOCK_IDLE;
		return false;
	}
	if (nr > NAP_SMALL_PAGES)
		b->flags |= BLOCK_ARMED_ONCE;
	control_armed(np->nap->control, b->plant, now_ns);
	return true;
}

/*
 * Its memory is gone, bits of it cannot be reset (yet: a page that was just
 * mapped may need a moment), or say nothing: try again, soon at first.
 */
static void give_up(struct block *b, uint64_t now_ns)
{
	const struct nap *n = block_proc(b)->nap;
	uint64_t wait = n->window_ns << b->nr_failed;
	if (wait < RETRY_NS) {
		b->nr_failed++;
	} else {
		wait = RETRY_NS;
		b->flags |= BLOCK_STUCK;
	}
	nap_queue_remove(&block_proc(b)->queue, b);
	b->state = BLOCK_IDLE;
	b->flags |= BLOCK_ARMED_ONCE;
	control_disarm(n->control, b->plant, now_ns, now_ns + wait);
}

/* Some of its pages are new: a moment later they can be reset. */
static void put_off(struct block *b, uint64_t now_ns)
{
	const struct nap *n = block_proc(b)->nap;
	nap_queue_remove(&block_proc(b)->queue, b);
	b->state = BLOCK_IDLE;
	control_disarm(n->control, b->plant, now_ns, now_ns + n->window_ns);
}

/* The planned pages of @b are reset by now. */
static void armed(struct block *b, const struct page_range *r,
		  bool was_untouched)
{
	uint64_t nr = nap_nr_pages(b);
	bool first = !(b->flags & BLOCK_ARMED_ONCE);

	b->flags |= BLOCK_ARMED_ONCE;
	if (b->state != BLOCK_WIDEN)
		return;
	b->cursor += (uint32_t)((r->end - r->start) / TPAGE_SIZE);
	if (b->cursor < nr)
		return;
	b->flags &= (uint16_t)~BLOCK_STUCK;
	if (nr > NAP_SMALL_PAGES) /* in these it takes long to ask */
		b->flags &= (uint16_t)~BLOCK_AGED;
	b->nr_failed = 0;
	if (first && was_untouched) {
		watch_fresh(b);
		return;
	}
	b->state = BLOCK_WATCH;
	b->full_ns = b->checked_ns = block_proc(b)->nap->params.clock();
	b->flags |= BLOCK_WATCHED;
}

/*
 * What is aged by now must not look as if it was later. Before all other looks,
 * because it takes longer, and what happens between those and the reset is
 * lost. It takes longer than all else that is done for a block, so it is asked
 * of small ones that are new, and of those in which such a mark has been in the
 * way (hit_unseen).
 */
static bool wants_aged(const struct block *b)
{
	return b->flags & BLOCK_AGED || (!(b->flags & BLOCK_ARMED_ONCE) &&
					 nap_nr_pages(b) <= NAP_SMALL_PAGES);
}

/* Where something is touched, the rest was not looked at. */
static void note_asked(const struct page_range *r)
{
	struct block *b = r->user;
	if (!b->cursor)
		b->flags &= (uint16_t)~BLOCK_UNASKED;
	if (!r->want_aged || (!r->was_aged && r->nr_touched))
		b->flags |= BLOCK_UNASKED;
}

static void look_for_aged(struct nap_proc *np)
{
	struct access *a = np->primary;
	struct page_range *r = np->plan.range;
	uint32_t nr;
	for (uint32_t i = 0; i < np->plan.nr; i += nr ? nr : 1) {
		for (nr = 0; i + nr < np->plan.nr && wants_aged(r[i + nr].user);
		     nr++)
			r[i + nr].want_aged = true;
		int rc = nr ? a->ops->collect(a, &r[i], nr) : 0;
		for (uint32_t k = i; k < i + nr; k++) {
			r[k].was_aged = rc || r[k].nr_aged;
			note_asked(&r[k]);
			r[k].want_aged = false;
		}
		if (!nr)
			note_asked(&r[i]);
	}
}

/* What was reset now was set before: these pages stand from here on, but for
 * those that could not be reset. One that a neighbour has a part of, and that
 * was reset with that, is charged there. */
static void account_for_reset(struct block *b, const struct page_range *r)
{
	uint32_t ours =
		r->nr_reset > r->nr_waiting ? r->nr_reset - r->nr_waiting : 0;
	if ((r->end - r->start) / TPAGE_SIZE == nap_nr_pages(b))
		nap_account_for(b, r->nr_present - r->nr_touched);
	nap_add_clear(b, r->nr_touched,
		      ours < r->nr_touched ? ours : r->nr_touched);
}

static void arm_planned(struct nap_proc *np, uint64_t now_ns)
{
	struct access *a = np->primary;
	look_for_aged(np);
	nap_poll_look_sharers(np);
	struct page_range *r = np->plan.range;
	uint32_t nr = np->plan.nr;

	np->plan.nr = 0;
	np->planned_pages = 0;
	if (!nr)
		return;
	int rc = a->ops->arm(a, r, nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct block *b = r[i].user;
		if (!rc && r[i].nr_reset != UINT32_MAX)
			account_for_reset(b, &r[i]);
		if (b->state == BLOCK_IDLE)
			continue; /* an earlier range of it failed */
		if (rc || r[i].nr_reset == UINT32_MAX || r[i].nr_stuck ||
		    r[i].nr_pinned)
			give_up(b, now_ns);
		else if (r[i].nr_waiting)
			put_off(b, now_ns);
		else
			armed(b, &r[i], !r[i].nr_present);
	}
}

/* What arming has cost the program so far, beside touches. */
static uint64_t arming_cost_ns(const struct nap_proc *np)
{
	const struct access *a = np->primary;
	return (a->ops->side_cost_ns ? a->ops->side_cost_ns(a) : 0) +
	       (a->ops->wait_cost_ns ? a->ops->wait_cost_ns(a) : 0);
}

void nap_poll_flush(struct nap_proc *np, uint64_t now_ns)
{
	struct nap *n = np->nap;
	if (!np->plan.nr)
		return;
	uint64_t cpu_ns = n->params.cpu_clock(), cost_ns = arming_cost_ns(np);
	arm_planned(np, now_ns);
	n->tick_arming_ns += arming_cost_ns(np) - cost_ns;
	n->arming_ns += n->params.cpu_clock() - cpu_ns;
}
