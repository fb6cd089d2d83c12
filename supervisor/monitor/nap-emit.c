/* How a nap becomes a record. */
#include "supervisor/monitor/nap-private.h"

/*
 * The last access lies in [touched_lo, full], the nap's end in [lo, hi]. The
 * middle of each is the best estimate (the end of its life, if that was the
 * end), but where the block was not looked at
 * for long before it was armed as a whole, the nap is not stretched into that
 * time by more than a window or two: what is reported was quiet.
 */
/* How uncertain an end is, to an eighth of that. */
static uint64_t roughly(uint64_t error_ns, uint64_t unit)
{
	while (error_ns / unit >= 8)
		unit *= 2;
	return in_units(error_ns + unit - 1, unit);
}

static struct ev_nap describe(const struct block *b, uint64_t lo_ns,
			      uint64_t hi_ns, uint32_t flags)
{
	const struct nap_proc *np = block_proc(b);
	const struct nap *n = np->nap;
	uint64_t unit = unit_for(n->params.nap_ns, NAP_UNIT_NS);
	uint64_t start_hi = told_ns(n, b->full_ns);
	uint64_t start_lo = told_ns(n, b->touched_lo_ns);
	uint64_t alloc = told_ns(n, b->alloc_ns);
	if (start_lo > start_hi)
		start_lo = start_hi;
	uint64_t stretch = in_units((start_hi - start_lo) / 2, unit);
	if (stretch > 2 * n->window_ns)
		stretch = in_units(2 * n->window_ns, unit);
	uint64_t start = start_hi - stretch;
	uint64_t lo = told_ns(n, lo_ns), hi = told_ns(n, hi_ns);
	uint64_t end = hi - in_units((hi - lo) / 2, unit);
	if (flags & (NAP_FREED | NAP_AT_EXIT))
		end = hi; /* if nobody touched it just before */

	if (np->primary && !(np->primary->ops->sees & ACCESS_READS))
		flags |= NAP_WRITES_ONLY;
	if (b->flags & BLOCK_SHADED && nap_shade_was_dark(b, b->touched_lo_ns))
		flags |= NAP_HEAD_UNSEEN;
	else if ((b->flags & (BLOCK_FRESH | BLOCK_EVER_SEEN)) == BLOCK_FRESH)
		flags |= NAP_NEVER_ACCESSED;
	return (struct ev_nap){
		.addr = b->addr,
		.size = b->size,
		.start_ns = start,
		.length_ns = end > start ? end - start : 0,
		.error_ns = (start - start_lo) + roughly(end - lo, unit),
		/* 0 would be before the attach */
		.alloc_ns = alloc ? alloc : session_ns(n, b->alloc_ns),
		.pid = (uint32_t)np->pid,
		.alloc_stack = b->stack,
		.last_stack = b->last_stack,
		.ended_syscall = -1,
		.flags = flags,
	};
}

static void emit_nap(struct nap *n, uint64_t now_ns, uint32_t object,
		     const struct ev_nap *nap)
{
	struct record r = {
		.event = EV_NAP,
		.time_ns = told_ns(n, now_ns),
		.cpu = UINT32_MAX,
		.param = object,
		.payload_len = sizeof(*nap),
		.payload = nap,
	};
	n->params.emit(n->params.ctx, &r);
}

void nap_begin(struct block *b, uint64_t now_ns)
{
	struct nap *n = block_proc(b)->nap;
	b->flags |= BLOCK_IN_NAP | BLOCK_REPORTED;
	n->nr_naps++;
	struct ev_site *site = sites_get(&n->sites, b->stack);
	if (site)
		site->nr_naps++;
	nap_emit_ongoing(b, now_ns, 0);
}

void nap_emit_ongoing(struct block *b, uint64_t now_ns, uint32_t flags)
{
	struct ev_nap nap =
		describe(b, b->checked_ns, b->checked_ns, flags | NAP_ONGOING);
	emit_nap(block_proc(b)->nap, now_ns, block_number(b), &nap);
}

void nap_end(struct block *b, uint64_t lo_ns, uint64_t hi_ns, uint32_t flags,
	     uint32_t stack, int32_t syscall_nr)
{
	struct nap_proc *np = block_proc(b);
	struct ev_nap nap = describe(b, lo_ns, hi_ns, flags);
	nap.ended_stack = stack;
	nap.ended_syscall = syscall_nr;
	b->flags &= (uint16_t)~BLOCK_IN_NAP;
	nap_unguard(b, !(flags & (NAP_FREED | NAP_AT_EXIT)));
	emit_nap(np->nap, hi_ns, block_number(b), &nap);
	if (!stack && !(flags & (NAP_FREED | NAP_AT_EXIT | NAP_UNWATCHED))) {
		np->ended = b;
		np->ended_ns = hi_ns;
		np->ended_nap = nap;
	}
}

bool nap_wants_nearby(const struct nap_proc *np)
{
	return np->ended != NULL;
}

void nap_nearby(struct nap_proc *np, uint32_t stack)
{
	struct block *b = np->ended;
	if (!b)
		return;
	np->ended = NULL;
	b->last_stack = stack;
	np->ended_nap.ended_stack = stack;
	np->ended_nap.flags |= NAP_END_NEARBY;
	emit_nap(np->nap, np->ended_ns, block_number(b), &np->ended_nap);
}
