/*
 * Watching by guards, as the paper does: a whole block is guarded, the first
 * access opens it and comes as an event with its exact time, and the guard is
 * set again after the controller's delay. A guard that stands for the NAP
 * length is a nap.
 */
#include "supervisor/monitor/nap-private.h"

/* Nothing to look at: a guard that was not hit is quiet. */
static void look(struct nap_queue_entry *e, uint64_t now_ns)
{
	struct block *b = e->block;
	const struct nap *n = block_proc(b)->nap;
	b->checked_ns = now_ns;
	if (!(b->flags & BLOCK_IN_NAP) &&
	    now_ns >= b->full_ns + n->params.nap_ns)
		nap_begin(b, now_ns);
	if (now_ns >= b->full_ns + NAP_LONG_QUIET_NS)
		nap_guard_settle(b);
	e->due_ns = nap_recheck_ns(b, now_ns);
}

void nap_guard_look(struct nap_proc *np, uint64_t now_ns)
{
	for (uint32_t i = 0; i < np->queue.nr; i++) {
		struct nap_queue_entry *e = &np->queue.entry[i];
		if (now_ns >= e->due_ns && e->block->state == BLOCK_WATCH)
			look(e, now_ns);
	}
}

void nap_guard_tick(struct nap_proc *np, uint64_t now_ns)
{
	nap_guard_look(np, now_ns);
	for (uint32_t i = 0; i < np->queue.nr; i++) {
		struct nap_queue_entry *e = &np->queue.entry[i];
		if (now_ns >= e->due_ns && e->block->state == BLOCK_WIDEN)
			nap_guard_widen(e->block, now_ns);
	}
}

static uint32_t end_flags(const struct access_hit *hit)
{
	if (hit->is_gap)
		return NAP_UNWATCHED; /* nobody touched it */
	if (hit->in_kernel)
		return NAP_ENDED_SYSCALL;
	return hit->is_write ? NAP_ENDED_WRITE : NAP_ENDED_READ;
}

static void end_nap(struct block *b, const struct access_hit *hit,
		    uint64_t quiet_until_ns, uint32_t stack)
{
	if (b->flags & BLOCK_IN_NAP)
		nap_end(b, quiet_until_ns, hit->time_ns, end_flags(hit), stack,
			hit->in_kernel ? (int32_t)hit->syscall_nr : -1);
	if (stack)
		b->last_stack = stack;
}

static void primary_hit(struct block *b, const struct access_hit *hit,
			uint32_t stack)
{
	uint16_t seen = b->flags & BLOCK_EVER_SEEN;
	uint64_t last_ns = b->touched_lo_ns;
	bool has_turn = b->state != BLOCK_IDLE;
	bool stood = has_turn || b->held_ns;

	end_nap(b, hit, hit->time_ns, stack);
	nap_guard_opened(b, &hit->range);
	/* Where it has no turn a part of it stood. If nobody touched that it
	 * goes on waiting for as long as was right. */
	if (!stood || (hit->is_gap && !has_turn))
		return;
	nap_guard_turn_over(b);
	nap_block_hit(b, hit->time_ns, hit->time_ns, hit->cost_ns);
	if (hit->is_gap) {
		b->flags = (uint16_t)((b->flags & ~BLOCK_EVER_SEEN) | seen);
		b->touched_lo_ns = last_ns;
	}
}

/*
 * The second witness sees writes only. Was the block read before, since the
 * last look? A fault leaves the accessed bit of its page clear, so a set one
 * says so.
 */
static uint64_t quiet_until(struct block *b, const struct access_hit *hit)
{
	struct access *a = block_proc(b)->primary;
	struct page_range r = nap_whole_range(b);
	if (b->state == BLOCK_WATCH && b->checked_ns < hit->time_ns &&
	    (a->ops->collect(a, &r, 1) || r.nr_touched))
		return b->checked_ns;
	return hit->time_ns;
}

static void witness_hit(struct block *b, const struct access_hit *hit,
			uint32_t stack)
{
	nap_unguard(b, false); /* it is open already */
	if (hit->is_gap)
		return; /* the first witness still looks */
	end_nap(b, hit, quiet_until(b, hit), stack);
	if (b->state != BLOCK_IDLE) {
		/* What it costs is on its own account (WITNESS_SHARE): told to
		 * the controller it would keep the block from its turn for
		 * twenty seconds. */
		nap_block_hit(b, hit->time_ns, hit->time_ns,
			      nap_touch_cost(block_proc(b)));
		return;
	}
	b->touched_lo_ns = hit->time_ns;
	b->flags |= BLOCK_EVER_SEEN;
}

/*
 * The block whose guard it was, if that lives. Not simply the lowest in the
 * range: the tail of another may lie in its first page, and a hit that nobody
 * takes leaves the block without a guard and seemingly quiet for ever.
 */
static struct block *guarded_block(struct nap_proc *np,
				   const struct access_hit *hit)
{
	struct block *b = block_first_overlap(np->blocks, hit->range.start,
					      hit->range.end);
	while (b && b != hit->range.user && b->addr < hit->range.end)
		b = block_next(np->blocks, b);
	return b == hit->range.user ? b : NULL;
}

void nap_guard_hit(struct nap_proc *np, const struct access_hit *hit,
		   uint32_t stack, bool is_primary)
{
	struct block *b = guarded_block(np, hit);
	struct nap *n = np->nap;
	/* A stop is on the stop clock, and the wait before it is a side cost.
	 */
	if (!hit->stopped)
		ledger_charge(n->ledger, LEDGER_TOUCH, NAP_MONITOR,
			      hit->cost_ns);
	if (!is_primary)
		n->witness_ns += hit->stopped ? n->params.clock() - hit->time_ns
					      : hit->cost_ns;
	if (!b)
		return;
	if (is_primary)
		primary_hit(b, hit, stack);
	else
		witness_hit(b, hit, stack);
}
