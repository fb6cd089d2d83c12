/*
 * The second witness: a guard on a block that is about to become stale. It
 * rarely fires, and then tells what no bit can, who ended the nap and when.
 */
#include "supervisor/monitor/nap-private.h"

#define MAX_GUARDS 1024 /* each may split a mapping in three */
/* What becomes due within nap/10 is armed together: each batch reads the maps,
 * which may be thousands of lines. */
#define GUARD_BATCHES	10
#define MAX_GUARD_PAGES 16384u /* write-protecting takes time, too */
/* Of all that is spent, second witnesses may take one part in: each block less
 * that is watched is a nap that nobody sees. */
#define WITNESS_SHARE 16

void nap_plan_guard(struct block *b)
{
	struct nap_proc *np = block_proc(b);
	/* Nothing to protect in memory that was never touched. */
	if (b->flags & BLOCK_GUARDED ||
	    (b->flags & (BLOCK_FRESH | BLOCK_EVER_SEEN)) == BLOCK_FRESH ||
	    block_nr_pages(b) > MAX_GUARD_PAGES)
		return;
	np->wants_guard = true;
	if (np->guard && np->nr_guarded + np->guard_plan.nr < MAX_GUARDS)
		nap_ranges_add(&np->guard_plan, b, 0, block_nr_pages(b));
}

/* What a hit is said to cost changes: all that was reserved is given back. */
static void hold_guards(struct nap_proc *np)
{
	struct ledger *l = np->nap->ledger;
	uint64_t ns =
		np->nr_guarded * (np->guard->ops->touch_cost_ns(np->guard) + 1);
	if (ns > np->guards_held_ns)
		ledger_reserve(l, ns - np->guards_held_ns);
	else
		ledger_release(l, np->guards_held_ns - ns);
	np->guards_held_ns = ns;
}

void nap_guard_flush(struct nap_proc *np, uint64_t now_ns)
{
	struct ledger *l = np->nap->ledger;
	struct page_range *r = np->guard_plan.range;
	uint32_t nr = np->guard_plan.nr;

	np->guard_plan.nr = 0;
	if (!nr)
		return;
	np->guard_ns = now_ns + np->nap->params.nap_ns / GUARD_BATCHES;
	struct nap *n = np->nap;
	struct access *g = np->guard;
	uint64_t cost = g->ops->touch_cost_ns(g) + 1;
	int64_t room = ledger_room_ns(l) / 2;
	uint64_t most = room <= 0 ? 0 : (uint64_t)room / cost;
	if (nr > most)
		nr = (uint32_t)most;
	if (!nr || n->witness_ns > n->adapt_spent_ns / WITNESS_SHARE)
		return;
	uint64_t side_ns = g->ops->side_cost_ns(g);
	int failed = g->ops->arm(g, r, nr);
	n->witness_ns += g->ops->side_cost_ns(g) - side_ns;
	if (failed)
		return;
	for (uint32_t i = 0; i < nr; i++) {
		struct block *b = r[i].user;
		if (r[i].nr_reset == UINT32_MAX)
			continue;
		b->flags |= BLOCK_GUARDED;
		np->nr_guarded++;
	}
	hold_guards(np);
}

void nap_unguard(struct block *b, bool open)
{
	struct nap_proc *np = block_proc(b);
	struct page_range r = {
		.start = block_first_page(b),
		.end = block_end_page(b),
		.user = b,
	};
	if (!(b->flags & BLOCK_GUARDED))
		return;
	b->flags &= (uint16_t)~BLOCK_GUARDED;
	np->nr_guarded--;
	hold_guards(np);
	if (open)
		np->guard->ops->disarm(np->guard, &r, 1);
}

bool nap_wants_guard(const struct nap_proc *np)
{
	return np->wants_guard && !np->guard;
}

void nap_set_guard(struct nap_proc *np, struct access *guard)
{
	np->guard = guard;
}
