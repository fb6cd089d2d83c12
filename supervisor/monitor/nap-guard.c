/*
 * Watching by guards, as the paper does: a whole block is guarded, the first
 * access opens it and comes as an event with its exact time, and the guard is
 * set again after the controller's delay. A guard that stands for the NAP
 * length is a nap.
 */
#include "supervisor/monitor/nap-private.h"

#define RETRY_NS NSEC_PER_SEC

bool nap_guard_arm(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = b->proc;
	struct nap *n = np->nap;
	struct page_range r = {
		.start = block_first_page(b),
		.end = block_end_page(b),
		.user = b,
	};

	b->flags |= BLOCK_ARMED_ONCE;
	if (np->primary->ops->arm(np->primary, &r, 1) ||
	    r.nr_reset == UINT32_MAX) {
		b->flags |= BLOCK_STUCK;
		control_defer(n->control, b->plant, now_ns + RETRY_NS);
		return true;
	}
	b->flags &= (uint16_t)~BLOCK_STUCK;
	b->flags |= BLOCK_WATCHED;
	b->state = BLOCK_WATCH;
	b->armed_ns = now_ns;
	b->full_ns = b->checked_ns = np->nap->params.clock();
	if (!nap_queue_add(&np->queue, b, nap_recheck_ns(b, now_ns))) {
		np->primary->ops->disarm(np->primary, &r, 1);
		b->state = BLOCK_IDLE;
		return false;
	}
	control_armed(n->control, b->plant, now_ns);
	return true;
}

/* Nothing to look at: a guard that was not hit is quiet. */
void nap_guard_tick(struct nap_proc *np, uint64_t now_ns)
{
	struct nap *n = np->nap;
	for (uint32_t i = 0; i < np->queue.nr; i++) {
		struct nap_queue_entry *e = &np->queue.entry[i];
		if (now_ns < e->due_ns)
			continue;
		struct block *b = e->block;
		b->checked_ns = now_ns;
		if (!(b->flags & BLOCK_IN_NAP) &&
		    now_ns >= b->full_ns + n->params.nap_ns)
			nap_begin(b, now_ns);
		e->due_ns = nap_recheck_ns(b, now_ns);
	}
}

static uint32_t end_flags(const struct access_hit *hit)
{
	if (hit->is_gap)
		return 0; /* nobody touched it: not watched from here on */
	if (hit->in_kernel)
		return NAP_ENDED_SYSCALL;
	return hit->is_write ? NAP_ENDED_WRITE : NAP_ENDED_READ;
}

void nap_guard_hit(struct nap_proc *np, const struct access_hit *hit,
		   uint32_t stack, bool is_primary)
{
	struct nap *n = np->nap;
	struct block *b = block_first_overlap(np->blocks, hit->range.start,
					      hit->range.end);
	/* A stop is on the stop clock already. */
	if (!hit->stopped)
		ledger_charge(n->ledger, LEDGER_TOUCH, NAP_MONITOR,
			      hit->cost_ns);
	if (!b || b != hit->range.user)
		return;
	b->flags &= (uint16_t) ~(is_primary ? 0 : BLOCK_GUARDED);
	if (b->flags & BLOCK_IN_NAP)
		nap_end(b, hit->time_ns, hit->time_ns, end_flags(hit), stack,
			hit->in_kernel ? (int32_t)hit->syscall_nr : -1);
	if (stack)
		b->last_stack = stack;
	if (is_primary && b->state != BLOCK_WATCH)
		return;
	uint16_t seen = b->flags & BLOCK_EVER_SEEN;
	nap_block_hit(b, hit->time_ns, hit->time_ns, hit->cost_ns);
	if (hit->is_gap)
		b->flags = (uint16_t)((b->flags & ~BLOCK_EVER_SEEN) | seen);
}
