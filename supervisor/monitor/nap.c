#include "supervisor/monitor/nap-private.h"

#include <stdlib.h>
#include <time.h>

#include "supervisor/control/fixed.h"

/* A nap's length is known to about one window at either end, so that a
 * fiftieth of the NAP length keeps it within 5 %. */
#define WINDOWS_PER_NAP 50
#define MIN_WINDOW_NS	(5 * NSEC_PER_MSEC)
#define MAX_WINDOW_NS	(50 * NSEC_PER_MSEC)
#define ADAPT_NS	(500 * NSEC_PER_MSEC)
/* Whoever stops meanwhile has to wait. */
#define SLICE_NS    (4 * NSEC_PER_MSEC)
#define STRETCH_MAX 25
/* A look at a large block takes as long as at a hundred small ones: where looks
 * are to be fewer, it is put off by so much for each of its pages. */
#define PAGE_STRETCH_NS (4 * NSEC_PER_USEC)
/* Of the room at the beginning of a tick. */
#define ROOM_PARTS 8
/* What is spent beside the p of events is at most that many times as much. */
#define MORE_MOST 15

static uint64_t thread_cpu_ns(void)
{
	return smco_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

struct nap *nap_create(const struct nap_params *p, struct ledger *ledger,
		       struct control *control)
{
	struct nap *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->params = *p;
	if (!n->params.clock)
		n->params.clock = smco_now_ns;
	if (!n->params.cpu_clock)
		n->params.cpu_clock = thread_cpu_ns;
	n->ledger = ledger;
	n->control = control;
	n->window_ns = p->nap_ns / WINDOWS_PER_NAP;
	if (n->window_ns < MIN_WINDOW_NS)
		n->window_ns = MIN_WINDOW_NS;
	if (n->window_ns > MAX_WINDOW_NS)
		n->window_ns = MAX_WINDOW_NS;
	n->stretch = 1;
	return n;
}

void nap_destroy(struct nap *n)
{
	if (!n)
		return;
	while (n->procs)
		nap_proc_destroy(n->procs, n->params.start_ns, true);
	sites_deinit(&n->sites);
	free(n);
}

uint64_t nap_window_ns(const struct nap *n)
{
	return n->window_ns;
}

struct nap_proc *nap_proc_create(struct nap *n, pid_t pid,
				 struct access *primary)
{
	struct nap_proc *np = calloc(1, sizeof(*np));
	if (!np)
		return NULL;
	np->blocks = block_set_create(np);
	if (!np->blocks) {
		free(np);
		return NULL;
	}
	np->nap = n;
	np->pid = pid;
	np->primary = primary;
	np->next = n->procs;
	n->procs = np;
	return np;
}

static void count_coverage(struct nap *n, const struct block *b,
			   uint64_t now_ns)
{
	enum coverage_why why = COVER_NEVER_ARMED;
	if (b->flags & BLOCK_STUCK)
		why = COVER_SHARED;
	else if (b->flags & (BLOCK_WATCHED | BLOCK_EVER_SEEN))
		why = COVER_WATCHED;
	else if (b->alloc_ns && now_ns < b->alloc_ns + n->params.nap_ns)
		why = COVER_SHORT_LIVED;
	n->cover[why].nr_objects++;
	n->cover[why].bytes += b->size;
	if (!b->stack) {
		n->cover[COVER_NO_STACK].nr_objects++;
		n->cover[COVER_NO_STACK].bytes += b->size;
	}
}

/* Forget @b, whose memory is or will be someone else's. */
static void block_gone(struct nap_proc *np, struct block *b, uint64_t now_ns,
		       uint32_t nap_flags, bool touch_memory)
{
	struct nap *n = np->nap;
	struct ev_site *site = sites_get(&n->sites, b->stack);
	if (site) {
		site->nr_live--;
		site->live_bytes -= b->size;
		if (b->flags & BLOCK_WATCHED)
			site->nr_watched++;
	}
	count_coverage(n, b, now_ns);
	if (touch_memory && np->primary &&
	    (b->state != BLOCK_IDLE || b->held_ns))
		np->primary->ops->drop(np->primary, block_first_page(b),
				       block_end_page(b));
	if (touch_memory && np->guard && b->flags & BLOCK_GUARDED)
		np->guard->ops->drop(np->guard, block_first_page(b),
				     block_end_page(b));
	nap_unguard(b, false);
	if (b->flags & BLOCK_IN_NAP)
		/* A guard would have told; else quiet is what was looked at. */
		nap_end(b, np->primary->ops->is_guard ? now_ns : b->checked_ns,
			now_ns, nap_flags, 0, -1);
	if (np->primary && np->primary->ops->is_guard)
		nap_guard_release(b);
	else
		nap_poll_forget(b);
	nap_queue_remove(&np->queue, b);
	for (uint32_t i = 0; i < np->settle.nr; i++)
		if (np->settle.entry[i].block == b)
			np->settle.entry[i--] =
				np->settle.entry[--np->settle.nr];
	if (np->ended == b)
		np->ended = NULL;
	if (b->flags & BLOCK_SHADED)
		nap_shade_forget(b);
	control_remove(n->control, b->plant);
	block_remove(np->blocks, b);
	n->nr_known--;
}

void nap_proc_destroy(struct nap_proc *np, uint64_t now_ns, bool gone)
{
	struct nap *n = np->nap;
	nap_hand_down(np, now_ns, gone);
	nap_forget_parent(np);
	for (struct block *b = block_first_overlap(np->blocks, 0, UINT64_MAX);
	     b;) {
		struct block *next = block_next(np->blocks, b);
		block_gone(np, b, now_ns, NAP_AT_EXIT | NAP_ONGOING, !gone);
		b = next;
	}
	for (struct nap_proc **link = &n->procs; *link; link = &(*link)->next)
		if (*link == np) {
			*link = np->next;
			break;
		}
	block_set_destroy(np->blocks);
	free(np->queue.entry);
	free(np->settle.entry);
	free(np->look.range);
	free(np->plan.range);
	free(np->guard_plan.range);
	free(np->shade);
	free(np);
}

/* What is known to live in [start, end) no longer does. */
static void clear_range(struct nap_proc *np, taddr_t start, taddr_t end,
			uint64_t now_ns)
{
	while (start < end) {
		struct block *b = block_first_overlap(np->blocks, start, end);
		if (!b)
			return;
		start = b->addr + b->size;
		block_gone(np, b, now_ns, NAP_FREED, true);
	}
}

struct block *nap_block_add(struct nap_proc *np, taddr_t addr, uint64_t size,
			    uint32_t stack, uint64_t now_ns, uint16_t flags)
{
	struct nap *n = np->nap;
	clear_range(np, addr, addr + size, now_ns);
	struct block *b = block_insert(np->blocks, addr, size);
	if (!b)
		return NULL;
	b->stack = stack;
	b->flags = flags;
	b->queue_pos = UINT32_MAX;
	b->alloc_ns = flags & BLOCK_ADOPTED ? 0 : now_ns;
	b->touched_lo_ns = now_ns;
	b->plant = control_add(n->control, now_ns, b);
	/* A block that lives shorter than a window is not worth a look. */
	control_defer(n->control, b->plant, now_ns + n->window_ns);
	n->nr_known++;
	struct ev_site *site = sites_get(&n->sites, stack);
	if (site) {
		site->nr_live++;
		site->live_bytes += size;
	}
	return b;
}

static void block_new(struct nap_proc *np, taddr_t addr, uint64_t size,
		      uint32_t stack, uint64_t now_ns, uint16_t flags)
{
	struct ev_site *site;
	if (nap_block_add(np, addr, size, stack, now_ns, flags) &&
	    (site = sites_get(&np->nap->sites, stack))) {
		site->nr_allocs++;
		site->bytes += size;
	}
}

/* munmap may cut a mapping: what is left of it goes on as blocks of its own. */
static void unmap_range(struct nap_proc *np, taddr_t start, taddr_t end,
			uint64_t now_ns)
{
	struct block *b;
	while ((b = block_first_overlap(np->blocks, start, end))) {
		taddr_t b_start = b->addr, b_end = b->addr + b->size;
		uint32_t stack = b->stack;
		uint16_t flags = b->flags & (BLOCK_MAPPED | BLOCK_ADOPTED);
		block_gone(np, b, now_ns, NAP_FREED, true);
		if (b_start < start &&
		    start - b_start >= np->nap->params.min_size)
			block_new(np, b_start, start - b_start, stack, now_ns,
				  flags);
		if (b_end > end && b_end - end >= np->nap->params.min_size)
			block_new(np, end, b_end - end, stack, now_ns, flags);
	}
}

void nap_heap_event(struct nap_proc *np, const struct heap_event *ev)
{
	uint64_t min_size = np->nap->params.min_size;
	uint16_t flags = 0;

	switch (ev->kind) {
	case HEAP_FREE:
		nap_note_gone(np, ev->addr, ev->addr + 1);
		clear_range(np, ev->addr, ev->addr + 1, ev->time_ns);
		return;
	case HEAP_UNMAP:
		nap_note_gone(np, ev->addr, ev->addr + ev->size);
		unmap_range(np, ev->addr, ev->addr + ev->size, ev->time_ns);
		return;
	case HEAP_REALLOC:
		if (!ev->old_addr)
			break;
		nap_note_gone(np, ev->old_addr, ev->old_addr + 1);
		clear_range(np, ev->old_addr, ev->old_addr + 1, ev->time_ns);
		break;
	case HEAP_REMAP:
		nap_note_gone(np, ev->old_addr, ev->old_addr + ev->old_size);
		unmap_range(np, ev->old_addr, ev->old_addr + ev->old_size,
			    ev->time_ns);
		flags = BLOCK_MAPPED;
		break;
	case HEAP_MAP:
		flags = BLOCK_MAPPED;
		break;
	case HEAP_ALLOC:
		break;
	}
	if (ev->size >= min_size)
		block_new(np, ev->addr, ev->size, ev->stack, ev->time_ns,
			  flags);
}

void nap_adopt_mapping(struct nap_proc *np, taddr_t addr, uint64_t size,
		       uint64_t now_ns)
{
	if (size >= np->nap->params.min_size &&
	    !block_first_overlap(np->blocks, addr, addr + size))
		block_new(np, addr, size, 0, now_ns,
			  BLOCK_MAPPED | BLOCK_ADOPTED);
}

/*
 * What the budget pays for beside the touches (arming, stops, our CPU time) is
 * spent because of them, and as much for a block of which one page was touched
 * as for one with fifty; the controller is told their full price, or it would
 * let all busy blocks be armed again at once and the ledger would hold back
 * whoever comes last. Follows the last few seconds.
 */
static void adapt_price(struct nap *n, uint64_t spent_ns)
{
	uint64_t events_ns = n->event_ns - n->adapt_event_ns;
	uint64_t nr = n->nr_events - n->adapt_nr_events;
	n->adapt_event_ns = n->event_ns;
	n->adapt_nr_events = n->nr_events;
	if (!nr)
		return;
	uint64_t more_ns = spent_ns > events_ns ? spent_ns - events_ns : 0;
	if (more_ns > events_ns * MORE_MOST)
		more_ns = events_ns * MORE_MOST;
	n->event_more_ns = (3 * n->event_more_ns + more_ns / nr + 2) / 4;
}

/* Of @cpu_ns of ours, which the program missed, what was not for arming. */
static uint64_t looking_ns(struct nap *n, uint64_t cpu_ns)
{
	uint64_t own_ns = n->params.cpu_clock();
	uint64_t own = own_ns - n->adapt_own_ns;
	uint64_t arming = n->arming_ns - n->adapt_arming_ns;
	n->adapt_own_ns = own_ns;
	n->adapt_arming_ns = n->arming_ns;
	if (arming >= own)
		return own ? 0 : cpu_ns;
	return sat_u64((u128)cpu_ns * (own - arming) / own);
}

/*
 * Looking costs CPU time. Where the program would have needed that CPU, this
 * takes away from what can be armed: beyond a quarter of a budget that is used
 * up, quiet blocks are looked at less often, so that more of them are watched
 * and the ends of naps are known less exactly.
 */
static void adapt_stretch(struct nap *n, uint64_t now_ns)
{
	struct ledger_totals t;
	if (now_ns < n->adapt_ns)
		return;
	n->adapt_ns = now_ns + ADAPT_NS;
	ledger_get(n->ledger, &t);
	int64_t m_t = control_m_from_overhead(n->params.target_overhead_ppb);
	uint64_t cpu = looking_ns(n, t.mech_ns[LEDGER_CPU] - n->adapt_cpu_ns);
	uint64_t spent = t.spent_ns - n->adapt_spent_ns;
	uint64_t base = t.base_ns - n->adapt_base_ns;
	adapt_price(n, spent);
	uint64_t budget = base / 1000 * (uint64_t)m_t / (PPB / 1000);
	n->adapt_cpu_ns = t.mech_ns[LEDGER_CPU];
	n->adapt_spent_ns = t.spent_ns;
	n->adapt_base_ns = t.base_ns;
	if (cpu > budget / 4 && spent > budget / 20 * 19)
		n->stretch += n->stretch / 2 + 1;
	else if (cpu < budget / 8 || spent < budget / 10 * 9)
		n->stretch -= (n->stretch + 3) / 4;
	if (n->stretch > STRETCH_MAX)
		n->stretch = STRETCH_MAX;
	if (n->stretch < 1)
		n->stretch = 1;
}

static uint64_t large_wait_ns(const struct nap *n, const struct block *b)
{
	uint64_t wait = (n->stretch - 1) * block_nr_pages(b) * PAGE_STRETCH_NS;
	return wait < n->params.nap_ns ? wait : n->params.nap_ns;
}

/*
 * A fiftieth of the quiet time (more where CPU time is dear) keeps a nap's end
 * within 2 %; the moment where quiet becomes a nap is met exactly. Until then
 * what is looked for is when it is used again, so that its next nap begins: to
 * two windows, which leaves half of the 5 %.
 */
uint64_t nap_recheck_ns(const struct block *b, uint64_t now_ns)
{
	const struct nap *n = block_proc(b)->nap;
	uint64_t age = now_ns > b->full_ns ? now_ns - b->full_ns : 0;
	uint64_t due = now_ns + age * n->stretch / WINDOWS_PER_NAP;
	if (due < now_ns + NAP_QUIET_WINDOWS * n->window_ns)
		due = now_ns + NAP_QUIET_WINDOWS * n->window_ns;
	if (due < now_ns + large_wait_ns(n, b))
		due = now_ns + large_wait_ns(n, b);
	uint64_t threshold = b->full_ns + n->params.nap_ns;
	if (!(b->flags & BLOCK_IN_NAP) && threshold > now_ns && threshold < due)
		due = threshold;
	return due;
}

void nap_block_hit(struct block *b, uint64_t lo_ns, uint64_t hi_ns,
		   uint64_t p_ns)
{
	struct nap *n = block_proc(b)->nap;
	uint64_t full_ns = p_ns ? p_ns + n->event_more_ns : 0;
	n->event_ns += p_ns;
	n->nr_events += p_ns > 0;
	if (b->state == BLOCK_IDLE)
		control_event_more(n->control, b->plant, hi_ns, full_ns);
	else
		control_event(n->control, b->plant, hi_ns,
			      hi_ns > b->armed_ns ? hi_ns - b->armed_ns : 0,
			      full_ns);
	b->touched_lo_ns = lo_ns;
	b->flags |= BLOCK_EVER_SEEN;
	b->state = BLOCK_IDLE;
	b->cursor = 0;
	nap_queue_remove(&block_proc(b)->queue, b);
}

void nap_hold_back(struct nap_proc *np, bool hold)
{
	np->is_held_back = hold;
}

/* Guards are armed in one batch a tick. */
static bool may_arm_any(const struct nap *n)
{
	bool any = false;
	for (const struct nap_proc *np = n->procs; np; np = np->next) {
		any |= np->primary && !np->is_held_back;
		if (np->primary && np->primary->ops->is_guard &&
		    nap_guard_is_full(np))
			return false;
	}
	return any;
}

static bool arm_plant(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	if (!np->primary || np->is_held_back)
		return false;
	if (np->primary->ops->is_guard)
		return nap_guard_arm(b, now_ns);
	/* What is planned counts in full until it is carried out, mostly much
	 * less afterwards. To carry it out costs something each time: what is
	 * left then of the room is used only if it is worth that. */
	struct nap *n = np->nap;
	int64_t enough = (int64_t)(NAP_SMALL_PAGES * nap_touch_cost(np));
	if (n->tick_room_ns / ROOM_PARTS > enough)
		enough = n->tick_room_ns / ROOM_PARTS;
	if (np->plan.nr >= NAP_PLAN_BATCH || nap_room_ns(np) <= enough)
		nap_poll_flush(np, now_ns);
	int64_t room = nap_room_ns(np);
	if ((room > enough || (room > 0 && !n->has_armed)) &&
	    nap_poll_arm(b, now_ns)) {
		n->has_armed = true;
		return true;
	}
	n->was_short = true;
	n->waits_cheap |= !(b->flags & BLOCK_DEAR);
	return false;
}

void nap_look(struct nap *n, uint64_t now_ns)
{
	for (struct nap_proc *np = n->procs; np; np = np->next)
		if (np->primary && np->primary->ops->is_guard)
			nap_guard_look(np, now_ns);
}

/* While others wait for their turn every other tick is theirs. */
static void share_parts(struct nap *n, uint64_t now_ns)
{
	if (n->tick_room_ns > 0)
		n->is_parts_turn = !n->is_parts_turn ||
				   control_next_due_ns(n->control) > now_ns;
}

static void begin_tick(struct nap *n, uint64_t now_ns)
{
	adapt_stretch(n, now_ns);
	n->tick_room_ns = ledger_room_ns(n->ledger);
	n->tick_arming_ns = 0;
	nap_share_room(n);
	share_parts(n, now_ns);
	n->was_short = n->has_armed = n->waits_cheap = false;
	for (struct nap_proc *np = n->procs; np; np = np->next) {
		np->ended = NULL;
		if (!np->primary)
			continue;
		if (np->primary->ops->is_guard)
			nap_guard_tick(np, now_ns);
		else
			nap_poll_begin(np, now_ns);
	}
	/* Each once: in a tick that takes long, those that were put off from
	 * its beginning are due again. */
	n->arm_left = control_nr_plants(n->control);
}

static bool look_on(struct nap *n, uint64_t now_ns, uint64_t until_ns)
{
	for (struct nap_proc *np = n->procs; np; np = np->next)
		if (np->primary && !np->primary->ops->is_guard &&
		    !nap_poll_go_on(np, now_ns, until_ns))
			return false;
	return true;
}

static bool arm_on(struct nap *n, uint64_t now_ns, uint64_t until_ns)
{
	plant_t id;
	while (n->arm_left && may_arm_any(n) && ledger_room_ns(n->ledger) > 0 &&
	       control_next_due(n->control, now_ns, &id)) {
		n->arm_left--;
		if (!arm_plant(control_user(n->control, id), now_ns))
			control_defer(n->control, id, now_ns + n->window_ns);
		if (n->params.clock() >= until_ns)
			return false;
	}
	return true;
}

/* What is planned is carried out before blocks may end. */
static void flush(struct nap *n, uint64_t now_ns)
{
	for (struct nap_proc *np = n->procs; np; np = np->next) {
		if (!np->primary)
			continue;
		if (np->primary->ops->is_guard) {
			nap_guard_arm_flush(np, now_ns);
			continue;
		}
		nap_poll_flush(np, now_ns);
		if (!n->in_tick)
			nap_poll_settle(np, now_ns);
		nap_guard_flush(np, now_ns);
	}
}

bool nap_tick(struct nap *n, uint64_t now_ns)
{
	uint64_t until_ns = n->params.clock() + SLICE_NS;
	if (!n->in_tick)
		begin_tick(n, now_ns);
	n->in_tick =
		!look_on(n, now_ns, until_ns) || !arm_on(n, now_ns, until_ns);
	flush(n, now_ns);
	return n->in_tick;
}

/*
 * Is @b's nap longer by a sixteenth than when it was written last? It is
 * written again only in case nobody lives to write its end, so that much may be
 * missing then; with a record each time, 20 000 stale blocks made 2 GB an hour.
 */
static bool has_grown(const struct nap *n, const struct block *b,
		      uint64_t now_ns)
{
	uint64_t age = now_ns > b->full_ns ? now_ns - b->full_ns : 0;
	uint64_t was =
		n->totals_ns > b->full_ns ? n->totals_ns - b->full_ns : 0;
	unsigned log = 63 - (unsigned)__builtin_clzll(age | 1);
	unsigned shift = log > 4 ? log - 4 : 0;
	return age >> shift != was >> shift;
}

void nap_emit_totals(struct nap *n, uint64_t now_ns)
{
	sites_emit(&n->sites, in_units(session_ns(n, now_ns), FLUSH_UNIT_NS),
		   n->params.emit, n->params.ctx);
	for (struct nap_proc *np = n->procs; np; np = np->next)
		for (uint32_t i = 0; i < np->queue.nr; i++) {
			struct block *b = np->queue.entry[i].block;
			if (b->flags & BLOCK_IN_NAP && has_grown(n, b, now_ns))
				nap_emit_ongoing(b, now_ns, 0);
		}
	n->totals_ns = now_ns;
}

void nap_emit_coverage(struct nap *n)
{
	for (unsigned why = 0; why < COVER_NR; why++) {
		if (!n->cover[why].nr_objects)
			continue;
		struct record r = {
			.event = EV_COVERAGE,
			.cpu = UINT32_MAX,
			.param = why,
			.payload_len = sizeof(n->cover[why]),
			.payload = &n->cover[why],
		};
		n->params.emit(n->params.ctx, &r);
	}
}

void nap_get_stats(const struct nap *n, struct nap_stats *ret)
{
	*ret = (struct nap_stats){
		.nr_known = n->nr_known,
		.nr_naps = n->nr_naps,
	};
	for (const struct nap_proc *np = n->procs; np; np = np->next) {
		ret->nr_armed += np->queue.nr;
		ret->bytes += block_set_bytes(np->blocks) +
			      np->queue.cap * sizeof(*np->queue.entry);
	}
}
