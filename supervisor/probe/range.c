/* Range sensors in a process, see range.h. */
#include "supervisor/probe/range-hole.h"
#include "supervisor/probe/range-live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "supervisor/probe/near.h"

#define NAME_BYTES 64 /* at the beginning of the code */
#define AHEAD	   8  /* lines of counters that are on their way */

static uint64_t pages(uint64_t bytes)
{
	return (bytes + TPAGE_SIZE - 1) & ~(TPAGE_SIZE - 1);
}

static struct range_cell *cells(const struct ranges *r)
{
	return (struct range_cell *)r->data;
}

uint64_t range_counters_off(const struct range_plan *plan)
{
	uint64_t bytes = plan->most_cells * sizeof(struct range_cell);
	return (bytes + 63) & ~63ULL;
}

static uint64_t *counters(const struct ranges *r)
{
	return (uint64_t *)(r->data + range_counters_off(r->plan));
}

void range_take_out(struct ranges *r)
{
	if (!r->planted)
		return;
	r->planted = false;
	for (size_t i = 0; i < r->plan->v->nr_functions; i++)
		if (r->function[i].in)
			range_put_out(r, &r->function[i], NULL);
	range_restore_text(r);
	bool gone = tproc_vacate(r->p, range_nobody_inside, r);
	struct smco_err err = {0};
	r->left = !gone || near_unmap(r->p, r->base, r->bytes, &err) != 0;
	if (r->left)
		smco_debug("range", "pid %d: the stubs stay: %s",
			   tproc_pid(r->p),
			   gone ? err.msg : "a thread is in them");
}

/* Whoever it belongs to. */
static void range_free(struct ranges *r)
{
	for (size_t i = 0; r->function && i < r->plan->v->nr_functions; i++)
		range_unprepare(&r->function[i]);
	if (r->data)
		munmap(r->data, r->data_bytes);
	free(r->code);
	free(r->back);
	if (r->pool)
		munmap(r->pool, r->pool_bytes);
	free(r->relayed);
	free(r->function);
	free(r->told);
	free(r->cost_ps);
	free(r->worth);
	free(r->beside);
	free(r->warm);
	free(r->is_warm);
	free(r);
}

int range_undo(struct tproc *p, void *arg)
{
	struct ranges *r = arg;
	(void)p;
	r->undo = NULL;
	/* The engine undoes patches itself: before this, or afterwards in a
	 * forked copy, where it finds them restored. */
	for (size_t i = 0; i < r->plan->v->nr_functions; i++)
		for (size_t k = 0; k < r->function[i].nr_spans; k++)
			r->function[i].span[k].patch = NULL;
	range_take_out(r);
	bool left = r->left;
	if (r->is_orphan)
		range_free(r);
	return left ? SMCO_BUSY : 0;
}

static size_t nr_lines(const struct range_plan *plan)
{
	return (plan->nr_windows + LIVE_LINE - 1) / LIVE_LINE;
}

struct ranges *range_new(struct tproc *p, const struct range_plan *plan,
			 uint64_t bias)
{
	struct ranges *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	size_t nr_lines = plan->most_windows / LIVE_LINE + 1;
	r->p = p;
	r->plan = plan;
	r->bias = bias;
	r->code_used = NAME_BYTES;
	r->data_off = pages(plan->most_code_bytes + NAME_BYTES + TPAGE_SIZE) +
		      RANGE_GAP_BYTES;
	r->code_end = r->data_off - TPAGE_SIZE;
	r->data_bytes = pages(range_counters_off(plan) +
			      8 * (plan->most_windows + LIVE_LINE));
	r->bytes = r->data_off + r->data_bytes;
	r->function = calloc(plan->v->nr_functions + 1, sizeof(*r->function));
	r->told = calloc(plan->most_windows + LIVE_LINE, sizeof(*r->told));
	r->cost_ps =
		calloc(plan->most_windows + LIVE_LINE, sizeof(*r->cost_ps));
	r->worth = calloc(plan->most_cells + 1, sizeof(*r->worth));
	r->warm = calloc(nr_lines, sizeof(*r->warm));
	r->is_warm = calloc(nr_lines, sizeof(*r->is_warm));
	if (!r->function || !r->told || !r->cost_ps || !r->worth || !r->warm ||
	    !r->is_warm) {
		range_free(r);
		return NULL;
	}
	return r;
}

void range_empty_cells(struct ranges *r)
{
	const struct range_plan *plan = r->plan;
	for (; r->data && r->nr_cells < plan->nr_cells; r->nr_cells++) {
		uint32_t owner = plan->owner_of[r->nr_cells];
		const struct var_type *t = range_cell_type(plan->v, owner);
		cells(r)[r->nr_cells] = plan->cell_of[owner] == r->nr_cells
						? range_cell_empty(t)
						: range_hole_empty(plan->v, t);
	}
}

int ranges_prepare(struct ranges *r, const uint32_t *functions, size_t nr,
		   struct smco_err *err)
{
	if (!r->planted)
		return smco_fail(err, SMCO_GONE, 0, "the sensors are out");
	int ret = range_place_made(r, functions, nr, err);
	for (size_t i = 0; i < nr && ret == 0; i++)
		if (functions[i] < r->plan->v->nr_functions)
			ret = range_prepare(r, functions[i], err);
	return ret;
}

size_t ranges_nr_built(const struct ranges *r)
{
	return r->nr_built;
}

static bool puts_in(const struct live_function *f)
{
	for (size_t i = 0; i < f->nr_windows; i++)
		if (f->window[i].want && !f->window[i].in)
			return true;
	return false;
}

/* Where threads stand: what runs is worth planning. */
static void look_who_runs(struct ranges *r)
{
	r->nr_seen = 0;
	for (struct task *t = tproc_first_task(r->p);
	     t && r->nr_seen < ARRAY_SIZE(r->seen); t = task_next(t)) {
		struct user_regs_struct regs;
		if (task_get_regs(t, &regs) == 0)
			r->seen[r->nr_seen++] = regs.rip - r->bias;
	}
}

size_t ranges_seen(const struct ranges *r, uint32_t ret[RANGE_MOST_SEEN])
{
	size_t nr = 0;
	for (size_t i = 0; i < r->nr_seen; i++) {
		uint32_t f = range_plan_function_at(r->plan, r->seen[i]);
		if (f != UINT32_MAX && !range_plan_is_planned(r->plan, f))
			ret[nr++] = f;
	}
	return nr;
}

void ranges_guard(struct ranges *r, bool (*is_there)(void *ctx), void *ctx)
{
	r->is_there = is_there;
	r->is_there_ctx = ctx;
}

/* Where a module begins there is its head, mostly with its build-id. */
#define HEAD_BYTES 1024

/* Is it the module's memory still? */
static bool is_there(const struct ranges *r)
{
	const struct range_segment *s = &r->plan->img.segment[0];
	uint8_t head[HEAD_BYTES];
	size_t len = s->len < HEAD_BYTES ? s->len : HEAD_BYTES;
	return !r->is_there ||
	       (r->is_there(r->is_there_ctx) &&
		!tmem_read(r->p, s->vaddr + r->bias, head, len) &&
		!memcmp(head, s->bytes, len));
}

/* What could not be done now must not be done with what is wanted later. */
static void forget_wants(struct ranges *r, const uint32_t *functions, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct live_function *f = &r->function[functions[i]];
		for (size_t k = 0; k < f->nr_windows; k++)
			f->window[k].want = f->window[k].in;
	}
}

/* Those that are not as they are wanted, in one stop. */
static int change(struct ranges *r, const uint32_t *functions, size_t nr,
		  bool can_wait, uint64_t *cost_ns_ret, struct smco_err *err)
{
	int first = 0;
	bool in = false;
	int ret = can_wait ? tproc_stop_briefly(r->p, err)
			   : tproc_stop(r->p, err);
	if (ret) {
		forget_wants(r, functions, nr);
		return ret;
	}
	uint64_t began_ns = smco_now_ns();
	if (!is_there(r))
		first = smco_fail(err, SMCO_GONE, 0, "it was unloaded");
	for (size_t i = 0; i < nr; i++)
		in |= puts_in(&r->function[functions[i]]);
	if (!first)
		first = range_apply(r, functions, nr, err);
	forget_wants(r, functions, nr);
	if (in)
		range_fix_frames(r);
	if (!range_plan_is_whole(r->plan))
		look_who_runs(r);
	if (cost_ns_ret)
		*cost_ns_ret = smco_now_ns() - began_ns;
	tproc_cont(r->p);
	return first;
}

int ranges_set(struct ranges *r, const uint32_t *functions, size_t nr, bool in,
	       uint64_t *cost_ns_ret, struct smco_err *err)
{
	int ret = in ? ranges_prepare(r, functions, nr, err) : 0;
	_cleanup_free_ uint32_t *some = calloc(nr + 1, sizeof(*some));
	size_t n = 0;
	if (cost_ns_ret)
		*cost_ns_ret = 0;
	if (!some)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		if (functions[i] >= r->plan->v->nr_functions)
			continue;
		struct live_function *f = &r->function[functions[i]];
		bool changes = false;
		for (size_t k = 0; k < f->nr_windows; k++) {
			f->window[k].want = in;
			changes |= f->window[k].in != in;
		}
		if (changes)
			some[n++] = functions[i];
	}
	return ret || !n || !r->planted
		       ? ret
		       : change(r, some, n, false, cost_ns_ret, err);
}

static struct live_window *window_of(const struct ranges *r, uint32_t window)
{
	uint32_t f = range_plan_function_of(r->plan, window);
	if (f == UINT32_MAX || !r->function[f].window)
		return NULL;
	return &r->function[f]
			.window[window - r->plan->function[f].first_window];
}

int ranges_choose(struct ranges *r, const uint32_t *windows, size_t nr,
		  const bool *want, uint64_t *cost_ns_ret, struct smco_err *err)
{
	_cleanup_free_ uint32_t *some = calloc(nr + 1, sizeof(*some));
	size_t n = 0;
	if (cost_ns_ret)
		*cost_ns_ret = 0;
	if (!some)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		struct live_window *w = window_of(r, windows[i]);
		if (!w)
			continue;
		uint32_t f = range_plan_function_of(r->plan, windows[i]);
		w->want = want[windows[i]];
		if (w->want == w->in || r->function[f].chosen)
			continue;
		r->function[f].chosen = true;
		some[n++] = f;
	}
	for (size_t i = 0; i < n; i++)
		r->function[some[i]].chosen = false;
	return n && r->planted ? change(r, some, n, true, cost_ns_ret, err) : 0;
}

bool ranges_is_in(const struct ranges *r, uint32_t function)
{
	const struct live_function *f = &r->function[function];
	for (size_t k = 0; k < f->nr_windows; k++)
		if (!f->window[k].in)
			return false;
	return f->nr_windows;
}

bool ranges_window_is_in(const struct ranges *r, uint32_t window)
{
	const struct live_window *w = window_of(r, window);
	return w && w->in;
}

bool ranges_window_is_ready(const struct ranges *r, uint32_t window)
{
	const struct live_window *w = window_of(r, window);
	return w && !w->taken;
}

bool ranges_read(const struct ranges *r, uint32_t var, int64_t *smallest_ret,
		 int64_t *largest_ret)
{
	uint32_t cell = r->plan->cell_of[var];
	return cell != UINT32_MAX && r->data &&
	       range_cell_read(&cells(r)[cell],
			       range_cell_type(r->plan->v, var), smallest_ret,
			       largest_ret);
}

bool ranges_read_hole(const struct ranges *r, uint32_t var, int64_t *ret)
{
	const struct variables *v = r->plan->v;
	uint32_t cell = r->plan->cell_of[var];
	return cell != UINT32_MAX && r->data && range_has_hole(v, var) &&
	       range_hole_read(&cells(r)[cell + 1], v, &v->vars[var].type, ret);
}

unsigned ranges_take(struct ranges *r, uint32_t var, int64_t ret[2])
{
	uint32_t cell = r->plan->cell_of[var];
	if (cell == UINT32_MAX || !r->data)
		return 0;
	return range_cell_take(&cells(r)[cell],
			       range_cell_type(r->plan->v, var), ret);
}

/* Rounded down: what is between two elements is outside with the lower. */
static int64_t subscript_of(const struct range_subscript *s, int64_t value)
{
	int64_t n = (int64_t)((uint64_t)value - (uint64_t)s->minus);
	return n / s->times - (n % s->times < 0);
}

bool ranges_read_subscript(const struct ranges *r, uint32_t subscript,
			   int64_t *smallest_ret, int64_t *largest_ret)
{
	const struct range_subscript *s = &r->plan->subscript[subscript];
	uint32_t owner = range_cell_owner(r->plan->v, subscript);
	if (!ranges_read(r, owner, smallest_ret, largest_ret))
		return false;
	*smallest_ret = subscript_of(s, *smallest_ret);
	*largest_ret = subscript_of(s, *largest_ret);
	return true;
}

uint64_t ranges_hits(const struct ranges *r, uint32_t window)
{
	return r->data && window < r->plan->nr_windows
		       ? __atomic_load_n(counters(r) + window, __ATOMIC_RELAXED)
		       : 0;
}

/* Most lines are as they were told. */
static bool line_is_told(const struct ranges *r, size_t line)
{
	const uint64_t *now = counters(r) + line * LIVE_LINE;
	const uint64_t *told = r->told + line * LIVE_LINE;
	uint64_t differ = 0;
	for (unsigned i = 0; i < LIVE_LINE; i++)
		differ |= __atomic_load_n(now + i, __ATOMIC_RELAXED) ^ told[i];
	return !differ;
}

/* What is new of line @line of counters, appended to @ret; how much. */
static size_t line_news(struct ranges *r, size_t line, struct range_news *ret)
{
	size_t nr = 0;
	if (line_is_told(r, line))
		return 0;
	uint32_t i = (uint32_t)line * LIVE_LINE;
	for (uint32_t end = i + LIVE_LINE; i < end && i < r->plan->nr_windows;
	     i++) {
		uint64_t now = ranges_hits(r, i), hits = now - r->told[i];
		r->told[i] = now;
		/* Two threads that count at once may set it back. */
		if (r->cost_ps[i] && (int64_t)hits > 0)
			ret[nr++] = (struct range_news){
				.window = i,
				.function = range_plan_function_of(r->plan, i),
				.hits = hits,
				.cost_ps = hits * (r->cost_ps[i] - 1),
			};
	}
	return nr;
}

size_t ranges_news(struct ranges *r, struct range_news *ret)
{
	size_t nr = 0;
	for (size_t i = 0; r->data && i < nr_lines(r->plan); i++)
		nr += line_news(r, i, ret + nr);
	return nr;
}

size_t ranges_glance(struct ranges *r, struct range_news *ret)
{
	size_t nr = 0, kept = 0, lines = nr_lines(r->plan);
	if (!r->data)
		return 0;
	for (size_t i = 0; i < r->nr_warm; i++) {
		/* Another CPU has them: they come while others are read. */
		if (i + AHEAD < r->nr_warm)
			__builtin_prefetch(counters(r) +
					   r->warm[i + AHEAD] * LIVE_LINE);
		size_t some = line_news(r, r->warm[i], ret + nr);
		nr += some;
		r->is_warm[r->warm[i]] = some;
		if (some)
			r->warm[kept++] = r->warm[i];
	}
	r->nr_warm = kept;
	for (size_t i = 0; i < RANGE_GLANCE / LIVE_LINE && i < lines; i++) {
		size_t line = r->next_line;
		r->next_line = line + 1 < lines ? line + 1 : 0;
		if (r->is_warm[line])
			continue;
		size_t some = line_news(r, line, ret + nr);
		nr += some;
		r->is_warm[line] = some;
		if (some)
			r->warm[r->nr_warm++] = (uint32_t)line;
	}
	return nr;
}

bool ranges_home(const struct ranges *r, struct user_regs_struct *regs)
{
	size_t step;
	const struct live_function *f = range_function_at(r, regs->rip, &step);
	const struct live_window *by = f ? NULL : range_relay_at(r, regs->rip);
	if (by)
		regs->rip = by->addr;
	if (!f)
		return by;
	regs->rip = f->steps->addr[step] + r->bias;
	regs->rsp += f->steps->step[step].pushed;
	return true;
}

int ranges_remove(struct ranges *r, struct smco_err *err)
{
	if (!r->planted)
		return 0;
	int rc = tproc_stop(r->p, err);
	r->is_owed = rc == SMCO_BUSY;
	if (rc)
		return rc;
	range_take_out(r);
	if (r->undo)
		tproc_undo_drop(r->p, r->undo);
	r->undo = NULL;
	tproc_cont(r->p);
	return 0;
}

void ranges_destroy(struct ranges *r)
{
	/* Detach is still to come for it (or an end: then it stays). */
	if (r && r->is_owed && r->planted)
		r->is_orphan = true;
	else if (r)
		range_free(r);
}
