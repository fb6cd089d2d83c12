/* The stubs of a function in one process, see range.h. No stop is needed:
 * nobody runs them yet. */
#include "supervisor/probe/range-live.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-cost.h"

/* The short jump to the relay; @e is made to hold the relay's own. */
static void lead_by_relay(struct ranges *r, struct live_function *f,
			  struct live_window *to,
			  const struct range_window *win, struct code_buf *e)
{
	const struct range_image *img = &r->plan->img;
	to->relay = win->relay + r->bias;
	memcpy(to->relay_old, img->text + (win->relay - img->lo),
	       CODE_JUMP_BYTES);
	to->jump[0] = 0xeb;
	to->jump[1] = (uint8_t)(to->relay - to->addr - CODE_SHORT_BYTES);
	e->buf = to->relay_jump;
	e->base = to->relay;
	f->nr_relays++;
}

static bool fill_window(struct ranges *r, struct live_function *f,
			const struct range_windows *w, size_t number,
			const struct range_code *code,
			const struct range_stubs *stubs)
{
	struct live_window *to = &f->window[number];
	const struct range_window *win = &w->window[number];
	uint64_t addr = code->insns[win->first].addr;
	const uint8_t *old = r->plan->img.text + (addr - r->plan->img.lo);

	to->addr = addr + r->bias;
	to->len = win->relay ? CODE_SHORT_BYTES : CODE_JUMP_BYTES;
	memcpy(to->old, old, to->len);
	struct code_buf e = {
		.buf = to->jump, .cap = CODE_JUMP_BYTES, .base = to->addr};
	if (win->relay)
		lead_by_relay(r, f, to, win, &e);
	code_jump(&e, stubs->code.base + stubs->start[number]);
	for (unsigned i = 0; i < CODE_JUMP_BYTES; i++)
		to->moved[i] = UINT32_MAX;
	for (uint32_t i = win->first; i < win->end; i++) {
		uint64_t off = code->insns[i].addr - addr;
		if (off < to->len)
			to->moved[off] = f->code_off +
					 range_stubs_moved(stubs, w, number, i);
	}
	to->cost_ps =
		range_cost_window(range_cost_here(), &stubs->shape[number]);
	return !e.failed;
}

/* Windows of one chunk of the function, not too far from each other. */
static void make_spans(struct live_function *f, const struct range_windows *w,
		       const struct range_code *code)
{
	for (uint32_t i = 0; i < w->nr; i++) {
		struct live_span *last =
			f->nr_spans ? &f->span[f->nr_spans - 1] : NULL;
		bool near = last &&
			    f->window[i].addr - f->window[i - 1].addr < 4096;
		/* No hole between them that is somebody else's. */
		for (uint32_t k = last ? w->window[i - 1].first : 0;
		     near && k < w->window[i].first; k++)
			near = code->insns[k].addr + code->insns[k].len ==
			       code->insns[k + 1].addr;
		if (near)
			last->end = i + 1;
		else
			f->span[f->nr_spans++] =
				(struct live_span){.first = i, .end = i + 1};
	}
}

static bool keep_steps(struct live_function *f, struct range_stubs *stubs,
		       const struct range_code *code)
{
	struct range_steps *to = calloc(1, sizeof(*to));
	f->steps = to;
	if (!to)
		return false;
	to->nr_users = 1;
	to->addr = calloc(stubs->nr_steps + 1, sizeof(*to->addr));
	if (!to->addr)
		return false;
	to->nr = stubs->nr_steps;
	to->step = stubs->step;
	stubs->step = NULL;
	for (size_t i = 0; i < to->nr; i++) {
		const struct range_insn *in = &code->insns[to->step[i].insn];
		/* The end of the function, behind its last instruction. */
		to->addr[i] = to->step[i].insn < code->nr
				      ? in->addr
				      : in[-1].addr + in[-1].len;
	}
	return true;
}

static int put_code(struct ranges *r, const struct range_stubs *stubs,
		    struct smco_err *err)
{
	if (!r->p)
		return range_keep_code(r, stubs, err);
	int ret = tmem_write(r->p, r->base + r->code_used, stubs->code.buf,
			     stubs->code.len);
	return ret ? smco_fail(err, ret, 0, "cannot write the stubs") : 0;
}

static int build(struct ranges *r, uint32_t number, struct live_function *f,
		 const struct range_code *code, struct range_stubs *stubs,
		 struct smco_err *err)
{
	const struct range_plan *plan = r->plan;
	const struct range_plan_function *pf = &plan->function[number];
	_cleanup_free_ bool *others = range_find_others(r, code, &pf->windows);
	const struct range_stub_place at = {
		.bias = r->bias,
		.cells = r->base + r->data_off,
		.counters = r->base + r->data_off + range_counters_off(plan) +
			    8ULL * pf->first_window,
		.cell_of = plan->cell_of,
		.others = others,
	};
	int ret =
		range_stubs_build(stubs, r->base + r->code_used, code,
				  &plan->img, plan->v, &pf->windows, &at, err);
	if (ret)
		return ret;
	if (r->code_used > r->code_end ||
	    stubs->code.len > r->code_end - r->code_used)
		return smco_fail(err, SMCO_UNSUPPORTED, 0,
				 "no more room for stubs");
	f->code_off = (uint32_t)r->code_used;
	f->code_len = (uint32_t)stubs->code.len;
	f->nr_windows = pf->windows.nr;
	f->window = calloc(f->nr_windows + 1, sizeof(*f->window));
	f->span = calloc(f->nr_windows + 1, sizeof(*f->span));
	if (!f->window || !f->span)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < f->nr_windows; i++)
		if (!fill_window(r, f, &pf->windows, i, code, stubs))
			return smco_fail(err, SMCO_UNSUPPORTED, 0,
					 "its stubs are too far away");
	make_spans(f, &pf->windows, code);
	if (!range_note_beside(r, code, &pf->windows, others) ||
	    !keep_steps(f, stubs, code))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	ret = put_code(r, stubs, err);
	if (ret)
		return ret;
	range_is_prepared(r, number);
	f->built_ns = smco_now_ns();
	r->code_used += (stubs->code.len + RANGE_STUB_ALIGN - 1) &
			~(uint64_t)(RANGE_STUB_ALIGN - 1);
	r->nr_built++;
	return 0;
}

void range_is_prepared(struct ranges *r, uint32_t function)
{
	const struct live_function *f = &r->function[function];
	uint32_t first = r->plan->function[function].first_window;
	for (size_t i = 0; i < f->nr_windows; i++)
		r->cost_ps[first + i] = f->window[i].cost_ps + 1;
}

void range_unprepare(struct live_function *f)
{
	if (!f->pooled) {
		free(f->window);
		free(f->span);
	}
	if (f->steps && !--f->steps->nr_users) {
		free(f->steps->step);
		free(f->steps->addr);
		free(f->steps);
	}
	*f = (struct live_function){.useless = f->useless};
}

int range_prepare(struct ranges *r, uint32_t number, struct smco_err *err)
{
	struct live_function *f = &r->function[number];
	struct range_stubs stubs = {.nr_windows = 0};
	struct range_code code;
	if (f->window || f->useless ||
	    !r->plan->function[number].info.nr_windows)
		return 0;
	range_empty_cells(r);
	int ret = range_plan_decode(r->plan, number, &code, err);
	f->useless = ret == SMCO_UNSUPPORTED;
	if (ret)
		return f->useless ? 0 : ret;
	ret = build(r, number, f, &code, &stubs, err);
	range_stubs_deinit(&stubs);
	range_plan_release(r->plan, number, &code);
	if (ret) {
		f->useless = ret == SMCO_UNSUPPORTED;
		range_unprepare(f);
	}
	return f->useless ? 0 : ret;
}

const struct live_function *range_function_at(const struct ranges *r,
					      taddr_t pc, size_t *step_ret)
{
	if (pc < r->base || pc >= r->base + r->code_used)
		return NULL;
	uint64_t off = pc - r->base;
	for (size_t i = 0; i < r->plan->v->nr_functions; i++) {
		const struct live_function *f = &r->function[i];
		if (!f->window || off < f->code_off ||
		    off - f->code_off >= f->code_len)
			continue;
		struct range_stubs s = {.step = f->steps->step,
					.nr_steps = f->steps->nr};
		const struct range_step *step =
			range_stubs_step(&s, (uint32_t)(off - f->code_off));
		if (!step)
			return NULL;
		*step_ret = (size_t)(step - f->steps->step);
		return f;
	}
	return NULL;
}
