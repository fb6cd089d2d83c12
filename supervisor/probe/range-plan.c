/* One module's sites and windows, function by function; see range.h. */
#include "supervisor/probe/range-plan.h"

#include <stdlib.h>
#include <string.h>

/* What a window and a site take in code at most, on average. */
#define WINDOW_BYTES 160
#define SITE_BYTES   288

static uint64_t *all_starts(const struct variables *v, size_t *nr_ret)
{
	uint64_t *starts = calloc(v->nr_ranges + 1, sizeof(*starts));
	for (size_t i = 0; starts && i < v->nr_ranges; i++)
		starts[i] = v->ranges[i].lo;
	*nr_ret = v->nr_ranges;
	return starts;
}

/*
 * A register that the program has done with may still hold a variable: sensors
 * before the one that looks there must not take it for their own.
 */
static void need_variables(const struct range_plan *plan,
			   const struct range_windows *w,
			   struct range_code *code)
{
	for (size_t i = 0; i < w->nr_sites; i++)
		code->insns[w->site[i].gap].use |=
			range_site_regs(&w->site[i], plan->v);
	if (w->nr_sites)
		range_code_live(code);
}

/* Can the windows be in this code? */
static bool are_in_code(const struct range_windows *w,
			const struct range_code *code,
			const struct range_image *img)
{
	if (!w->nr)
		return true;
	if (code->refused || w->window[w->nr - 1].end > code->nr)
		return false;
	for (size_t i = 0; i < w->nr; i++)
		if (code->insns[w->window[i].first].addr + CODE_JUMP_BYTES >
		    img->hi)
			return false;
	for (size_t i = 0; i < w->nr_sites; i++)
		if (w->site[i].gap >= code->nr)
			return false;
	return true;
}

int range_plan_decode(const struct range_plan *plan, uint32_t function,
		      struct range_code *ret, struct smco_err *err)
{
	const struct var_function *f = &plan->v->functions[function];
	if (plan->function[function].code.insns) {
		*ret = plan->function[function].code;
		return 0;
	}
	_cleanup_free_ struct range_chunk *chunks =
		calloc(f->nr_ranges + 1, sizeof(*chunks));
	if (!chunks)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	for (uint32_t i = 0; i < f->nr_ranges; i++) {
		const struct var_range *r =
			&plan->v->ranges[f->first_range + i];
		chunks[i] = (struct range_chunk){r->lo, r->hi};
	}
	int r = range_code_init(ret, &plan->img, chunks, f->nr_ranges, err);
	if (r == 0 && plan->is_taken &&
	    !are_in_code(&plan->function[function].windows, ret, &plan->img)) {
		range_code_deinit(ret);
		r = smco_fail(err, SMCO_UNSUPPORTED, 0,
			      "what was kept is of other code");
	}
	if (r == 0)
		need_variables(plan, &plan->function[function].windows, ret);
	return r;
}

void range_plan_release(const struct range_plan *plan, uint32_t function,
			struct range_code *code)
{
	if (code->insns != plan->function[function].code.insns)
		range_code_deinit(code);
}

static void keep_or_release(struct range_plan *plan,
			    struct range_plan_function *f,
			    struct range_code *code)
{
	uint64_t bytes = code->nr * sizeof(*code->insns);
	if (!f->windows.nr || plan->kept_bytes + bytes > RANGE_KEEP_BYTES) {
		range_code_deinit(code);
		return;
	}
	plan->kept_bytes += bytes;
	f->code = *code;
}

int range_plan_keep(struct range_plan *plan, uint64_t bytes,
		    struct smco_err *err)
{
	for (uint32_t i = 0;
	     i < plan->v->nr_functions && plan->kept_bytes < bytes; i++) {
		struct range_plan_function *f = &plan->function[i];
		struct range_code code;
		if (!f->windows.nr || f->code.insns)
			continue;
		int r = range_plan_decode(plan, i, &code, err);
		if (r == 0)
			keep_or_release(plan, f, &code);
		else if (r != SMCO_UNSUPPORTED)
			return r;
	}
	return 0;
}

static bool add_use(struct range_plan *plan, uint32_t var, uint32_t window)
{
	if (plan->nr_uses == plan->cap_uses) {
		size_t cap = plan->cap_uses ? 2 * plan->cap_uses : 256;
		struct range_use *more =
			realloc(plan->use, cap * sizeof(*more));
		if (!more)
			return false;
		plan->use = more;
		plan->cap_uses = cap;
	}
	plan->use[plan->nr_uses++] = (struct range_use){var, window};
	return true;
}

/* The number of subscript @s, at least @first; UINT32_MAX: no memory. */
static uint32_t subscript_number(struct range_plan *plan,
				 const struct range_subscript *s, size_t first)
{
	for (size_t i = plan->nr_subscripts; i-- > first;) {
		const struct range_subscript *have = &plan->subscript[i];
		if (have->var == s->var && have->array == s->array &&
		    have->offset == s->offset && have->times == s->times &&
		    have->minus == s->minus && have->sure == s->sure)
			return (uint32_t)i;
	}
	if (plan->nr_subscripts == plan->cap_subscripts) {
		size_t cap =
			plan->cap_subscripts ? 2 * plan->cap_subscripts : 64;
		void *more = realloc(plan->subscript,
				     cap * sizeof(*plan->subscript));
		plan->subscript = more ? more : plan->subscript;
		void *cells = realloc(plan->cell_of, (plan->v->nr_vars + cap) *
							     sizeof(uint32_t));
		plan->cell_of = cells ? cells : plan->cell_of;
		if (!more || !cells)
			return UINT32_MAX;
		plan->cap_subscripts = cap;
	}
	uint32_t n = (uint32_t)plan->nr_subscripts++;
	plan->subscript[n] = *s;
	plan->cell_of[range_cell_owner(plan->v, n)] = UINT32_MAX;
	return n;
}

static int by_gap(const void *a, const void *b)
{
	const struct range_site *x = a, *y = b;
	if (x->gap != y->gap)
		return x->gap < y->gap ? -1 : 1;
	return x->var < y->var ? -1 : x->var > y->var;
}

/* Sites for what is used as a subscript, to those of values. */
static bool add_subscripts(struct range_plan *plan, struct range_sites *sites,
			   const struct range_subscript_uses *uses)
{
	size_t nr = sites->nr + uses->nr, first = plan->nr_subscripts;
	struct range_site *more = realloc(sites->site, nr * sizeof(*more));
	if (!more)
		return false;
	sites->site = more;
	sites->cap = nr;
	for (size_t i = 0; i < uses->nr; i++) {
		const struct range_subscript_use *u = &uses->use[i];
		uint32_t n = subscript_number(plan, &u->what, first);
		if (n == UINT32_MAX)
			return false;
		struct range_site s = {.gap = u->gap,
				       .var = range_cell_owner(plan->v, n),
				       .source = RS_REG,
				       .reg = u->reg,
				       .subscript = true};
		/* The same twice: two accesses behind one gap. */
		if (i && sites->site[sites->nr - 1].gap == s.gap &&
		    sites->site[sites->nr - 1].var == s.var)
			continue;
		sites->site[sites->nr++] = s;
	}
	qsort(sites->site, sites->nr, sizeof(*sites->site), by_gap);
	return true;
}

static bool count_sites(struct range_plan *plan, uint32_t function,
			const struct range_sites *sites)
{
	const struct range_plan_function *f = &plan->function[function];
	const struct range_windows *w = &f->windows;
	for (size_t i = 0; i < sites->nr; i++)
		if (!sites->site[i].subscript)
			plan->var[sites->site[i].var].nr_sites++;
	for (uint32_t k = 0; k < w->nr; k++) {
		const struct range_window *win = &w->window[k];
		for (uint32_t i = 0; i < win->nr_sites; i++) {
			uint32_t var = w->site[win->first_site + i].var;
			if (var < plan->v->nr_vars)
				plan->var[var].nr_served++;
			if (plan->cell_of[var] == UINT32_MAX)
				plan->cell_of[var] = (uint32_t)plan->nr_cells++;
			if (!add_use(plan, var, f->first_window + k))
				return false;
		}
	}
	return true;
}

static int by_variable(const void *a, const void *b)
{
	const struct range_use *x = a, *y = b;
	if (x->var != y->var)
		return x->var < y->var ? -1 : 1;
	return x->window < y->window ? -1 : x->window > y->window;
}

static bool sort_uses(struct range_plan *plan)
{
	if (plan->nr_uses)
		qsort(plan->use, plan->nr_uses, sizeof(*plan->use),
		      by_variable);
	plan->function_of = malloc((plan->nr_windows + 1) * sizeof(uint32_t));
	if (!plan->function_of)
		return false;
	memset(plan->function_of, 0xff,
	       (plan->nr_windows + 1) * sizeof(uint32_t));
	for (uint32_t i = 0; i < plan->v->nr_functions; i++) {
		const struct range_plan_function *f = &plan->function[i];
		for (uint32_t k = 0; k < f->windows.nr; k++)
			plan->function_of[f->first_window + k] = i;
	}
	return true;
}

static void count_windows(struct range_plan *plan,
			  struct range_plan_function *f,
			  const struct range_code *code)
{
	const struct range_windows *w = &f->windows;
	f->first_window = (uint32_t)plan->nr_windows;
	/* No two functions' counters in one line: they may be hot in two
	 * threads. */
	plan->nr_windows += (w->nr + 7) & ~7UL;
	plan->code_bytes += w->nr * WINDOW_BYTES + w->nr_sites * SITE_BYTES;
	for (size_t i = 0; i < w->nr; i++) {
		uint64_t at = code->insns[w->window[i].first].addr;
		plan->lo = at < plan->lo ? at : plan->lo;
		plan->hi = at + CODE_JUMP_BYTES > plan->hi
				   ? at + CODE_JUMP_BYTES
				   : plan->hi;
	}
}

static size_t nr_values(const struct range_site *site, size_t nr)
{
	size_t n = 0;
	for (size_t i = 0; i < nr; i++)
		n += !site[i].subscript;
	return n;
}

/* Windows for all sites: values and, where that leaves room for all values that
 * have some without, subscripts. */
static int find_windows(struct range_plan *plan, const struct range_index *ix,
			uint32_t number, const struct range_code *code,
			struct range_sites *sites, struct smco_err *err)
{
	struct range_windows *w = &plan->function[number].windows, with;
	struct range_subscript_uses uses;
	size_t before = plan->nr_subscripts;
	int r = range_windows_find(w, code, &plan->img, plan->v, sites, err);
	if (r == 0)
		r = range_subscripts_find(&uses, code, &plan->img, plan->v, ix,
					  number, err);
	if (r || !uses.nr)
		return r;
	if (!add_subscripts(plan, sites, &uses))
		r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	range_subscripts_deinit(&uses);
	if (r == 0)
		r = range_windows_find(&with, code, &plan->img, plan->v, sites,
				       err);
	if (r)
		return r;
	bool enough = nr_values(with.site, with.nr_sites) >= w->nr_sites;
	if (!enough)
		plan->nr_subscripts = before;
	range_windows_deinit(enough ? w : &with);
	if (enough)
		*w = with;
	return 0;
}

static int plan_function(struct range_plan *plan, const struct range_index *ix,
			 uint32_t number, struct smco_err *err)
{
	struct range_plan_function *f = &plan->function[number];
	struct range_code code;
	struct range_sites sites = {.nr = 0};
	int r = range_plan_decode(plan, number, &code, err);
	if (r)
		return r;
	f->info.refused = code.refused;
	if (!code.refused)
		r = range_sites_find(&sites, &code, &plan->img, plan->v, ix,
				     number, err);
	if (r == 0 && !code.refused)
		r = find_windows(plan, ix, number, &code, &sites, err);
	if (r == 0) {
		need_variables(plan, &f->windows, &code);
		f->info.nr_sites = (uint32_t)nr_values(sites.site, sites.nr);
		f->info.nr_served = (uint32_t)nr_values(f->windows.site,
							f->windows.nr_sites);
		f->info.nr_windows = (uint32_t)f->windows.nr;
		f->info.nr_unreadable = (uint32_t)sites.nr_unreadable;
		f->info.nr_pinned = (uint32_t)f->windows.nr_refused[RR_PINNED];
		f->info.nr_no_room =
			(uint32_t)f->windows.nr_refused[RR_NO_ROOM];
		count_windows(plan, f, &code);
		if (!count_sites(plan, number, &sites))
			r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	range_sites_deinit(&sites);
	keep_or_release(plan, f, &code);
	return r;
}

/* Whose address others know, see range-site.c. */
static void mark_shared(struct range_plan *plan, const struct range_index *ix)
{
	for (size_t i = 0; i < ix->nr_data; i++) {
		const struct range_index_entry *e = &ix->data[i];
		if (range_image_taken(&plan->img, e->lo, e->lo + 1))
			plan->var[e->var].shared_out = true;
	}
}

int range_plan_create(struct range_plan **ret, struct sym_space *s,
		      uint32_t module, const struct variables *v,
		      struct smco_err *err)
{
	struct range_index ix = {.nr_locals = 0};
	struct range_plan *plan = calloc(1, sizeof(*plan));
	size_t nr_starts = 0;
	_cleanup_free_ uint64_t *starts = all_starts(v, &nr_starts);
	int r = 0;

	if (plan) {
		plan->v = v;
		plan->lo = UINT64_MAX;
		plan->function =
			calloc(v->nr_functions + 1, sizeof(*plan->function));
		plan->var = calloc(v->nr_vars + 1, sizeof(*plan->var));
		plan->cell_of = malloc((v->nr_vars + 1) * sizeof(uint32_t));
	}
	if (!plan || !starts || !plan->function || !plan->var ||
	    !plan->cell_of) {
		range_plan_destroy(plan);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	memset(plan->cell_of, 0xff, (v->nr_vars + 1) * sizeof(uint32_t));
	plan->elf = sym_module_elf(s, module);
	if (!plan->elf)
		r = smco_fail(err, SMCO_NOTFOUND, 0,
			      "the module's file cannot be read");
	if (r == 0)
		r = range_image_load(&plan->img, plan->elf, starts, nr_starts,
				     err);
	if (r == 0)
		r = range_index_init(&ix, v, err);
	for (uint32_t i = 0; r == 0 && i < v->nr_functions; i++)
		r = plan_function(plan, &ix, i, err);
	if (r == 0 && !sort_uses(plan))
		r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (r == 0)
		mark_shared(plan, &ix);
	range_index_deinit(&ix);
	if (r) {
		range_plan_destroy(plan);
		return r;
	}
	*ret = plan;
	return 0;
}

void range_plan_destroy(struct range_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; plan->function && i < plan->v->nr_functions; i++) {
		if (!plan->is_taken)
			range_windows_deinit(&plan->function[i].windows);
		range_code_deinit(&plan->function[i].code);
	}
	elf_end(plan->elf);
	free(plan->function);
	if (plan->is_taken) {
		free(plan);
		return;
	}
	range_image_deinit(&plan->img);
	free(plan->var);
	free(plan->cell_of);
	free(plan->subscript);
	free(plan->use);
	free(plan->function_of);
	free(plan);
}

const struct range_function_info *
range_plan_function(const struct range_plan *plan, uint32_t function)
{
	return &plan->function[function].info;
}

const struct range_var_info *range_plan_variable(const struct range_plan *plan,
						 uint32_t var)
{
	return &plan->var[var];
}

size_t range_plan_nr_windows(const struct range_plan *plan)
{
	return plan->nr_windows;
}

uint32_t range_plan_function_of(const struct range_plan *plan, uint32_t window)
{
	return window < plan->nr_windows ? plan->function_of[window]
					 : UINT32_MAX;
}

const struct range_use *range_plan_uses(const struct range_plan *plan,
					uint32_t var, size_t *nr_ret)
{
	size_t a = 0, b = plan->nr_uses;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (plan->use[mid].var < var)
			a = mid + 1;
		else
			b = mid;
	}
	for (b = a; b < plan->nr_uses && plan->use[b].var == var;)
		b++;
	*nr_ret = b - a;
	return plan->use + a;
}

const struct range_subscript *
range_plan_subscripts(const struct range_plan *plan, size_t *nr_ret)
{
	*nr_ret = plan->nr_subscripts;
	return plan->subscript;
}
