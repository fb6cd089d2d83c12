/*
 * What may still be learned at a window, see range.h. Of values that come as
 * they like, the next is beyond all before with a chance of one in as many; who
 * shares time out evenly by what it costs does justice to that. What is known
 * beside is how much wider a variable became when it did, and that some are
 * complete: the more values came since, the more likely.
 */
#include "supervisor/control/fixed.h"
#include "supervisor/probe/range-live.h"

/* Of one that has had one value so far. */
#define FIRST_GAIN (RANGE_WORTH / 4)

static bool is_full(const struct var_type *t, int64_t lo, int64_t hi)
{
	unsigned bits = t->bit_size ? t->bit_size : 8u * t->width;
	uint64_t ones = UINT64_MAX >> (64 - bits);
	if (!t->is_signed)
		return !lo && (uint64_t)hi == ones;
	return lo == -(int64_t)(ones >> 1) - 1 && hi == (int64_t)(ones >> 1);
}

/* Is the constant of @s, which becomes a value of type @t, within? */
static bool is_within(const struct var_type *t, const struct range_site *s,
		      int64_t lo, int64_t hi)
{
	unsigned spare = 64 - 8u * t->width;
	uint64_t top = (uint64_t)s->offset << spare;
	if (t->bit_size)
		return false;
	if (t->is_signed)
		return lo <= (int64_t)top >> spare &&
		       (int64_t)top >> spare <= hi;
	return (uint64_t)lo <= top >> spare && top >> spare <= (uint64_t)hi;
}

/* Cells that others have emptied begin anew. */
static uint32_t worth_of(struct live_worth *w, uint64_t width, uint64_t hits,
			 bool *doubled)
{
	uint32_t more = FIRST_GAIN;
	w->nr += hits;
	*doubled |= w->nr_then && width / 2 >= w->width && width;
	if (w->nr_then && width > w->width)
		more = (uint32_t)((double)(width - w->width) / (double)width *
				  RANGE_WORTH);
	if (!w->nr_then || width > w->width) {
		w->gain = w->nr_then ? (w->gain + more) / 2 : more;
		w->nr_then = w->nr;
	}
	w->width = width;
	uint64_t nr = max_u64(w->nr, 1);
	if (w->nr_then <= UINT32_MAX)
		return (uint32_t)(w->gain * w->nr_then / nr) + 1;
	return (uint32_t)((u128)w->gain * w->nr_then / nr) + 1;
}

/* Stores that may be to an array (range-site.h, range_within), and so far never
 * were: that the next is has a chance of one in as many, too. */
static uint32_t fruitless(struct live_worth *w, uint64_t hits)
{
	w->nr = sat_add_u64(w->nr, hits);
	return (uint32_t)(RANGE_WORTH / max_u64(w->nr, 1)) + 1;
}

static uint32_t site_worth(struct ranges *r, const struct range_site *s,
			   uint64_t hits, bool *doubled)
{
	const struct var_type *t = range_cell_type(r->plan->v, s->var);
	uint32_t cell = r->plan->cell_of[s->var];
	int64_t lo, hi;
	if (cell == UINT32_MAX)
		return RANGE_WORTH;
	if (!ranges_read(r, s->var, &lo, &hi))
		return fruitless(&r->worth[cell], hits);
	if (is_full(t, lo, hi) ||
	    (s->source == RS_CONST && is_within(t, s, lo, hi)))
		return 0;
	return worth_of(&r->worth[cell], (uint64_t)hi - (uint64_t)lo, hits,
			doubled);
}

static const struct range_window *window_of(const struct range_plan *plan,
					    uint32_t window,
					    const struct range_windows **ret)
{
	uint32_t f = range_plan_function_of(plan, window);
	if (f == UINT32_MAX)
		return NULL;
	const struct range_plan_function *pf = &plan->function[f];
	*ret = &pf->windows;
	return &pf->windows.window[window - pf->first_window];
}

/* One after the other leads there, and nobody needs what the last one leads to
 * until all are on their way. */
void ranges_worth_ahead(const struct ranges *r, const struct range_news *news,
			size_t nr)
{
	const struct range_plan *plan = r->plan;
	const struct range_windows *of = NULL;
	const struct range_window *w;
	for (size_t i = 0; i < nr; i++)
		if ((w = window_of(plan, news[i].window, &of)))
			__builtin_prefetch(w);
	for (size_t i = 0; i < nr; i++)
		if ((w = window_of(plan, news[i].window, &of)) && w->nr_sites)
			__builtin_prefetch(&of->site[w->first_site]);
	for (size_t i = 0; i < nr; i++) {
		if (!(w = window_of(plan, news[i].window, &of)) || !w->nr_sites)
			continue;
		uint32_t var = of->site[w->first_site].var;
		uint32_t cell = plan->cell_of[var];
		__builtin_prefetch(range_cell_type(plan->v, var));
		if (cell == UINT32_MAX || !r->data)
			continue;
		__builtin_prefetch((const struct range_cell *)r->data + cell);
		__builtin_prefetch(&r->worth[cell]);
	}
}

uint32_t ranges_worth(struct ranges *r, uint32_t window, uint64_t hits,
		      bool *doubled_ret)
{
	const struct range_windows *of = NULL;
	const struct range_window *w = window_of(r->plan, window, &of);
	uint32_t most = 0;
	*doubled_ret = false;
	if (!w)
		return RANGE_WORTH;
	for (uint32_t i = 0; i < w->nr_sites; i++) {
		uint32_t worth = site_worth(r, &of->site[w->first_site + i],
					    hits, doubled_ret);
		most = worth > most ? worth : most;
	}
	return most;
}
