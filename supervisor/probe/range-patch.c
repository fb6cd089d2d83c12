/* Jumps in and out of the text of a stopped process, see range.h. */
#include "supervisor/probe/range-live.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/sigframe.h"

/* The window whose jump's inside @pc is in, but for its first byte. */
static struct live_window *window_around(const struct live_function *f,
					 taddr_t pc)
{
	size_t a = 0, b = f->nr_windows;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (f->window[mid].addr < pc)
			a = mid + 1;
		else
			b = mid;
	}
	struct live_window *w = a ? &f->window[a - 1] : NULL;
	return w && pc < w->addr + w->len ? w : NULL;
}

/* A span that changes. */
struct fix {
	struct ranges *r;
	struct live_function *f;
	struct live_span *s;
};

/* Where a thread goes on that stands in the bytes to be overwritten. */
static taddr_t fix_pc(void *ctx, taddr_t pc)
{
	struct fix *x = ctx;
	const struct live_window *w = window_around(x->f, pc);
	if (!w || !w->want)
		return pc;
	uint32_t to = w->moved[pc - w->addr];
	return to == UINT32_MAX ? 0 : x->r->base + to;
}

static taddr_t keep_pc(void *ctx, taddr_t pc)
{
	(void)ctx;
	return pc;
}

/* @text, which is as it was read, gets the jumps that are wanted; only if it is
 * what it should be. */
static int put_jumps(struct live_function *f, const struct live_span *s,
		     uint8_t *text, struct smco_err *err)
{
	taddr_t start = live_span_start(f, s);
	for (uint32_t i = s->first; i < s->end; i++) {
		struct live_window *w = &f->window[i];
		uint8_t *at = text + (w->addr - start);
		bool is_ours = !memcmp(at, w->in ? w->jump : w->old, w->len);
		w->taken |= !is_ours && !w->in;
		if (w->taken)
			w->want = false;
		else if (!is_ours)
			return smco_fail(err, SMCO_BUSY, 0,
					 "the code at 0x%llx is not the "
					 "file's: somebody has changed it",
					 (unsigned long long)w->addr);
		else
			memcpy(at, w->want ? w->jump : w->old, w->len);
	}
	return 0;
}

/* Is a window of it not as it is wanted? */
static bool changes(const struct live_function *f, const struct live_span *s)
{
	bool any = false;
	for (uint32_t i = s->first; i < s->end; i++)
		any |= f->window[i].want != f->window[i].in;
	return any;
}

static bool wants_any(const struct live_function *f, const struct live_span *s)
{
	bool any = false;
	for (uint32_t i = s->first; i < s->end; i++)
		any |= f->window[i].want;
	return any;
}

static void leave_span(struct live_function *f, const struct live_span *s)
{
	for (uint32_t i = s->first; i < s->end; i++)
		f->window[i].want = f->window[i].in;
}

/* What could not be done, for range_apply. */
struct changing {
	struct ranges *r;
	int first;
	struct smco_err *err;
};

static void note(struct changing *c, int ret, const struct smco_err *why)
{
	if (!c->first)
		smco_fail(c->err, why->code, why->sys_errno, "%s", why->msg);
	c->first = c->first ? c->first : ret;
}

/* A window that a thread stands in is left to itself, the others are not. */
static bool make_way(struct changing *c, struct tpatch_change *t,
		     const struct fix *x)
{
	for (;;) {
		struct smco_err why = {0};
		int ret = tproc_clear_text(c->r->p, t->addr, t->len, t->fix,
					   t->ctx, false, &why);
		if (!ret)
			return true;
		note(c, ret, &why);
		struct live_window *w = ret == SMCO_BUSY && why.addr
						? window_around(x->f, why.addr)
						: NULL;
		if (!w || !w->want || w->in)
			return false;
		w->want = false;
	}
}

static enum tpatch_how compose(void *ctx, struct tpatch_change *t,
			       uint8_t *text)
{
	struct changing *c = ctx;
	const struct fix *x = t->ctx;
	struct smco_err why = {0};
	t->fix = wants_any(x->f, x->s) ? fix_pc : keep_pc;
	bool fine = make_way(c, t, x);
	if (fine && !wants_any(x->f, x->s) && x->s->patch)
		return TPATCH_RESTORE;
	int ret = fine ? put_jumps(x->f, x->s, text, &why) : 0;
	if (ret)
		note(c, ret, &why);
	if (!fine || ret)
		leave_span(x->f, x->s);
	return changes(x->f, x->s) ? TPATCH_WRITE : TPATCH_LEAVE;
}

/* Nobody has changed the file's bytes there: neither we nor others. */
static bool is_as_in_file(void *ctx, taddr_t addr, const uint8_t *bytes,
			  size_t len)
{
	const struct changing *c = ctx;
	const struct ranges *r = c->r;
	const struct range_image *img = &r->plan->img;
	uint64_t at = addr - r->bias;
	return at >= img->lo && at <= img->hi && len <= img->hi - at &&
	       !memcmp(bytes, img->text + (at - img->lo), len);
}

/* What came of it. Memory that is not there any more has no jumps. */
static void changed(struct changing *c, const struct tpatch_change *t)
{
	const struct fix *x = t->ctx;
	bool is_gone =
		t->ret == SMCO_FAULT && x->s->patch && !wants_any(x->f, x->s) &&
		!tproc_unpatch(c->r->p, x->s->patch, keep_pc, NULL, NULL);
	if (is_gone)
		x->s->patch = NULL;
	else if (t->ret)
		leave_span(x->f, x->s);
	for (uint32_t k = x->s->first; k < x->s->end; k++)
		x->f->window[k].in = x->f->window[k].want;
}

static size_t find_spans(struct ranges *r, const uint32_t *functions, size_t nr,
			 struct tpatch_change *change, struct fix *fix)
{
	size_t n = 0;
	for (size_t i = 0; i < nr; i++) {
		struct live_function *f = &r->function[functions[i]];
		for (size_t k = 0; k < f->nr_spans; k++) {
			struct live_span *s = &f->span[k];
			if (!changes(f, s))
				continue;
			if (change) {
				fix[n] = (struct fix){r, f, s};
				change[n] = (struct tpatch_change){
					.addr = live_span_start(f, s),
					.len = live_span_len(f, s),
					.patch = &s->patch,
					.ctx = &fix[n],
				};
			}
			n++;
		}
	}
	return n;
}

static int change_spans(struct ranges *r, const uint32_t *functions, size_t nr,
			struct smco_err *err)
{
	static const struct tpatch_ops ops = {compose, is_as_in_file};
	struct changing c = {.r = r, .err = err};
	struct smco_err why = {0};
	size_t n = find_spans(r, functions, nr, NULL, NULL);
	_cleanup_free_ struct tpatch_change *change =
		malloc((n + 1) * sizeof(*change));
	_cleanup_free_ struct fix *fix = malloc((n + 1) * sizeof(*fix));
	if (!change || !fix)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	find_spans(r, functions, nr, change, fix);
	int ret = tproc_patch_all(r->p, change, n, &ops, &c, &why);
	if (ret)
		note(&c, ret, &why);
	for (size_t i = 0; i < n; i++)
		changed(&c, &change[i]);
	return c.first;
}

int range_apply(struct ranges *r, const uint32_t *functions, size_t nr,
		struct smco_err *err)
{
	/* What jumps lead to is there before the first of them, of whichever
	 * function, and until all are out: we may be killed in between. */
	for (size_t i = 0; i < nr; i++)
		if (r->function[functions[i]].nr_relays)
			range_hold_relays(r, &r->function[functions[i]]);
	int ret = change_spans(r, functions, nr, err);
	for (size_t i = 0; i < nr; i++) {
		struct live_function *f = &r->function[functions[i]];
		f->in = false;
		for (size_t k = 0; k < f->nr_windows; k++)
			f->in |= f->window[k].in;
		if (f->nr_relays && !f->in)
			range_drop_relays(r, f);
	}
	return ret;
}

int range_put_out(struct ranges *r, struct live_function *f,
		  struct smco_err *err)
{
	for (size_t i = 0; i < f->nr_spans; i++)
		for (uint32_t k = f->span[i].first; k < f->span[i].end; k++)
			/* Without a patch it is for range_restore_text. */
			f->window[k].want =
				f->window[k].in && !f->span[i].patch;
	uint32_t number = (uint32_t)(f - r->function);
	return range_apply(r, &number, 1, err);
}

static void fix_slot(void *ctx, taddr_t slot, taddr_t pc)
{
	struct ranges *r = ctx;
	const struct live_window *by = range_relay_at(r, pc);
	if (by)
		tmem_write(r->p, slot, &by->addr, sizeof(by->addr));
	for (size_t i = 0; !by && i < r->plan->v->nr_functions; i++) {
		struct live_function *f = &r->function[i];
		struct fix x = {.r = r, .f = f};
		if (!f->in)
			continue;
		taddr_t to = fix_pc(&x, pc);
		if (to && to != pc)
			tmem_write(r->p, slot, &to, sizeof(to));
	}
}

void range_fix_frames(struct ranges *r)
{
	for (struct task *t = tproc_first_task(r->p); t; t = task_next(t)) {
		struct user_regs_struct regs;
		if (task_in_handler(t) && task_get_regs(t, &regs) == 0)
			sigframes_find(r->p, regs.rsp, r->plan->lo + r->bias,
				       r->plan->hi + r->bias, fix_slot, r);
	}
}

void range_restore_text(struct ranges *r)
{
	for (size_t i = 0; i < r->plan->v->nr_functions; i++) {
		struct live_function *f = &r->function[i];
		for (size_t k = 0; k < f->nr_windows && f->in; k++) {
			struct live_window *w = &f->window[k];
			uint8_t now[CODE_JUMP_BYTES];
			if (w->in &&
			    tmem_read(r->p, w->addr, now, w->len) == 0 &&
			    !memcmp(now, w->jump, w->len))
				tmem_write(r->p, w->addr, w->old, w->len);
			w->in = w->want = false;
		}
		if (f->nr_relays)
			range_restore_relays(r, f);
		f->in = false;
	}
}

bool range_nobody_inside(void *ranges)
{
	struct ranges *r = ranges;
	bool nobody = true;
	for (struct task *t = tproc_first_task(r->p); t; t = task_next(t)) {
		struct user_regs_struct regs;
		size_t step;
		const struct live_function *f =
			task_get_regs(t, &regs)
				? NULL
				: range_function_at(r, regs.rip, &step);
		const struct range_step *at = f ? &f->steps->step[step] : NULL;
		taddr_t begin = f ? r->base + f->code_off + at->offset : 0;
		if (f && (at->clean || (at->at_insn && begin == regs.rip))) {
			regs.rip = f->steps->addr[step] + r->bias;
			task_set_regs(t, &regs);
		}
		if (sigframes_leads_to(t, r->base, r->base + r->code_used))
			nobody = false;
	}
	return nobody;
}
