/* Relays in the padding of a stopped process, see range-live.h. */
#include "supervisor/probe/range-live.h"

#include <stdlib.h>
#include <string.h>

const struct live_window *range_relay_at(const struct ranges *r, taddr_t pc)
{
	for (size_t i = 0; i < r->nr_relayed; i++)
		if (r->relayed[i]->relay == pc)
			return r->relayed[i];
	return NULL;
}

/*
 * Nobody stands at a relay, nor comes back there from a handler: the jump that
 * leads there has done nothing, it may be done again, or what it displaced.
 */
static bool send_back(struct ranges *r)
{
	bool all = true;
	for (struct task *t = tproc_first_task(r->p); t; t = task_next(t)) {
		struct user_regs_struct regs;
		taddr_t pc, sp;
		int place = task_get_place(t, &pc, &sp);
		const struct live_window *w =
			place ? NULL : range_relay_at(r, pc);
		all &= place != SMCO_BUSY;
		if (!w)
			continue;
		bool moved = task_get_regs(t, &regs) == 0;
		regs.rip = w->addr;
		all &= moved && task_set_regs(t, &regs) == 0;
	}
	range_fix_frames(r);
	return all;
}

static bool note(struct ranges *r, struct live_window *w)
{
	if (r->nr_relayed == r->cap_relayed) {
		size_t cap = r->cap_relayed ? 2 * r->cap_relayed : 16;
		struct live_window **more =
			realloc(r->relayed, cap * sizeof(*more));
		if (!more)
			return false;
		r->relayed = more;
		r->cap_relayed = cap;
	}
	r->relayed[r->nr_relayed++] = w;
	return true;
}

static void forget(struct ranges *r, struct live_window *w)
{
	w->relay_patch = NULL;
	for (size_t i = 0; i < r->nr_relayed; i++)
		if (r->relayed[i] == w)
			r->relayed[i--] = r->relayed[--r->nr_relayed];
}

/* Between the undoing of the jumps and that of the relays, which the engine
 * does itself. */
static int undo_relays(struct tproc *p, void *arg)
{
	struct live_function *f = arg;
	(void)p;
	f->relay_undo = NULL;
	bool all = send_back(f->of);
	for (size_t i = 0; i < f->nr_windows; i++)
		forget(f->of, &f->window[i]);
	return all ? 0 : SMCO_BUSY;
}

static void hold(struct ranges *r, struct live_window *w)
{
	uint8_t now[CODE_JUMP_BYTES];
	if (tmem_read(r->p, w->relay, now, sizeof(now)))
		return;
	w->taken |= memcmp(now, w->relay_old, sizeof(now)) != 0;
	if (w->taken || !note(r, w))
		return;
	if (tproc_patch(r->p, w->relay, w->relay_jump, sizeof(w->relay_jump),
			NULL, NULL, &w->relay_patch, NULL))
		forget(r, w);
}

/* Text that is as it was: nothing is changed by who stands there. */
static void let_go(struct ranges *r, struct live_function *f)
{
	bool all = true;
	for (size_t i = 0; i < f->nr_windows; i++) {
		struct live_window *w = &f->window[i];
		if (w->relay_patch &&
		    tproc_unpatch(r->p, w->relay_patch, NULL, NULL, NULL))
			all = false;
		else
			forget(r, w);
	}
	if (!all || !f->relay_undo)
		return;
	tproc_undo_drop(r->p, f->relay_undo);
	f->relay_undo = NULL;
}

void range_hold_relays(struct ranges *r, struct live_function *f)
{
	bool wants = false, is_patched = f->in || f->relay_undo;
	for (size_t i = 0; i < f->nr_windows; i++)
		wants |= f->window[i].want;
	if (wants && !is_patched) {
		for (size_t i = 0; i < f->nr_windows; i++)
			if (f->window[i].relay && !f->window[i].relay_patch)
				hold(r, &f->window[i]);
		f->of = r;
		f->relay_undo = tproc_undo_push(r->p, undo_relays, f);
		if (!f->relay_undo)
			let_go(r, f);
	}
	for (size_t i = 0; i < f->nr_windows; i++) {
		struct live_window *w = &f->window[i];
		if (w->relay && !w->relay_patch && !w->in)
			w->want = false;
	}
}

void range_drop_relays(struct ranges *r, struct live_function *f)
{
	if (f->relay_undo && send_back(r))
		let_go(r, f);
}

bool range_inherit_relays(struct ranges *r, struct live_function *f)
{
	f->relay_undo = NULL;
	f->of = r;
	for (size_t i = 0; i < f->nr_windows; i++) {
		struct live_window *w = &f->window[i];
		w->relay_patch = w->relay
					 ? tproc_patch_at(r->p, w->relay,
							  sizeof(w->relay_jump))
					 : NULL;
		if (!w->relay_patch)
			continue;
		if (!note(r, w))
			return false;
		if (!f->relay_undo)
			f->relay_undo = tproc_undo_push(r->p, undo_relays, f);
		if (!f->relay_undo)
			return false;
	}
	return true;
}

void range_restore_relays(struct ranges *r, struct live_function *f)
{
	if (!f->relay_undo || !send_back(r))
		return;
	for (size_t i = 0; i < f->nr_windows; i++) {
		struct live_window *w = &f->window[i];
		uint8_t now[CODE_JUMP_BYTES];
		if (w->relay_patch &&
		    tmem_read(r->p, w->relay, now, sizeof(now)) == 0 &&
		    !memcmp(now, w->relay_jump, sizeof(now)))
			tmem_write(r->p, w->relay, w->relay_old, sizeof(now));
		forget(r, w);
	}
	tproc_undo_drop(r->p, f->relay_undo);
	f->relay_undo = NULL;
}
