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

struct fix {
	struct ranges *r;
	struct live_function *f;
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

/* The text with the jumps that are wanted; only if it is what it should be. */
static int compose(struct ranges *r, struct live_function *f,
		   const struct live_span *s, uint8_t *text,
		   struct smco_err *err)
{
	taddr_t start = live_span_start(f, s);
	int ret = tmem_read(r->p, start, text, live_span_len(f, s));
	if (ret)
		return smco_fail(err, ret, 0, "cannot read the text at 0x%llx",
				 (unsigned long long)start);
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

bool range_span_changes(const struct live_function *f,
			const struct live_span *s)
{
	bool changes = false;
	for (uint32_t i = s->first; i < s->end; i++)
		changes |= f->window[i].want != f->window[i].in;
	return changes;
}

static bool wants_any(const struct live_function *f, const struct live_span *s)
{
	bool any = false;
	for (uint32_t i = s->first; i < s->end; i++)
		any |= f->window[i].want;
	return any;
}

static int apply_span(struct ranges *r, struct live_function *f,
		      struct live_span *s, bool any, struct smco_err *err)
{
	struct fix x = {r, f};
	int ret = 0;
	if (any) {
		_cleanup_free_ uint8_t *text = malloc(live_span_len(f, s));
		if (!text)
			return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
		ret = compose(r, f, s, text, err);
		if (ret == 0 && s->patch)
			ret = tproc_repatch(r->p, s->patch, text, fix_pc, &x,
					    err);
		else if (ret == 0)
			ret = tproc_patch(r->p, live_span_start(f, s), text,
					  live_span_len(f, s), fix_pc, &x,
					  &s->patch, err);
	} else {
		ret = tproc_unpatch(r->p, s->patch, keep_pc, NULL, err);
		if (ret == 0)
			s->patch = NULL;
	}
	for (uint32_t i = s->first; ret == 0 && i < s->end; i++)
		f->window[i].in = f->window[i].want;
	return ret;
}

/* A window that a thread stands in is left to itself, the others are not. */
static int change_span(struct ranges *r, struct live_function *f,
		       struct live_span *s, struct smco_err *err)
{
	struct smco_err why = {0};
	int first = 0;
	while (range_span_changes(f, s)) {
		why = (struct smco_err){0};
		int ret = apply_span(r, f, s, wants_any(f, s), &why);
		if (!ret)
			break;
		if (!first)
			smco_fail(err, why.code, why.sys_errno, "%s", why.msg);
		first = ret;
		struct live_window *w = ret == SMCO_BUSY && why.addr
						? window_around(f, why.addr)
						: NULL;
		if (w && w->want && !w->in) {
			w->want = false;
			continue;
		}
		for (uint32_t i = s->first; i < s->end; i++)
			f->window[i].want = f->window[i].in;
	}
	return first;
}

int range_apply(struct ranges *r, struct live_function *f, struct smco_err *err)
{
	int first = 0;
	if (f->nr_relays)
		range_hold_relays(r, f);
	for (size_t i = 0; i < f->nr_spans && first != SMCO_GONE; i++) {
		int ret = change_span(r, f, &f->span[i], first ? NULL : err);
		first = first ? first : ret;
	}
	f->in = false;
	for (size_t i = 0; i < f->nr_windows; i++)
		f->in |= f->window[i].in;
	if (f->nr_relays && !f->in)
		range_drop_relays(r, f);
	return first;
}

int range_put_out(struct ranges *r, struct live_function *f,
		  struct smco_err *err)
{
	for (size_t i = 0; i < f->nr_spans; i++)
		for (uint32_t k = f->span[i].first; k < f->span[i].end; k++)
			/* Without a patch it is for range_restore_text. */
			f->window[k].want =
				f->window[k].in && !f->span[i].patch;
	return range_apply(r, f, err);
}

static void fix_slot(void *ctx, taddr_t slot, taddr_t pc)
{
	struct ranges *r = ctx;
	const struct live_window *by = range_relay_at(r, pc);
	if (by)
		tmem_write(r->p, slot, &by->addr, sizeof(by->addr));
	for (size_t i = 0; !by && i < r->plan->v->nr_functions; i++) {
		struct live_function *f = &r->function[i];
		struct fix x = {r, f};
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
