/* A plan in a file and out of it, see range-store.h. */
#include "supervisor/probe/range-store.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-hole.h"
#include "supervisor/probe/range-plan.h"

/* So much code is decoded at once, while no program stands for it. */
#define DECODE_BYTES RANGE_KEEP_LATE_BYTES

/* What is no array. */
struct kept_plan {
	uint64_t nr_cells, nr_windows, code_bytes, lo, hi;
};

struct kept_function {
	struct range_function_info info;
	uint64_t nr_windows, nr_sites;
	uint64_t nr_refused[RR_NR];
	uint64_t nr_breaks;
	uint64_t first_window;
	uint64_t is_planned;
};

static void put_functions(struct store_out *o, const struct range_plan *plan)
{
	size_t nr_windows = 0, nr_sites = 0, nr_breaks = 0;
	size_t nr = plan->v->nr_functions;
	store_begin(o, nr, sizeof(struct kept_function));
	for (size_t i = 0; i < nr; i++) {
		const struct range_plan_function *f = &plan->function[i];
		struct kept_function k = {
			.info = f->info,
			.nr_windows = f->windows.nr,
			.nr_sites = f->windows.nr_sites,
			.nr_breaks = f->windows.nr_breaks,
			.first_window = f->first_window,
			.is_planned = f->is_planned,
		};
		for (unsigned n = 0; n < RR_NR; n++)
			k.nr_refused[n] = f->windows.nr_refused[n];
		k.info.refused = store_string(o, k.info.refused);
		nr_windows += k.nr_windows;
		nr_sites += k.nr_sites;
		nr_breaks += k.nr_breaks;
		store_more(o, &k, sizeof(k));
	}
	store_end(o);
	store_begin(o, nr_windows, sizeof(struct range_window));
	for (size_t i = 0; i < nr; i++)
		store_more(o, plan->function[i].windows.window,
			   plan->function[i].windows.nr *
				   sizeof(struct range_window));
	store_end(o);
	store_begin(o, nr_sites, sizeof(struct range_site));
	for (size_t i = 0; i < nr; i++)
		store_more(o, plan->function[i].windows.site,
			   plan->function[i].windows.nr_sites *
				   sizeof(struct range_site));
	store_end(o);
	store_begin(o, nr_breaks, sizeof(struct range_break));
	for (size_t i = 0; i < nr; i++)
		store_more(o, plan->function[i].windows.brk,
			   plan->function[i].windows.nr_breaks *
				   sizeof(struct range_break));
	store_end(o);
}

void range_plan_put(struct store_out *o, const struct range_plan *plan)
{
	const struct kept_plan k = {
		.nr_cells = plan->nr_cells,
		.nr_windows = plan->nr_windows,
		.code_bytes = plan->code_bytes,
		.lo = plan->lo,
		.hi = plan->hi,
	};
	const struct range_image *img = &plan->img;
	store_put(o, &k, 1, sizeof(k));
	store_put(o, img->mark, img->hi - img->lo, 1);
	store_put(o, img->taken, img->nr_taken, sizeof(*img->taken));
	store_put(o, plan->var, plan->v->nr_vars, sizeof(*plan->var));
	store_put(o, plan->subscript, plan->nr_subscripts,
		  sizeof(*plan->subscript));
	store_put(o, plan->cell_of, plan->v->nr_vars + plan->nr_subscripts,
		  sizeof(*plan->cell_of));
	store_put(o, plan->use, plan->nr_uses, sizeof(*plan->use));
	store_put(o, plan->function_of, plan->nr_windows,
		  sizeof(*plan->function_of));
	put_functions(o, plan);
	store_put_strings(o);
}

/* Before it is read as a bool. */
static bool is_bool(const bool *b)
{
	return *(const uint8_t *)b <= 1;
}

static bool within_fits(const struct range_within *w)
{
	const int32_t most = 1 << 30;
	bool pointer = w->base != RANGE_NO_REG;
	if (!w->extent)
		return true;
	if (w->scale && (w->index >= 16 || w->index == RANGE_RSP ||
			 w->scale > 8 || w->scale & (w->scale - 1)))
		return false;
	if (w->extent > INT32_MAX || !(w->scale || pointer))
		return false;
	return !pointer ||
	       (w->base < 16 && w->base != RANGE_RSP && w->frame < 16 &&
		w->step && w->step <= 8 && !(w->step & (w->step - 1)) &&
		w->delta > -most && w->delta < most);
}

static bool site_fits(const struct range_plan *plan, const struct range_site *s)
{
	const struct variables *v = plan->v;
	size_t owners = v->nr_vars + plan->nr_subscripts;
	if (!is_bool(&s->fall) || !is_bool(&s->apart) ||
	    !is_bool(&s->low_bit) || !is_bool(&s->subscript) ||
	    s->source > RS_ELEMENT || s->shift >= 64 || s->var >= owners ||
	    !within_fits(&s->within) || s->subscript != (s->var >= v->nr_vars))
		return false;
	if (s->source == RS_EXPR) {
		if (s->place >= v->nr_places)
			return false;
		const struct var_place *p = &v->places[s->place];
		return p->kind == VAR_EXPR && p->nr_ops <= VAR_MAX_OPS &&
		       range_expr_ok(v->ops + p->first_op, p->nr_ops);
	}
	if (s->source == RS_ELEMENT && !s->within.extent)
		return false;
	return s->reg < 16 || (s->source != RS_REG && s->source != RS_FRAME &&
			       s->source != RS_SUM && s->source != RS_ELEMENT);
}

/* A function's windows are one behind the other, its sites theirs. */
static bool windows_fit(const struct range_plan *plan,
			const struct range_windows *w)
{
	uint32_t end = 0, sites = 0;
	for (size_t i = 0; i < w->nr; i++) {
		const struct range_window *win = &w->window[i];
		if (win->first < end || win->end <= win->first ||
		    win->first_site != sites ||
		    win->nr_sites > w->nr_sites - sites)
			return false;
		end = win->end;
		sites += win->nr_sites;
		for (uint32_t k = win->first_site; k < sites; k++)
			if (w->site[k].gap < win->first ||
			    w->site[k].gap > win->end ||
			    !site_fits(plan, &w->site[k]) ||
			    plan->cell_of[w->site[k].var] >= plan->nr_cells)
				return false;
	}
	return sites == w->nr_sites;
}

static bool breaks_fit(const struct range_plan *plan,
		       const struct range_windows *w)
{
	const struct range_image *img = &plan->img;
	for (size_t i = 0; i < w->nr_breaks; i++) {
		const struct range_break *b = &w->brk[i];
		if (b->addr < img->lo || b->addr >= img->hi ||
		    !(img->mark[b->addr - img->lo] & RANGE_MARK_INSN) ||
		    !site_fits(plan, &b->site) ||
		    !range_break_can_read(&b->site))
			return false;
	}
	return true;
}

static bool take_functions(struct range_plan *plan, struct store_in *in)
{
	size_t nr = plan->v->nr_functions, nr_windows, nr_sites, nr_breaks;
	const struct kept_function *k = store_take_some(in, sizeof(*k), nr);
	struct range_window *window =
		store_take(in, sizeof(*window), &nr_windows);
	struct range_site *site = store_take(in, sizeof(*site), &nr_sites);
	struct range_break *brk = store_take(in, sizeof(*brk), &nr_breaks);
	store_take_strings(in);
	for (size_t i = 0; !in->bad && i < nr; i++) {
		struct range_plan_function *f = &plan->function[i];
		if (k[i].nr_windows > nr_windows || k[i].nr_sites > nr_sites ||
		    k[i].nr_breaks > nr_breaks ||
		    k[i].nr_windows != k[i].info.nr_windows ||
		    k[i].first_window > plan->nr_windows ||
		    k[i].nr_windows > plan->nr_windows - k[i].first_window ||
		    k[i].is_planned > 1 ||
		    (!k[i].is_planned &&
		     (k[i].nr_windows || k[i].nr_sites || k[i].nr_breaks)))
			return false;
		if (!k[i].is_planned)
			continue;
		f->is_planned = f->is_borrowed = true;
		plan->nr_planned++;
		f->info = k[i].info;
		f->info.refused = store_string_at(in, f->info.refused);
		f->first_window = (uint32_t)k[i].first_window;
		f->windows.window = window;
		f->windows.nr = k[i].nr_windows;
		f->windows.site = site;
		f->windows.nr_sites = k[i].nr_sites;
		f->windows.brk = brk;
		f->windows.nr_breaks = k[i].nr_breaks;
		for (unsigned n = 0; n < RR_NR; n++)
			f->windows.nr_refused[n] = k[i].nr_refused[n];
		if (!windows_fit(plan, &f->windows) ||
		    !breaks_fit(plan, &f->windows))
			return false;
		window += f->windows.nr;
		site += f->windows.nr_sites;
		brk += f->windows.nr_breaks;
		nr_windows -= f->windows.nr;
		nr_sites -= f->windows.nr_sites;
		nr_breaks -= f->windows.nr_breaks;
	}
	return !in->bad && !nr_windows && !nr_sites && !nr_breaks;
}

static bool subscript_fits(const struct variables *v,
			   const struct range_subscript *s)
{
	return s->var < v->nr_vars && s->array < v->nr_vars &&
	       v->vars[s->array].type.nr_dims && s->times > 0 &&
	       is_bool(&s->sure);
}

static bool numbers_fit(const struct range_plan *plan)
{
	size_t owners = plan->v->nr_vars + plan->nr_subscripts;
	for (size_t i = 0; i < plan->v->nr_vars; i++)
		if (!is_bool(&plan->var[i].shared_out))
			return false;
	for (size_t i = 0; i < plan->nr_subscripts; i++)
		if (!subscript_fits(plan->v, &plan->subscript[i]))
			return false;
	for (size_t i = 0; i < owners; i++)
		if (plan->cell_of[i] >= plan->nr_cells &&
		    plan->cell_of[i] != UINT32_MAX)
			return false;
	for (size_t i = 0; i < plan->nr_uses; i++)
		if (plan->use[i].var >= owners ||
		    plan->use[i].window >= plan->nr_windows ||
		    (i && plan->use[i].var < plan->use[i - 1].var))
			return false;
	for (size_t i = 0; i < plan->nr_windows; i++)
		if (plan->function_of[i] >= plan->v->nr_functions &&
		    plan->function_of[i] != UINT32_MAX)
			return false;
	return true;
}

static bool take(struct range_plan *plan, struct store_in *in)
{
	const struct variables *v = plan->v;
	struct range_image *img = &plan->img;
	const struct kept_plan *k = store_take_some(in, sizeof(*k), 1);
	/* Each window has some bytes of code, each cell a site. */
	uint64_t text = img->hi - img->lo;
	if (!k || k->nr_windows > 8 * (text + v->nr_functions) ||
	    k->nr_cells > 2 * (v->nr_vars + text) || k->code_bytes > text << 12)
		return false;
	plan->nr_cells = k->nr_cells;
	plan->nr_windows = k->nr_windows;
	plan->code_bytes = k->code_bytes;
	plan->lo = k->lo;
	plan->hi = k->hi;
	img->mark = store_take_some(in, 1, text);
	img->taken = store_take(in, sizeof(*img->taken), &img->nr_taken);
	plan->var = store_take_some(in, sizeof(*plan->var), v->nr_vars);
	plan->subscript =
		store_take(in, sizeof(*plan->subscript), &plan->nr_subscripts);
	plan->cell_of = store_take_some(in, sizeof(*plan->cell_of),
					v->nr_vars + plan->nr_subscripts);
	plan->use = store_take(in, sizeof(*plan->use), &plan->nr_uses);
	plan->function_of = store_take_some(in, sizeof(*plan->function_of),
					    plan->nr_windows);
	plan->nr_sorted = plan->nr_uses;
	return !in->bad && numbers_fit(plan) && take_functions(plan, in);
}

/* A cell gets its owner. False: it is not there, or another's. */
static bool own_cell(struct range_plan *plan, uint32_t cell, uint32_t owner)
{
	if (cell >= plan->nr_cells || plan->owner_of[cell] != UINT32_MAX)
		return false;
	plan->owner_of[cell] = owner;
	return true;
}

/* Who has which cell: each is one owner's. SMCO_FORMAT: it is not. */
static int find_owners(struct range_plan *plan)
{
	size_t owners = plan->v->nr_vars + plan->nr_subscripts, nr = 0;
	if (plan->nr_cells > 2 * owners)
		return SMCO_FORMAT;
	plan->owner_of = malloc((plan->nr_cells + 1) * sizeof(uint32_t));
	plan->cap_cells = plan->nr_cells;
	if (!plan->owner_of)
		return SMCO_NOMEM;
	memset(plan->owner_of, 0xff, plan->nr_cells * sizeof(uint32_t));
	for (uint32_t i = 0; i < owners; i++) {
		uint32_t cell = plan->cell_of[i];
		if (cell == UINT32_MAX)
			continue;
		bool two = range_has_hole(plan->v, i);
		if (!own_cell(plan, cell, i) ||
		    (two && !own_cell(plan, cell + 1, i)))
			return SMCO_FORMAT;
		nr += 1 + two;
	}
	return nr == plan->nr_cells ? 0 : SMCO_FORMAT;
}

static int bind(struct range_plan *plan, struct smco_err *err)
{
	int r = find_owners(plan);
	if (r)
		return smco_fail(err, r, 0,
				 "what was kept has no owner, or two");
	range_plan_fix(plan);
	return 0;
}

static void *copy_of(const void *items, size_t nr, size_t item)
{
	void *copy = malloc((nr + 1) * item);
	if (copy && nr)
		memcpy(copy, items, nr * item);
	return copy;
}

bool range_plan_own(struct range_plan *plan)
{
	size_t nr_vars = plan->v->nr_vars, owners;
	if (!plan->is_borrowed)
		return true;
	owners = nr_vars + plan->nr_subscripts;
	void *var = copy_of(plan->var, nr_vars, sizeof(*plan->var));
	void *subscript = copy_of(plan->subscript, plan->nr_subscripts,
				  sizeof(*plan->subscript));
	void *cell_of = copy_of(plan->cell_of, owners, sizeof(*plan->cell_of));
	void *use = copy_of(plan->use, plan->nr_uses, sizeof(*plan->use));
	void *function_of = copy_of(plan->function_of, plan->nr_windows,
				    sizeof(*plan->function_of));
	if (!var || !subscript || !cell_of || !use || !function_of) {
		free(var);
		free(subscript);
		free(cell_of);
		free(use);
		free(function_of);
		return false;
	}
	plan->var = var;
	plan->subscript = subscript;
	plan->cap_subscripts = plan->nr_subscripts;
	plan->cell_of = cell_of;
	plan->use = use;
	plan->cap_uses = plan->nr_uses;
	plan->function_of = function_of;
	plan->cap_windows = plan->nr_windows;
	plan->is_borrowed = false;
	return true;
}

int range_plan_take(struct range_plan **ret, struct store_in *in,
		    struct sym_space *s, uint32_t module,
		    const struct variables *v, struct smco_err *err)
{
	struct range_plan *plan = calloc(1, sizeof(*plan));
	if (plan)
		plan->function =
			calloc(v->nr_functions + 1, sizeof(*plan->function));
	if (!plan || !plan->function) {
		free(plan);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	plan->v = v;
	plan->is_taken = plan->is_borrowed = true;
	plan->elf = sym_module_elf(s, module);
	int r = 0;
	if (!plan->elf)
		r = smco_fail(err, SMCO_NOTFOUND, 0,
			      "the module's file cannot be read");
	if (r == 0)
		r = range_image_open(&plan->img, plan->elf,
				     sym_module_fd(s, module), err);
	if (r == 0 && !take(plan, in))
		r = smco_fail(err, SMCO_FORMAT, 0, "what was kept is damaged");
	if (r == 0)
		r = range_plan_keep(plan, DECODE_BYTES, bind, err);
	if (r) {
		range_plan_destroy(plan);
		return r;
	}
	*ret = plan;
	return 0;
}
