/* Watchpoints by ptrace: each hit stops its thread, and is looked at while that
 * stands behind the store. */
#include "supervisor/control/fixed.h"
#include "supervisor/probe/watch-private.h"

/* The registers of a thread that has just written. */
static bool state_of(struct task *t, struct watch_state *ret)
{
	struct user_regs_struct r;
	if (task_get_regs(t, &r))
		return false;
	*ret = (struct watch_state){
		.ip = r.rip,
		.reg = {r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi,
			r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15},
	};
	return true;
}

/* Do the pointers still lead there? */
static bool is_there(struct watchpoint *w, const struct watch_word *word)
{
	for (uint32_t i = 0; i < word->nr_guards; i++) {
		const struct watch_guard *g = &word->guard[i];
		uint64_t value;
		if (tmem_read(w->proc, g->addr, &value, sizeof(value)) ||
		    value != g->value)
			return false;
	}
	return true;
}

/* A hit costs what it does where nobody looks at it, as it was tried, and how
 * long it stands here. Of that the tracer's clock has the second, and what any
 * stop costs. */
static void learn_cost(struct watchpoints *ws, struct tproc *p, uint64_t ns)
{
	ws->stood_ns = ws->stood_ns ? (ws->stood_ns * 7 + ns) / 8 : ns;
	ws->told_ns = ws->stood_ns + tracer_stop_cost_ns(tproc_tracer(p));
	ws->hit_ns = ws->stood_ns + ws->tried_ns;
}

static void hit(struct task *t, uint64_t stop_ns, void *watchpoint)
{
	struct watchpoint *w = watchpoint;
	struct watch_word *word = &w->ws->word[w->index];
	struct watch_hit h = {.time_ns = stop_ns};
	h.has_state = state_of(t, &h.state);
	word->nr_hits++;
	if (!is_there(w, word) || !watch_take_hit(w, &h))
		word->nr_unread++;
	/* It may have been given more meanwhile, but this thread has not. */
	if (--w->left <= 0) {
		if (!word->spent_ns)
			word->spent_ns = stop_ns;
		task_unwatch(t, w->id);
	}
	learn_cost(w->ws, w->proc, sat_sub_u64(smco_now_ns(), stop_ns));
}

int watch_stopping(struct watchpoint *w, struct smco_err *err)
{
	const struct watch_word *word = &w->ws->word[w->index];
	const struct twatch what = {
		.addr = word->addr,
		.bytes = word->bytes,
		.hit = hit,
		.arg = w,
	};
	return tproc_watch(w->proc, &what, &w->id, err);
}

void watch_stopping_look(struct watchpoint *w)
{
	struct watch_word *word = &w->ws->word[w->index];
	if (w->id && !word->spent_ns && !tproc_is_watched(w->proc, w->id))
		word->spent_ns = smco_now_ns();
}

void watch_stopping_end(struct watchpoint *w)
{
	if (w->id)
		tproc_unwatch(w->proc, w->id);
	w->id = 0;
}

uint64_t watchpoints_own_ns(const struct watchpoints *ws)
{
	return ws->own_ns;
}

uint64_t watchpoints_untold_ns(const struct watchpoints *ws)
{
	return sat_sub_u64(ws->hit_ns, ws->told_ns);
}
