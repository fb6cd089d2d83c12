/*
 * Arming guards, in parts where a block is large: to protect 512 MiB, and to
 * open it again, takes some 20 ms each, for which who touches it waits. A part
 * follows the other as long as nobody touches the block, which is under
 * watch once all of them stand. An access opens only the part that it meets;
 * the others stay, and are not protected again when the block has its next
 * turn. So one that is used somewhere costs each turn a part, and one that is
 * not is protected once.
 *
 * What it costs when all that is guarded is touched at once is reserved.
 */
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/nap-private.h"

#define RETRY_NS   NSEC_PER_SEC
#define MAX_RETRY  5 /* 32 s: to try may cost as much as to arm */
#define PART_PAGES (NAP_GUARD_PAGES / 2) /* 64 MiB */
#define LAST_PAGES (PART_PAGES + PART_PAGES / 4)
/* Taking the protection from a page: 150 to 230 measured. */
#define PAGE_NS 200
/* Of what it costs to meet a guard that stands for a spell only. */
#define SPELL_DIVISOR 16
/* A block may have this part of what any window has room for. */
#define WINDOW_PARTS 2

static bool is_large(const struct block *b)
{
	return block_nr_pages(b) > LAST_PAGES;
}

/* --- what is reserved --- */

/*
 * Of what large blocks may have @b has a claim to all that it may take, from
 * the beginning of its turn until that is settled; else to what stands of it.
 * Were it only what stands, a few that grow side by side would use up what
 * there is, none of them would ever be complete, and nobody else have a turn.
 */
static uint64_t claim(const struct block *b)
{
	if (!is_large(b) || b->flags & BLOCK_SETTLED)
		return 0;
	return b->flags & BLOCK_DEAR ? block_nr_pages(b) * PAGE_NS : b->held_ns;
}

static void set_flag(struct block *b, enum block_flags flag, bool on)
{
	struct nap *n = block_proc(b)->nap;
	n->claims_ns -= claim(b);
	b->flags = (uint16_t)(on ? b->flags | flag : b->flags & ~flag);
	n->claims_ns += claim(b);
}

/* Let @ns be reserved for @b, no more and no less. */
static void hold(struct block *b, uint64_t ns)
{
	struct nap *n = block_proc(b)->nap;
	uint64_t was_ns = b->held_ns;
	ns = min_u64(ns, UINT32_MAX);
	n->claims_ns -= claim(b);
	if (b->flags & BLOCK_SETTLED) {
		ledger_release_settled(n->ledger, was_ns);
		b->flags &= (uint16_t)~BLOCK_SETTLED;
		was_ns = 0;
	}
	if (ns > was_ns)
		ledger_reserve(n->ledger, ns - was_ns);
	else
		ledger_release(n->ledger, was_ns - ns);
	b->held_ns = (uint32_t)ns;
	n->claims_ns += claim(b);
}

void nap_guard_release(struct block *b)
{
	nap_guard_turn_over(b);
	hold(b, 0);
}

void nap_guard_settle(struct block *b)
{
	if (b->flags & BLOCK_SETTLED || !b->held_ns)
		return;
	ledger_settle(block_proc(b)->nap->ledger, b->held_ns);
	set_flag(b, BLOCK_SETTLED, true);
}

static uint64_t price(const struct block *b, uint64_t nr_pages)
{
	const struct nap_proc *np = block_proc(b);
	uint64_t pages_ns = nr_pages * PAGE_NS;
	/* Of a part the stop is next to nothing. */
	if (is_large(b))
		return pages_ns;
	/* Guards that stand for spells are all opened when one ends, whose
	 * price has that in it, and as soon as more of them are met than there
	 * is room for. */
	if (np->primary->ops->relax)
		return nap_touch_cost(np) / SPELL_DIVISOR + 1;
	return pages_ns + nap_touch_cost(np);
}

void nap_guard_opened(struct block *b, const struct page_range *r)
{
	uint64_t ns = (r->end - r->start) / TPAGE_SIZE * PAGE_NS;
	hold(b, is_large(b) && ns < b->held_ns ? b->held_ns - ns : 0);
}

void nap_guard_turn_over(struct block *b)
{
	set_flag(b, BLOCK_DEAR, false);
}

/* --- parts --- */

static uint64_t part_pages(const struct block *b, uint64_t first)
{
	uint64_t nr = block_nr_pages(b) - first;
	return nr > LAST_PAGES ? PART_PAGES : nr;
}

static bool stands(struct block *b, uint64_t first)
{
	struct access *a = block_proc(b)->primary;
	taddr_t start = block_first_page(b) + first * TPAGE_SIZE;
	struct page_range r = {
		.start = start,
		.end = start + part_pages(b, first) * TPAGE_SIZE,
		.user = b,
	};
	return !a->ops->collect(a, &r, 1) && r.nr_reset != UINT32_MAX;
}

/* The first part from @first on that is to be protected. */
static uint64_t next_part(struct block *b, uint64_t first)
{
	while (first < block_nr_pages(b) && stands(b, first))
		first += part_pages(b, first);
	return first;
}

static uint64_t standing_ns(struct block *b)
{
	uint64_t nr = 0;
	for (uint64_t k = 0; k < block_nr_pages(b); k += part_pages(b, k))
		if (stands(b, k))
			nr += part_pages(b, k);
	return nr * PAGE_NS;
}

/* All large ones together may reserve so much. */
static uint64_t most_ns(const struct block *b)
{
	int64_t most = ledger_window_most_ns(block_proc(b)->nap->ledger);
	return (uint64_t)most / WINDOW_PARTS;
}

/* Would it take all that others could have? */
static bool is_too_large(const struct block *b)
{
	return is_large(b) && block_nr_pages(b) * PAGE_NS > most_ns(b);
}

/* A large block's turn may begin: there is room for all of it beside others.
 * False: they have it. */
static bool make_claim(struct block *b)
{
	set_flag(b, BLOCK_DEAR, true);
	if (block_proc(b)->nap->claims_ns <= most_ns(b))
		return true;
	set_flag(b, BLOCK_DEAR, false);
	return false;
}

static bool plan(struct block *b, uint64_t first, uint64_t nr)
{
	struct nap_proc *np = block_proc(b);
	if (!nap_ranges_add(&np->plan, b, first, nr))
		return false;
	np->planned_pages += nr;
	hold(b, b->held_ns + price(b, nr));
	return true;
}

bool nap_guard_is_full(const struct nap_proc *np)
{
	return np->plan.nr >= NAP_GUARD_BATCH ||
	       np->planned_pages >= NAP_GUARD_PAGES;
}

/* --- arming --- */

static void not_armed(struct block *b, uint64_t now_ns)
{
	struct nap *n = block_proc(b)->nap;
	unsigned before = b->nr_failed < MAX_RETRY ? b->nr_failed : MAX_RETRY;
	/* Once may be as the process ends. */
	if (b->nr_failed || !(b->flags & (BLOCK_WATCHED | BLOCK_EVER_SEEN)))
		b->flags |= BLOCK_STUCK;
	b->nr_failed = (before + 1) & 0xf;
	uint64_t until_ns = now_ns + (RETRY_NS << before);
	if (b->state == BLOCK_IDLE)
		control_defer(n->control, b->plant, until_ns);
	else
		control_disarm(n->control, b->plant, now_ns, until_ns);
	b->state = BLOCK_IDLE;
	nap_guard_turn_over(b);
	nap_queue_remove(&block_proc(b)->queue, b);
}

/* All of @b stands. */
static void is_full(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	b->flags |= BLOCK_WATCHED;
	b->nr_failed = 0;
	b->state = BLOCK_WATCH;
	b->full_ns = b->checked_ns = np->nap->params.clock();
	np->queue.entry[b->queue_pos].due_ns = nap_recheck_ns(b, now_ns);
}

/* A turn begins: some of @b stands, and what does not follows. */
static bool begin(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	struct nap *n = np->nap;
	if (!nap_queue_add(&np->queue, b, now_ns)) {
		control_defer(n->control, b->plant, now_ns + n->window_ns);
		return false;
	}
	b->armed_ns = now_ns;
	b->state = BLOCK_WIDEN;
	control_armed(n->control, b->plant, now_ns);
	return true;
}

static void armed(struct block *b, struct page_range *r, uint64_t now_ns)
{
	struct access *a = block_proc(b)->primary;
	if (b->state == BLOCK_IDLE && !begin(b, now_ns)) {
		a->ops->disarm(a, r, 1);
		nap_guard_opened(b, r);
		nap_guard_turn_over(b);
		return;
	}
	b->flags &= (uint16_t)~BLOCK_STUCK;
	b->cursor = (uint32_t)((r->end - block_first_page(b)) / TPAGE_SIZE);
	if (b->cursor == block_nr_pages(b))
		is_full(b, now_ns);
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
		nap_guard_opened(b, &r[i]);
		not_armed(b, now_ns);
	}
}

bool nap_guard_arm(struct block *b, uint64_t now_ns)
{
	uint64_t first = 0;
	if (is_too_large(b)) {
		not_armed(b, now_ns);
		return true;
	}
	if (is_large(b)) {
		if (!make_claim(b))
			return false;
		hold(b, standing_ns(b));
		first = next_part(b, 0);
	}
	b->flags |= BLOCK_ARMED_ONCE;
	if (first < block_nr_pages(b)) {
		if (plan(b, first, part_pages(b, first)))
			return true;
		nap_guard_turn_over(b);
		return false;
	}
	if (begin(b, now_ns))
		is_full(b, now_ns);
	else
		nap_guard_turn_over(b);
	return true;
}

void nap_guard_widen(struct block *b, uint64_t now_ns)
{
	struct nap_proc *np = block_proc(b);
	struct nap *n = np->nap;
	struct nap_queue_entry *e = &np->queue.entry[b->queue_pos];
	uint64_t first = next_part(b, b->cursor);

	b->cursor = (uint32_t)first;
	if (first == block_nr_pages(b)) {
		is_full(b, now_ns);
		return;
	}
	/* Others have their turn in between, and half of each batch. */
	if (!n->is_parts_turn || np->planned_pages >= PART_PAGES ||
	    np->is_held_back || ledger_room_ns(n->ledger) <= 0)
		return;
	e->due_ns = now_ns + NAP_QUIET_WINDOWS * n->window_ns;
	plan(b, first, part_pages(b, first));
}
