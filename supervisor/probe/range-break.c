/* What of sites without room breakpoints can see: range-break.h. */
#include "supervisor/probe/range-plan.h"

bool range_break_can_read(const struct range_site *s)
{
	return !s->subscript && !s->within.extent;
}

/* Inside of a window the stub runs it, at another address. */
static bool is_moved(const struct range_windows *w, uint32_t gap)
{
	for (size_t i = 0; i < w->nr; i++)
		if (gap > w->window[i].first && gap < w->window[i].end)
			return true;
	return false;
}

void range_breaks_settle(struct range_windows *w)
{
	size_t nr = 0;
	for (size_t i = 0; i < w->nr_breaks; i++)
		if (!is_moved(w, w->brk[i].site.gap))
			w->brk[nr++] = w->brk[i];
	w->nr_breaks = nr;
}

void range_breaks_need(const struct range_windows *w, const struct variables *v,
		       struct range_code *code)
{
	for (size_t i = 0; i < w->nr_breaks; i++)
		code->insns[w->brk[i].site.gap].use |=
			range_site_regs(&w->brk[i].site, v);
}

bool range_breaks_fit(const struct range_windows *w,
		      const struct range_code *code)
{
	for (size_t i = 0; i < w->nr_breaks; i++)
		if (w->brk[i].site.gap >= code->nr ||
		    code->insns[w->brk[i].site.gap].addr != w->brk[i].addr)
			return false;
	return true;
}

const struct range_break *range_plan_breaks(const struct range_plan *plan,
					    uint32_t function, size_t *nr_ret)
{
	const struct range_windows *w = &plan->function[function].windows;
	*nr_ret = w->nr_breaks;
	return w->brk;
}
