/*
 * Watching by guards, as the paper does: a whole block is guarded, the first
 * access opens it and comes as an event with its exact time, and the guard is
 * set again after the controller's delay. A guard that stands for the NAP
 * length is a nap.
 */
#include "supervisor/monitor/nap-private.h"

#define RETRY_NS  NSEC_PER_SEC
#define MAX_RETRY 5 /* 32 s: to try may cost as much as to arm */
/* To protect 512 MiB takes some 20 ms, for which the program waits if it
 * touches a part of it meanwhile, and to open it again as much. */
#define MOST_PAGES ((512ull << 20) / TPAGE_SIZE)
#define MAX_GUARDS 1024 /* each may split a mapping in three */
/* What becomes due within nap/10 is armed together: each batch reads the maps,
 * which may be thousands of lines. */
#define GUARD_BATCHES	10
#define MAX_GUARD_PAGES 16384u /* write-protecting takes time, too */
/* Of all that is spent, second witnesses may take one part in: each block less
 * that is watched is a nap that nobody sees. */
#define WITNESS_SHARE 16

static void armed(struct block *b, const struct page_range *r, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	struct nap *n = np->nap;
	struct page_range again = *r;

	b->flags &= (uint16_t)~BLOCK_STUCK;
	b->flags |= BLOCK_WATCHED;
	b->nr_failed = 0;
	b->state = BLOCK_WATCH;
	b->armed_ns = now_ns;
	b->full_ns = b->checked_ns = n->params.clock();
	if (nap_queue_add(&np->queue, b, nap_recheck_ns(b, now_ns))) {
		control_armed(n->control, b->plant, now_ns);
		return;
	}
	np->primary->ops->disarm(np->primary, &again, 1);
	b->state = BLOCK_IDLE;
	control_defer(n->control, b->plant, now_ns + n->window_ns);
}

static void not_armed(struct block *b, uint64_t now_ns)
{
	struct nap *n = block_proc(b)->nap;
	unsigned before = b->nr_failed < MAX_RETRY ? b->nr_failed : MAX_RETRY;
	b->flags |= BLOCK_STUCK;
	b->nr_failed = (before + 1) & 0xf;
	control_defer(n->control, b->plant, now_ns + (RETRY_NS << before));
}

/* All in one: while blocks are protected one by one the program's stops wait
 * for us in between. */
void nap_guard_arm_flush(struct nap_proc *np, uint64_t now_ns)
{
	struct page_range *r = np->plan.range;
	uint32_t nr = np->plan.nr;

	np->plan.nr = 0;
	np->planned_pages = 0;
	if (!nr)
		return;
	int rc = np->primary->ops->arm(np->primary, r, nr);
	for (uint32_t i = 0; i < nr; i++) {
		struct block *b = r[i].user;
		if (!rc && r[i].nr_reset != UINT32_MAX) {
			armed(b, &r[i], now_ns);
			continue;
		}
		not_armed(b, now_ns);
	}
}

bool nap_guard_arm(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	if (block_nr_pages(b) > MOST_PAGES) {
		not_armed(b, now_ns);
		return true;
	}
	if (!nap_ranges_add(&np->plan, b, 0, block_nr_pages(b)))
		return false;
	np->planned_pages += block_nr_pages(b);
	b->flags |= BLOCK_ARMED_ONCE;
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
	end_nap(b, hit, hit->time_ns, stack);
	if (b->state != BLOCK_WATCH)
		return;
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
		ledger_reserve(l, cost);
	}
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
	ledger_release(np->nap->ledger,
		       np->guard->ops->touch_cost_ns(np->guard) + 1);
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
