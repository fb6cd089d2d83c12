/*
 * Windows, see range-window.h. From the first site to the last: a site is
 * served by the window before it if that reaches so far, or can be made to;
 * otherwise by a window of its own, which may begin before the site, or behind
 * it as long as the value stays where it is.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/code.h"
#include "supervisor/probe/range-edge.h"
#include "supervisor/probe/range-relay.h"
#include "supervisor/probe/range-window.h"

#define MAX_BACK   8 /* instructions a window may begin before its site */
#define MAX_SLIDE  8 /* instructions a site may move on */
#define MAX_EXTEND 4 /* instructions a window grows rather than a new one */
#define MAX_INSNS  24

struct placer {
	const struct range_code *code;
	const struct range_image *img;
	const struct variables *v;
	const struct range_sites *sites;
	struct range_windows *out;
	/* Made when the first site finds no room. */
	struct range_edges edges;
	uint8_t *state;			   /* see range_settled */
	const struct range_site *state_of; /* NULL: of none yet */
	bool by_state; /* the site just now is for all who are settled */
	/* The function's first instruction stays where that can be: there
	 * others set uprobes, of which the kernel runs what the file has and
	 * goes on behind it, in the middle of our jump. */
	bool keeps_entry;
	bool is_short; /* two bytes are enough, with a relay */
	bool no_memory;
};

static uint32_t within_regs(const struct range_within *w)
{
	uint32_t regs = w->extent && w->scale ? 1u << w->index : 0;
	if (w->extent && w->base != RANGE_NO_REG)
		regs |= 1u << w->base | 1u << w->frame;
	return regs;
}

uint32_t range_site_regs(const struct range_site *site,
			 const struct variables *v)
{
	uint32_t regs = within_regs(&site->within);
	switch (site->source) {
	case RS_REG:
	case RS_FRAME:
	case RS_SUM:
	case RS_ELEMENT:
		return regs | 1u << site->reg;
	case RS_EXPR: {
		const struct var_place *p = &v->places[site->place];
		for (uint32_t i = 0; i < p->nr_ops; i++) {
			const struct var_op *op = &v->ops[p->first_op + i];
			if (op->code == VAR_OP_REG)
				regs |= 1u << range_reg_of_dwarf(
						(unsigned)op->arg);
		}
		return regs;
	}
	default:
		return regs;
	}
}

static bool reads_memory(const struct range_site *site)
{
	return site->source == RS_FRAME || site->source == RS_DATA ||
	       site->source == RS_TLS || site->source == RS_EXPR ||
	       site->source == RS_ELEMENT;
}

/*
 * Is the value of @s at gap @k the variable's for everybody who comes there? Of
 * a place that begins at the site the compiler says so, as long as it lasts:
 * what a register holds at an address does not depend on the way there.
 */
static bool is_for_all(const struct placer *p, const struct range_site *s,
		       uint32_t k)
{
	const struct var_place *at = &p->v->places[s->place];
	if (p->by_state)
		return range_is_settled(p->state, k);
	if (s->subscript)
		return k == s->gap;
	if (k == s->gap)
		return !s->fall;
	return !s->fall && at->flags & VAR_BEGINS && s->source != RS_FRAME &&
	       s->source != RS_DATA && s->source != RS_TLS &&
	       p->code->insns[k].addr >= at->lo &&
	       p->code->insns[k].addr < at->hi;
}

/* May the site at gap @k move behind instruction @k? Those who pass where it
 * is now do so there, and others only if it is for all. */
static bool can_slide(const struct placer *p, const struct range_site *s,
		      uint32_t k)
{
	const struct range_insn *in = &p->code->insns[k];
	if (in->kind != RK_PLAIN || !range_falls(p->code, k))
		return false;
	if (in->bits & RB_LEADER && !is_for_all(p, s, k))
		return false;
	if (reads_memory(s) && in->bits & RB_STORES)
		return false;
	return !(in->wrote & range_site_regs(s, p->v));
}

/*
 * The end of the window that begins at instruction @first and holds at least
 * @least instructions and as many bytes as a jump has; 0 if there is none.
 */
static uint32_t window_end(const struct placer *p, uint32_t first,
			   uint32_t least)
{
	const struct range_code *code = p->code;
	uint64_t bytes = 0;
	unsigned jump = p->is_short ? CODE_SHORT_BYTES : CODE_JUMP_BYTES;
	if (code->insns[first].bits & RB_UNREACHED)
		return 0;
	for (uint32_t i = first; i < code->nr && i - first < MAX_INSNS; i++) {
		const struct range_insn *in = &code->insns[i];
		if (i > first && in->bits & RB_LEADER)
			return 0;
		if (in->bits & RB_PINNED || in->kind == RK_BAD ||
		    in->kind == RK_CALL_TO || in->kind == RK_STOP)
			return 0;
		bytes += in->len;
		bool enough = bytes >= jump && i + 1 - first >= least;
		if (range_falls(code, i) && in->kind != RK_CALL) {
			if (enough)
				return i + 1;
			continue;
		}
		/* Nothing comes back, or not to what was overwritten. */
		if (enough)
			return i + 1;
		if (i + 1 - first < least || in->kind == RK_CALL || p->is_short)
			return 0;
		uint32_t k = i + 1;
		while (bytes < CODE_JUMP_BYTES && k < code->nr &&
		       code->insns[k].bits & RB_UNREACHED &&
		       code->insns[k].addr ==
			       code->insns[k - 1].addr + code->insns[k - 1].len)
			bytes += code->insns[k++].len;
		if (bytes < CODE_JUMP_BYTES &&
		    (k == code->nr ||
		     code->insns[k].addr !=
			     code->insns[k - 1].addr + code->insns[k - 1].len))
			bytes += range_room_behind(
				p->img,
				code->insns[k - 1].addr +
					code->insns[k - 1].len,
				CODE_JUMP_BYTES - bytes);
		return bytes >= CODE_JUMP_BYTES ? i + 1 : 0;
	}
	return 0;
}

uint32_t range_window_end(const struct range_code *code,
			  const struct range_image *img, uint32_t first,
			  uint32_t least)
{
	const struct placer p = {.code = code, .img = img};
	return window_end(&p, first, least);
}

/* Does a window [first, end) see exactly those who pass gap @k? */
static bool serves(const struct placer *p, uint32_t first, uint32_t end,
		   uint32_t k, bool fall)
{
	if (k < first || k > end)
		return false;
	bool leader = p->code->insns[k].bits & RB_LEADER;
	if (k == first)
		return !fall || !leader;
	if (!range_falls(p->code, k - 1) ||
	    p->code->insns[k - 1].kind == RK_CALL)
		return false;
	return k < end || fall || !leader;
}

/* The gaps at which @s can be looked at are [s->gap, last]. */
static uint32_t last_gap(const struct placer *p, const struct range_site *s)
{
	uint32_t k = s->gap;
	while (k - s->gap < MAX_SLIDE && k + 1 < p->code->nr &&
	       can_slide(p, s, k))
		k++;
	return k;
}

/* The best gap for @s in the window; UINT32_MAX if there is none. */
static uint32_t best_gap(const struct placer *p, const struct range_site *s,
			 uint32_t last, uint32_t first, uint32_t end)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t k = s->gap; k <= last && k <= end; k++) {
		if (!serves(p, first, end, k, !is_for_all(p, s, k)))
			continue;
		if (!(p->code->insns[k].live & RANGE_FLAGS))
			return k;
		if (best == UINT32_MAX)
			best = k;
	}
	return best;
}

static bool ends_in_call(const struct placer *p, uint32_t end)
{
	return p->code->insns[end - 1].kind == RK_CALL;
}

struct choice {
	uint32_t first, end, gap;
	int score;
	uint64_t relay; /* of a short jump */
};

/* Padding in reach of instruction @first, if that is free until @end; or 0. */
static uint64_t relay_of(const struct placer *p, uint32_t first, uint32_t end)
{
	const struct range_windows *w = p->out;
	for (size_t i = 0; i < w->nr; i++)
		if (w->window[i].first < end && first < w->window[i].end)
			return 0;
	return range_relay_find(p->code, p->img, w, p->code->insns[first].addr);
}

static struct choice choose(const struct placer *p, const struct range_site *s,
			    uint32_t last, uint32_t lowest)
{
	struct choice best = {.score = INT32_MIN};
	uint32_t low = s->gap > MAX_BACK ? s->gap - MAX_BACK : 0;
	for (uint32_t b = last + 1; b-- > low && b >= lowest;) {
		uint32_t least = s->gap > b ? s->gap - b : 1;
		uint32_t end = window_end(p, b, least);
		uint32_t gap = end ? best_gap(p, s, last, b, end) : UINT32_MAX;
		uint64_t relay = 0;
		if (p->is_short && gap != UINT32_MAX)
			relay = relay_of(p, b, end);
		if (gap != UINT32_MAX && (!p->is_short || relay)) {
			bool dead = !(p->code->insns[gap].live & RANGE_FLAGS);
			/* One far ahead leaves the sites between it and
			 * here to themselves. */
			int ahead = b > s->gap ? (int)(b - s->gap) : 0;
			int score = 16 * dead - 64 * ends_in_call(p, end) -
				    2 * (int)(end - b) - 8 * ahead -
				    48 * (!b && p->keeps_entry);
			if (score > best.score)
				best = (struct choice){b, end, gap, score,
						       relay};
		}
		/* Behind the start of a block windows of it cannot begin. */
		if (b <= s->gap && b > 0 &&
		    (!range_falls(p->code, b - 1) ||
		     (p->code->insns[b].bits & RB_LEADER &&
		      !(b == s->gap && s->fall))))
			break;
	}
	return best;
}

/* Why there is no window for it: for the report. */
static enum range_refusal why_not(const struct placer *p,
				  const struct range_site *s)
{
	for (uint32_t i = s->gap ? s->gap - 1 : 0;
	     i <= s->gap + 1 && i < p->code->nr; i++)
		if (p->code->insns[i].bits & RB_PINNED &&
		    !(p->code->insns[i].bits & RB_ENDBR))
			return RR_PINNED;
	return RR_NO_ROOM;
}

static void serve(const struct placer *p, const struct range_site *s,
		  uint32_t gap)
{
	struct range_windows *out = p->out;
	struct range_site *to = &out->site[out->nr_sites++];
	*to = *s;
	to->fall = !is_for_all(p, s, gap);
	to->gap = gap;
	out->window[out->nr - 1].nr_sites++;
}

static bool place(struct placer *p, const struct range_site *s)
{
	struct range_windows *out = p->out;
	struct range_window *w = out->nr ? &out->window[out->nr - 1] : NULL;
	uint32_t last = last_gap(p, s), gap = UINT32_MAX;

	if (w)
		gap = best_gap(p, s, last, w->first, w->end);
	if (w && gap == UINT32_MAX && s->gap >= w->end &&
	    s->gap - w->end <= MAX_EXTEND) {
		uint32_t end = window_end(p, w->first, s->gap - w->first);
		/* A site at its old end must not be left out. */
		if (end && !ends_in_call(p, end))
			gap = best_gap(p, s, last, w->first, end);
		if (gap != UINT32_MAX)
			w->end = end;
	}
	if (gap == UINT32_MAX) {
		struct choice c = choose(p, s, last, w ? w->end : 0);
		if (c.score == INT32_MIN)
			return false;
		gap = c.gap;
		out->window[out->nr++] = (struct range_window){
			.first = c.first,
			.end = c.end,
			.first_site = (uint32_t)out->nr_sites};
	}
	serve(p, s, gap);
	return true;
}

/*
 * @s as those have it who did not come from its write: what was written, and
 * the register that it came from, only one way has. False: not to be told.
 */
static bool from_place(const struct placer *p, const struct range_site *s,
		       struct range_site *ret)
{
	const struct var_place *at = &p->v->places[s->place];
	*ret = *s;
	if (s->subscript || s->apart || p->v->vars[s->var].type.nr_dims ||
	    p->v->vars[s->var].flags & VAR_IN_UNION)
		return false;
	if (at->kind == VAR_MEM) {
		ret->source = RS_FRAME;
		ret->reg = range_reg_of_dwarf(at->reg);
		ret->offset = at->offset;
	} else if (at->kind == VAR_ADDR || at->kind == VAR_TLS) {
		ret->source = at->kind == VAR_TLS ? RS_TLS : RS_DATA;
		ret->reg = RANGE_NO_REG;
		ret->offset = at->offset;
	}
	return true;
}

/* Has the variable a value whichever way control comes to the site? Then it may
 * as well be looked at behind the join: at *s. */
static bool is_settled_behind(struct placer *p,
			      const struct range_site *written,
			      struct range_site *s)
{
	if (p->no_memory || !written->fall || !from_place(p, written, s))
		return false;
	if (!p->state) {
		p->state = malloc(p->code->nr);
		p->no_memory =
			!p->state || !range_edges_init(&p->edges, p->code);
		if (p->no_memory)
			return false;
	}
	if (!p->state_of || p->state_of->var != s->var ||
	    p->state_of->place != s->place)
		range_settled(&p->edges, p->code, p->v, p->sites, s, p->state);
	p->state_of = written;
	return range_is_settled(p->state, s->gap);
}

static bool place_behind(struct placer *p, const struct range_site *written)
{
	struct range_site own;
	if (!is_settled_behind(p, written, &own))
		return false;
	p->by_state = true;
	bool placed = place(p, &own);
	p->by_state = false;
	return placed;
}

/* A window of its own for a short jump, which windows behind it move on for. */
static struct range_window *add_short(const struct placer *p,
				      const struct choice *c)
{
	struct range_windows *out = p->out;
	size_t at = 0;
	while (at < out->nr && out->window[at].first < c->first)
		at++;
	struct range_window *w = &out->window[at];
	uint32_t first_site =
		at < out->nr ? w->first_site : (uint32_t)out->nr_sites;
	memmove(w + 1, w, (out->nr++ - at) * sizeof(*w));
	*w = (struct range_window){.first = c->first,
				   .end = c->end,
				   .first_site = first_site,
				   .relay = c->relay};
	return w;
}

static void serve_in(const struct placer *p, const struct range_site *s,
		     uint32_t gap, struct range_window *w)
{
	struct range_windows *out = p->out;
	struct range_site *to = &out->site[w->first_site + w->nr_sites++];
	memmove(to + 1, to,
		(size_t)(out->site + out->nr_sites++ - to) * sizeof(*to));
	*to = *s;
	to->fall = !is_for_all(p, s, gap);
	to->gap = gap;
	while (++w < out->window + out->nr)
		w->first_site++;
}

/* After all that have room: in such a window that is there, or a new one. */
static bool place_short(struct placer *p, const struct range_site *s)
{
	struct range_windows *out = p->out;
	struct range_window *w = NULL;
	uint32_t last = last_gap(p, s), gap = UINT32_MAX;
	for (size_t i = 0; i < out->nr && gap == UINT32_MAX; i++) {
		w = &out->window[i];
		if (w->relay)
			gap = best_gap(p, s, last, w->first, w->end);
	}
	if (gap == UINT32_MAX) {
		p->is_short = true;
		struct choice c = choose(p, s, last, 0);
		p->is_short = false;
		if (c.score == INT32_MIN)
			return false;
		gap = c.gap;
		w = add_short(p, &c);
	}
	serve_in(p, s, gap, w);
	return true;
}

/* Is there an instruction that just those come to who pass the site, with the
 * value where it is? */
static bool add_break(struct placer *p, const struct range_site *s)
{
	struct range_windows *out = p->out;
	uint32_t last = last_gap(p, s);
	for (uint32_t k = s->gap; k <= last && k < p->code->nr; k++) {
		const struct range_insn *in = &p->code->insns[k];
		if (in->kind == RK_BAD || in->bits & RB_UNREACHED ||
		    (in->bits & RB_LEADER && !is_for_all(p, s, k)))
			continue;
		struct range_break *b = &out->brk[out->nr_breaks++];
		*b = (struct range_break){.addr = in->addr, .site = *s};
		b->site.gap = k;
		return true;
	}
	return false;
}

/* No jump for @s. */
static void refuse(struct placer *p, const struct range_site *s)
{
	struct range_site own;
	p->out->nr_refused[why_not(p, s)]++;
	if (range_break_can_read(s) && add_break(p, s))
		return;
	if (!is_settled_behind(p, s, &own) || !range_break_can_read(&own))
		return;
	p->by_state = true;
	add_break(p, &own);
	p->by_state = false;
}

static int by_gap(const void *a, const void *b)
{
	const struct range_site *x = a, *y = b;
	if (x->gap != y->gap)
		return x->gap < y->gap ? -1 : 1;
	return x->var < y->var ? -1 : x->var > y->var;
}

/* Does no value that is there at the start need a sensor just there? */
static bool may_keep_entry(const struct placer *p)
{
	for (size_t i = 0; i < p->sites->nr && !p->sites->site[i].gap; i++)
		if (!last_gap(p, &p->sites->site[i]))
			return false;
	return p->code->nr > 0;
}

int range_windows_find(struct range_windows *ret, const struct range_code *code,
		       const struct range_image *img, const struct variables *v,
		       const struct range_sites *sites, struct smco_err *err)
{
	struct placer p = {
		.code = code, .img = img, .v = v, .sites = sites, .out = ret};
	memset(ret, 0, sizeof(*ret));
	ret->window = calloc(sites->nr + 1, sizeof(*ret->window));
	ret->site = calloc(sites->nr + 1, sizeof(*ret->site));
	_cleanup_free_ uint32_t *left =
		calloc(sites->nr + 1, sizeof(*left)); /* without a window */
	size_t nr_left = 0;
	if (!ret->window || !ret->site || !left) {
		range_windows_deinit(ret);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	p.keeps_entry = may_keep_entry(&p);
	for (size_t i = 0; i < sites->nr; i++) {
		const struct range_site *s = &sites->site[i];
		if (!place(&p, s) && !place_behind(&p, s))
			left[nr_left++] = (uint32_t)i;
	}
	ret->brk = nr_left ? calloc(nr_left, sizeof(*ret->brk)) : NULL;
	p.no_memory |= nr_left && !ret->brk;
	for (size_t i = 0; i < nr_left && ret->brk; i++) {
		const struct range_site *s = &sites->site[left[i]];
		if (!place_short(&p, s))
			refuse(&p, s);
	}
	range_breaks_settle(ret);
	range_edges_deinit(&p.edges);
	free(p.state);
	if (p.no_memory) {
		range_windows_deinit(ret);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	for (size_t i = 0; i < ret->nr; i++)
		qsort(ret->site + ret->window[i].first_site,
		      ret->window[i].nr_sites, sizeof(*ret->site), by_gap);
	return 0;
}

void range_windows_deinit(struct range_windows *w)
{
	free(w->window);
	free(w->site);
	free(w->brk);
	memset(w, 0, sizeof(*w));
}
