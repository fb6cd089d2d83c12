#include "supervisor/control/window.h"

#include <string.h>

#include "supervisor/control/fixed.h"

_Static_assert(WINDOW_SLOTS > WINDOW_NS / WINDOW_SLOT_NS + 1,
	       "the ring holds a whole window");

int64_t overhead_ppb(uint64_t base_ns, uint64_t spent_ns)
{
	if (!spent_ns)
		return 0;
	if (base_ns <= spent_ns)
		return OVERHEAD_MAX_PPB;
	u128 o = (u128)spent_ns * PPB / (base_ns - spent_ns);
	return o > OVERHEAD_MAX_PPB ? OVERHEAD_MAX_PPB : (int64_t)o;
}

void window_init(struct window *w)
{
	memset(w, 0, sizeof(*w));
	w->worst_ppb = -1;
}

static void slot_add(struct window_slot *s, const struct window_slot *o)
{
	s->len_ns = sat_add_u64(s->len_ns, o->len_ns);
	s->base_ns = sat_add_u64(s->base_ns, o->base_ns);
	s->spent_ns = sat_add_u64(s->spent_ns, o->spent_ns);
}

static void slot_sub(struct window_slot *s, const struct window_slot *o)
{
	s->len_ns = sat_sub_u64(s->len_ns, o->len_ns);
	s->base_ns = sat_sub_u64(s->base_ns, o->base_ns);
	s->spent_ns = sat_sub_u64(s->spent_ns, o->spent_ns);
}

static struct window_slot window_sum(const struct window *w)
{
	struct window_slot sum = w->sum;
	slot_add(&sum, &w->current);
	return sum;
}

/*
 * The window that ends here, both ends included: what was charged at this very
 * moment and what was charged when it began. *nr_old_ret slots are older.
 */
static struct window_slot ending_here(const struct window *w,
				      unsigned *nr_old_ret)
{
	struct window_slot sum = window_sum(w);
	unsigned nr = 0;
	for (; nr < w->nr; nr++) {
		const struct window_slot *oldest =
			&w->slots[(w->first + nr) % WINDOW_SLOTS];
		if (sum.len_ns - oldest->len_ns < WINDOW_NS)
			break;
		slot_sub(&sum, oldest);
	}
	*nr_old_ret = nr;
	return sum;
}

static int64_t worst_with(const struct window *w, struct window_slot last)
{
	if (last.len_ns < WINDOW_NS)
		return w->worst_ppb;
	int64_t o = overhead_ppb(last.base_ns, last.spent_ns);
	return o > w->worst_ppb ? o : w->worst_ppb;
}

/* Taken before time goes on, or two bursts exactly 10 s apart would never be in
 * one window. */
static void look_back(struct window *w)
{
	unsigned nr_old;
	struct window_slot last = ending_here(w, &nr_old);
	for (; nr_old; nr_old--) {
		slot_sub(&w->sum, &w->slots[w->first]);
		w->first = (w->first + 1) % WINDOW_SLOTS;
		w->nr--;
	}
	w->worst_ppb = worst_with(w, last);
}

/* Times are cut down to this, so that no sum of slots saturates. */
#define SLOT_MAX_NS (UINT64_MAX / (4 * WINDOW_SLOTS))

void window_advance(struct window *w, uint64_t len_ns, uint64_t base_ns)
{
	struct window_slot *c = &w->current;
	look_back(w);
	c->len_ns = min_u64(sat_add_u64(c->len_ns, len_ns), SLOT_MAX_NS);
	c->base_ns = min_u64(sat_add_u64(c->base_ns, base_ns), SLOT_MAX_NS);
	if (c->len_ns < WINDOW_SLOT_NS)
		return;
	/* look_back() keeps at most WINDOW_NS / WINDOW_SLOT_NS + 1. */
	w->slots[(w->first + w->nr++) % WINDOW_SLOTS] = *c;
	slot_add(&w->sum, c);
	memset(c, 0, sizeof(*c));
}

void window_charge(struct window *w, uint64_t spent_ns)
{
	w->current.spent_ns = min_u64(
		sat_add_u64(w->current.spent_ns, spent_ns), SLOT_MAX_NS);
}

struct window_slot window_last(const struct window *w)
{
	unsigned nr_old;
	return ending_here(w, &nr_old);
}

int64_t window_worst_ppb(const struct window *w)
{
	return worst_with(w, window_last(w));
}
