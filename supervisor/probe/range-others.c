/*
 * Jumps that others have put into the text before (marks, mark.h), see range.h.
 * A window is longer than its jump: a stub that went on to the window's end
 * would go past one that begins further on in it. And where such a jump is
 * there is none of ours.
 */
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "supervisor/probe/range-live.h"

/* Functions whose parts lie further apart have stubs of their own. */
#define MOST_BYTES 65536

void ranges_heed_others(struct ranges *r)
{
	r->heeds_others = true;
}

/* Is memory from the file's @lo to @hi not what the file has? */
static bool differs(const struct ranges *r, uint64_t lo, uint64_t hi)
{
	const struct range_image *img = &r->plan->img;
	if (lo < img->lo || hi > img->end || lo >= hi || hi - lo > MOST_BYTES)
		return true;
	_cleanup_free_ uint8_t *now = malloc(hi - lo);
	return !now || tmem_read(r->p, lo + r->bias, now, hi - lo) ||
	       memcmp(now, img->text + (lo - img->lo), hi - lo) != 0;
}

bool range_has_others(const struct ranges *r, const struct live_function *made)
{
	if (!r->heeds_others || !made->nr_windows)
		return false;
	uint64_t lo = made->window[0].addr, hi = lo + 1;
	for (size_t i = 0; i < made->steps->nr; i++)
		if (made->steps->addr[i] >= hi)
			hi = made->steps->addr[i] + 1;
	return differs(r, lo, hi);
}

bool *range_find_others(const struct ranges *r, const struct range_code *code,
			const struct range_windows *w)
{
	bool *ret = r->p && r->heeds_others ? calloc(code->nr + 1, sizeof(*ret))
					    : NULL;
	for (size_t i = 0; ret && i < w->nr; i++) {
		const struct range_window *win = &w->window[i];
		const struct range_insn *in = code->insns,
					*last = &in[win->end - 1];
		/* Most are as they were: one reading tells. */
		if (!differs(r, in[win->first].addr, last->addr + last->len))
			continue;
		for (uint32_t k = win->first; k < win->end; k++)
			ret[k] = differs(r, in[k].addr, in[k].addr + in[k].len);
	}
	return ret;
}

static bool is_noted(const struct ranges *r, uint32_t var)
{
	for (size_t i = 0; i < r->nr_beside; i++)
		if (r->beside[i] == var)
			return true;
	return false;
}

/* Of @w, whose jump has @len bytes: its sites from this instruction on are not
 * seen. */
static uint32_t seen_end(const struct range_window *w,
			 const struct range_code *code, const bool *others,
			 unsigned len)
{
	uint64_t start = code->insns[w->first].addr;
	for (uint32_t k = w->first;
	     k < w->end && code->insns[k].addr < start + len; k++)
		if (others[k])
			return w->first;
	return range_stub_end(w, others) + 1;
}

bool range_note_beside(struct ranges *r, const struct range_code *code,
		       const struct range_windows *w, const bool *others)
{
	for (size_t i = 0; others && i < w->nr; i++) {
		const struct range_window *win = &w->window[i];
		uint32_t end = seen_end(win, code, others,
					win->relay ? CODE_SHORT_BYTES
						   : CODE_JUMP_BYTES);
		for (uint32_t k = 0; k < win->nr_sites; k++) {
			const struct range_site *s =
				&w->site[win->first_site + k];
			if (s->gap < end || s->subscript || is_noted(r, s->var))
				continue;
			if (!ARRAY_ROOM(r->beside, r->nr_beside, r->cap_beside))
				return false;
			r->beside[r->nr_beside++] = s->var;
		}
	}
	return true;
}

const uint32_t *ranges_beside(const struct ranges *r, size_t *nr_ret)
{
	*nr_ret = r->nr_beside;
	return r->beside;
}
