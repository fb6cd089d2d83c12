/* Windows for marks, see mark-plan.h. */
#include "supervisor/probe/mark-plan.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/code.h"
#include "supervisor/probe/mark-function.h"
#include "supervisor/probe/range-window.h"

#define MAX_BACK 8 /* instructions a window may begin before its spot */

void mark_plan_init(struct mark_plan *plan)
{
	*plan = (struct mark_plan){.why_refused = ""};
}

void mark_plan_deinit(struct mark_plan *plan)
{
	free(plan->spot);
	free(plan->window);
	mark_plan_init(plan);
}

void mark_plan_refuse(struct mark_plan *plan, uint64_t at, const char *why)
{
	if (plan->nr_refused++)
		return;
	plan->refused_at = at;
	plan->why_refused = why;
}

int mark_plan_spot(struct mark_plan *plan, const struct mark_spot *spot,
		   struct smco_err *err)
{
	if (plan->nr_spots == MARK_MAX) {
		mark_plan_refuse(plan, spot->addr, "too many in one file");
		return 0;
	}
	if (plan->nr_spots == plan->cap_spots) {
		size_t cap = plan->cap_spots * 2 + 16;
		struct mark_spot *more =
			realloc(plan->spot, cap * sizeof(*more));
		if (!more)
			return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
		plan->spot = more;
		plan->cap_spots = cap;
	}
	plan->spot[plan->nr_spots++] = *spot;
	return 0;
}

/* --- one window --- */

struct placer {
	struct mark_plan *plan;
	struct mark_code *mc;
	/* Just now: */
	struct range_code code; /* of a function, or a part of one */
	uint64_t lo, hi;	/* that it is; none if both are 0 */
	size_t nr_placed;	/* spots that are kept */
	bool has_told;		/* that spots are code */
};

static bool end_window(const struct placer *p, struct mark_window *w,
		       uint64_t room)
{
	w->room = (uint8_t)room;
	size_t n = room > w->len ? room : w->len;
	return n <= sizeof(w->bytes) &&
	       mark_code_bytes(p->mc, w->addr, w->bytes, n);
}

/* A nop that is long enough needs nothing around it. */
static bool long_nop(const struct placer *p, uint64_t addr,
		     struct mark_window *ret)
{
	uint8_t bytes[16];
	struct code_insn in;
	if (!mark_code_bytes(p->mc, addr, bytes, sizeof(bytes)) ||
	    !code_decode(bytes, sizeof(bytes), addr, &in) ||
	    in.z.mnemonic != ZYDIS_MNEMONIC_NOP ||
	    in.z.length < CODE_JUMP_BYTES)
		return false;
	*ret = (struct mark_window){
		.addr = addr,
		.len = in.z.length,
		.nr_insns = 1,
		.goes_on = true,
	};
	return end_window(p, ret, in.z.length);
}

/* The end of the best window with instruction @g, none of which is before
 * address @lowest; 0: there is none. */
static uint32_t around(const struct placer *p, uint32_t g, uint64_t lowest,
		       uint32_t *first_ret)
{
	const struct range_code *code = &p->code;
	for (uint32_t b = g; g - b <= MAX_BACK; b--) {
		uint32_t end = range_window_end(code, mark_code_image(p->mc), b,
						g - b + 1);
		if (end) {
			*first_ret = b;
			return end;
		}
		/* All who come to it must have come through the window. */
		if (!b || code->insns[b].bits & RB_LEADER ||
		    !range_falls(code, b - 1) ||
		    code->insns[b - 1].kind == RK_CALL ||
		    code->insns[b - 1].addr < lowest)
			break;
	}
	return 0;
}

static const char *window_of(const struct placer *p, uint32_t first,
			     uint32_t end, struct mark_window *ret)
{
	const struct range_insn *in = &p->code.insns[first],
				*last = &p->code.insns[end - 1];
	uint64_t len = last->addr + last->len - in->addr;
	*ret = (struct mark_window){
		.addr = in->addr,
		.len = (uint8_t)len,
		.nr_insns = (uint8_t)(end - first),
		.goes_on =
			range_falls(&p->code, end - 1) && last->kind != RK_CALL,
	};
	if (len > sizeof(ret->bytes) ||
	    !end_window(p, ret, len < CODE_JUMP_BYTES ? CODE_JUMP_BYTES : len))
		return "its bytes are not in the file";
	return NULL;
}

/* One of its own for @s, behind @last, the one before it (or NULL), or else
 * that one made longer: then *ret begins where it does. */
static const char *window_at(const struct placer *p, const struct mark_spot *s,
			     const struct mark_window *last,
			     struct mark_window *ret)
{
	const struct range_code *code = &p->code;
	size_t g = range_code_find(code, s->addr);
	uint64_t lowest =
		last ? last->addr + (last->len > last->room ? last->len
							    : last->room)
		     : 0;
	uint32_t first, end = 0;
	if (s->behind && lowest < s->addr)
		lowest = s->addr; /* what is before it is to stay */
	if (g == code->nr || code->insns[g].addr != s->addr)
		return "no instruction begins there";
	if (s->addr >= lowest)
		end = around(p, (uint32_t)g, lowest, &first);
	if (!end && last) {
		first = (uint32_t)range_code_find(code, last->addr);
		if (first < g && code->insns[first].addr == last->addr)
			end = range_window_end(code, mark_code_image(p->mc),
					       first, (uint32_t)g - first + 1);
	}
	return end ? window_of(p, first, end, ret)
		   : "there is no room for a jump";
}

/* --- all of them --- */

static const char *come_to(struct placer *p, uint64_t addr,
			   struct smco_err *err)
{
	if (mark_code_load(p->mc, err))
		return "its code cannot be read";
	/* A probe is a nop, often behind a call. */
	for (size_t i = 0; !p->has_told && i < p->plan->nr_spots; i++)
		mark_code_is_code(p->mc, p->plan->spot[i].addr);
	p->has_told = true;
	if (addr >= p->lo && addr < p->hi)
		return p->code.refused;
	range_code_deinit(&p->code);
	p->lo = p->hi = 0;
	struct range_chunk c;
	if (!mark_code_part(p->mc, addr, 0, &c))
		return "it is in no function";
	if (range_code_init(&p->code, mark_code_image(p->mc), &c, 1, err))
		return "out of memory";
	p->lo = c.lo;
	p->hi = c.hi;
	return p->code.refused;
}

/* Into the window before it, or one of its own. */
static const char *place_there(struct placer *p, const struct mark_spot *s,
			       struct smco_err *err)
{
	struct mark_plan *plan = p->plan;
	struct mark_window *w =
		plan->nr_windows ? &plan->window[plan->nr_windows - 1] : NULL;
	struct mark_window own;
	if (w && s->addr >= w->addr && s->addr < w->addr + w->len) {
		w->nr_spots++;
		return NULL;
	}
	if ((w && s->addr < w->addr + w->room) || !long_nop(p, s->addr, &own)) {
		const char *why = come_to(p, s->addr, err);
		if (!why)
			why = window_at(p, s, w, &own);
		if (why)
			return why;
	}
	if (w && own.addr == w->addr) {
		own.first_spot = w->first_spot;
		own.nr_spots = w->nr_spots + 1;
		*w = own;
		return NULL;
	}
	own.first_spot = (uint32_t)p->nr_placed;
	own.nr_spots = 1;
	plan->window[plan->nr_windows++] = own;
	return NULL;
}

static const char *place(struct placer *p, struct mark_spot *s,
			 struct smco_err *err)
{
	const char *why = place_there(p, s, err);
	if (!why || !s->behind)
		return why;
	s->addr -= s->behind;
	s->behind = 0;
	s->pushed = 0;
	return place_there(p, s, err);
}

static int by_address(const void *a, const void *b)
{
	const struct mark_spot *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	/* A function that returns at once ends behind its beginning. */
	return x->what < y->what ? -1 : x->what > y->what;
}

int mark_plan_place(struct mark_plan *plan, struct mark_code *code,
		    struct smco_err *err)
{
	struct placer p = {.plan = plan, .mc = code};
	struct smco_err why_not = {0};
	plan->window = calloc(plan->nr_spots + 1, sizeof(*plan->window));
	if (!plan->window)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (plan->nr_spots)
		qsort(plan->spot, plan->nr_spots, sizeof(*plan->spot),
		      by_address);
	for (size_t i = 0; i < plan->nr_spots; i++) {
		const char *why = place(&p, &plan->spot[i], &why_not);
		if (why)
			mark_plan_refuse(plan, plan->spot[i].addr, why);
		else
			plan->spot[p.nr_placed++] = plan->spot[i];
		if (why_not.code == SMCO_NOMEM)
			break;
	}
	range_code_deinit(&p.code);
	plan->nr_spots = p.nr_placed;
	return why_not.code == SMCO_NOMEM
		       ? smco_fail(err, SMCO_NOMEM, 0, "out of memory")
		       : 0;
}
