/* One module's sites and windows, function by function; see range.h. */
#include "supervisor/probe/range-hole.h"
#include "supervisor/probe/range-plan.h"

#include <stdlib.h>
#include <string.h>

#include "supervisor/control/fixed.h"

/* What a window and a site take in code at most, on average. */
#define WINDOW_BYTES 160
#define SITE_BYTES   288 /* and range_hole_bytes() */

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

/* Room for @more cells. */
static bool grow_cells(struct range_plan *plan, size_t more)
{
	size_t cap = plan->cap_cells + plan->cap_cells / 2 + more + 64;
	if (plan->nr_cells + more <= plan->cap_cells)
		return true;
	uint32_t *owner_of = realloc(plan->owner_of, cap * sizeof(uint32_t));
	if (!owner_of)
		return false;
	plan->owner_of = owner_of;
	plan->cap_cells = cap;
	return true;
}

static bool count_sites(struct range_plan *plan, uint32_t function,
			const struct range_sites *sites)
{
	const struct range_plan_function *f = &plan->function[function];
	const struct range_windows *w = &f->windows;
	if (!grow_cells(plan, 2 * w->nr_sites))
		return false;
	for (size_t i = 0; i < sites->nr; i++)
		if (!sites->site[i].subscript)
			plan->var[sites->site[i].var].nr_sites++;
	for (uint32_t k = 0; k < w->nr; k++) {
		const struct range_window *win = &w->window[k];
		for (uint32_t i = 0; i < win->nr_sites; i++) {
			uint32_t var = w->site[win->first_site + i].var;
			if (var < plan->v->nr_vars)
				plan->var[var].nr_served++;
			if (!range_plan_add_use(plan, var, f->first_window + k))
				return false;
			if (plan->cell_of[var] != UINT32_MAX)
				continue;
			plan->owner_of[plan->nr_cells] = var;
			plan->cell_of[var] = (uint32_t)plan->nr_cells++;
			if (range_has_hole(plan->v, var))
				plan->owner_of[plan->nr_cells++] = var;
		}
	}
	return true;
}

/* No two functions' counters in one line: they may be hot in two threads. */
static size_t numbers(size_t windows)
{
	return (windows + 7) & ~7UL;
}

/* Numbers for the windows of function @number. */
static bool number_windows(struct range_plan *plan, uint32_t number)
{
	struct range_plan_function *f = &plan->function[number];
	size_t nr = plan->nr_windows + numbers(f->windows.nr);
	if (nr > plan->cap_windows) {
		size_t cap = nr + nr / 2;
		uint32_t *more = realloc(plan->function_of,
					 (cap + 1) * sizeof(uint32_t));
		if (!more)
			return false;
		plan->function_of = more;
		plan->cap_windows = cap;
	}
	f->first_window = (uint32_t)plan->nr_windows;
	for (; plan->nr_windows < nr; plan->nr_windows++)
		plan->function_of[plan->nr_windows] =
			plan->nr_windows - f->first_window < f->windows.nr
				? number
				: UINT32_MAX;
	return true;
}

static void patched_at(struct range_plan *plan, uint64_t at)
{
	plan->lo = at < plan->lo ? at : plan->lo;
	plan->hi = at + CODE_JUMP_BYTES > plan->hi ? at + CODE_JUMP_BYTES
						   : plan->hi;
}

uint64_t range_plan_stub_bytes(const struct variables *v,
			       const struct range_windows *w)
{
	uint64_t bytes = w->nr * WINDOW_BYTES + w->nr_sites * SITE_BYTES;
	for (size_t i = 0; i < w->nr_sites; i++)
		bytes += range_hole_bytes(v, w->site[i].var);
	return bytes;
}

static void count_windows(struct range_plan *plan,
			  struct range_plan_function *f,
			  const struct range_code *code)
{
	const struct range_windows *w = &f->windows;
	plan->code_bytes += range_plan_stub_bytes(plan->v, w);
	for (size_t i = 0; i < w->nr; i++) {
		uint64_t relay = w->window[i].relay;
		patched_at(plan, code->insns[w->window[i].first].addr);
		if (relay)
			patched_at(plan, relay);
	}
}

static size_t nr_values(const struct range_site *site, size_t nr)
{
	size_t n = 0;
	for (size_t i = 0; i < nr; i++)
		n += !site[i].subscript;
	return n;
}

/* More than was bound, in odd files only. */
static void keep_bound(struct range_plan *plan, struct range_plan_function *f)
{
	if (!plan->is_fixed ||
	    plan->nr_windows + numbers(f->windows.nr) <= plan->most_windows)
		return;
	range_windows_deinit(&f->windows);
	f->info.refused = "there is no room for more sensors";
}

/* Windows for all sites: values and, where that leaves room for all values that
 * have some without, subscripts. */
static int find_windows(struct range_plan *plan, struct range_windows *w,
			struct range_found *found, struct smco_err *err)
{
	struct range_windows with;
	size_t before = plan->nr_subscripts;
	*w = found->windows;
	found->windows = (struct range_windows){.nr = 0};
	if (!found->uses.nr ||
	    (plan->is_fixed && before + found->uses.nr > plan->most_subscripts))
		return 0;
	if (!add_subscripts(plan, &found->sites, &found->uses))
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	int r = range_windows_find(&with, &found->code, &plan->img, plan->v,
				   &found->sites, err);
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

static void describe(struct range_function_info *info,
		     const struct range_windows *w,
		     const struct range_sites *sites)
{
	info->nr_sites = (uint32_t)nr_values(sites->site, sites->nr);
	info->nr_served = (uint32_t)nr_values(w->site, w->nr_sites);
	info->nr_windows = (uint32_t)w->nr;
	info->nr_unreadable = (uint32_t)sites->nr_unreadable;
	info->nr_pinned = (uint32_t)w->nr_refused[RR_PINNED];
	info->nr_no_room = (uint32_t)w->nr_refused[RR_NO_ROOM];
}

static void is_planned_now(struct range_plan *plan,
			   struct range_plan_function *f)
{
	f->is_planned = true;
	if (++plan->nr_planned == plan->v->nr_functions) {
		range_index_deinit(&plan->ix);
		plan->has_index = false;
	}
}

int range_plan_number(struct range_plan *plan, uint32_t number,
		      struct range_found *found, struct smco_err *err)
{
	struct range_plan_function *f = &plan->function[number];
	int r = found->ret;
	if (r)
		*err = found->err;
	f->info.refused = found->code.refused;
	if (r == 0)
		r = find_windows(plan, &f->windows, found, err);
	if (r == 0) {
		keep_bound(plan, f);
		range_plan_need(plan, &f->windows, &found->code);
		describe(&f->info, &f->windows, &found->sites);
		count_windows(plan, f, &found->code);
		if (!number_windows(plan, number) ||
		    !count_sites(plan, number, &found->sites))
			r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	range_plan_keep_or_release(plan, f, &found->code);
	found->code = (struct range_code){.nr = 0};
	range_found_free(found);
	if (r == 0)
		is_planned_now(plan, f);
	return r;
}

int range_plan_index(struct range_plan *plan, struct smco_err *err)
{
	if (plan->has_index)
		return 0;
	int r = range_index_init(&plan->ix, plan->v, err);
	plan->has_index = r == 0;
	return r;
}

int range_plan_more(struct range_plan *plan, uint32_t function,
		    struct smco_err *err)
{
	struct range_found found;
	if (plan->function[function].is_planned)
		return 0;
	int r = range_plan_index(plan, err);
	if (r == 0 && !range_plan_own(plan))
		r = smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	if (r)
		return r;
	range_plan_look(plan, function, &found);
	return range_plan_number(plan, function, &found, err);
}

int range_plan_begin(struct range_plan **ret, struct sym_space *s,
		     uint32_t module, const struct variables *v, size_t windows,
		     struct smco_err *err)
{
	struct range_plan *plan = calloc(1, sizeof(*plan));
	int r = 0;

	if (plan) {
		plan->v = v;
		plan->lo = UINT64_MAX;
		plan->function =
			calloc(v->nr_functions + 1, sizeof(*plan->function));
		plan->var = calloc(v->nr_vars + 1, sizeof(*plan->var));
		plan->cell_of = malloc((v->nr_vars + 1) * sizeof(uint32_t));
	}
	if (!plan || !plan->function || !plan->var || !plan->cell_of) {
		range_plan_destroy(plan);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	memset(plan->cell_of, 0xff, (v->nr_vars + 1) * sizeof(uint32_t));
	plan->elf = sym_module_elf(s, module);
	if (!plan->elf)
		r = smco_fail(err, SMCO_NOTFOUND, 0,
			      "the module's file cannot be read");
	if (r == 0)
		r = range_plan_load(plan, sym_module_fd(s, module), err);
	if (r == 0)
		r = range_plan_first(plan, windows, err);
	if (r) {
		range_plan_destroy(plan);
		return r;
	}
	range_plan_fix(plan);
	range_plan_settle(plan);
	*ret = plan;
	return 0;
}

int range_plan_create(struct range_plan **ret, struct sym_space *s,
		      uint32_t module, const struct variables *v,
		      struct smco_err *err)
{
	return range_plan_begin(ret, s, module, v, SIZE_MAX, err);
}

/* The code of the functions that are not planned: no more than there is. */
static uint64_t code_left(const struct range_plan *plan, size_t *nr_ret)
{
	uint64_t sum = 0, all = plan->img.hi - plan->img.lo;
	*nr_ret = 0;
	for (uint32_t i = 0; i < plan->v->nr_functions; i++) {
		const struct var_function *f = &plan->v->functions[i];
		if (plan->function[i].is_planned)
			continue;
		++*nr_ret;
		for (uint32_t k = 0; k < f->nr_ranges && sum < all; k++) {
			const struct var_range *r =
				&plan->v->ranges[f->first_range + k];
			sum += min_u64(r->hi - r->lo, all);
		}
	}
	return min_u64(sum, all);
}

/* Of each byte of code: usual are 10 to 28 of stubs, at most. */
#define STUB_BYTES	32
#define MOST_STUB_BYTES (512ULL << 20)
#define SUBSCRIPT_EVERY 16 /* bytes of code */

/* Those that could have a hole: whether they do takes looking at all names. */
static size_t nr_with_hole(const struct variables *v)
{
	size_t nr = 0;
	for (size_t i = 0; i < v->nr_vars; i++)
		nr += v->vars[i].type.nr_enumerators > 1;
	return nr;
}

void range_plan_fix(struct range_plan *plan)
{
	size_t nr;
	uint64_t left = code_left(plan, &nr);
	bool whole = range_plan_is_whole(plan);
	plan->most_windows =
		plan->nr_windows + left / CODE_JUMP_BYTES + numbers(1) * nr;
	plan->most_subscripts = plan->nr_subscripts + left / SUBSCRIPT_EVERY;
	plan->most_cells = whole ? plan->nr_cells
				 : plan->v->nr_vars + nr_with_hole(plan->v) +
					   plan->most_subscripts;
	plan->most_code_bytes =
		plan->code_bytes + min_u64(left * STUB_BYTES, MOST_STUB_BYTES);
	plan->is_fixed = true;
}

void range_plan_destroy(struct range_plan *plan)
{
	if (!plan)
		return;
	ranges_destroy(plan->made);
	for (size_t i = 0; plan->function && i < plan->v->nr_functions; i++) {
		if (!plan->function[i].is_borrowed)
			range_windows_deinit(&plan->function[i].windows);
		range_code_deinit(&plan->function[i].code);
	}
	if (plan->has_index)
		range_index_deinit(&plan->ix);
	elf_end(plan->elf);
	free(plan->function);
	free(plan->owner_of);
	if (plan->is_taken) { /* marks are of the file that was kept */
		plan->img.mark = NULL;
		plan->img.taken = NULL;
	}
	range_image_deinit(&plan->img);
	if (!plan->is_borrowed) {
		free(plan->var);
		free(plan->cell_of);
		free(plan->subscript);
		free(plan->use);
		free(plan->function_of);
	}
	free(plan);
}

bool range_plan_is_planned(const struct range_plan *plan, uint32_t function)
{
	return plan->function[function].is_planned;
}

uint32_t range_plan_function_at(const struct range_plan *plan, uint64_t addr)
{
	const struct variables *v = plan->v;
	for (uint32_t i = 0; i < v->nr_functions; i++) {
		const struct var_function *f = &v->functions[i];
		for (uint32_t k = 0; k < f->nr_ranges; k++)
			if (addr - v->ranges[f->first_range + k].lo <
			    v->ranges[f->first_range + k].hi -
				    v->ranges[f->first_range + k].lo)
				return i;
	}
	return UINT32_MAX;
}

const uint8_t *range_plan_insn_before(const struct range_plan *plan,
				      uint64_t addr, size_t *len_ret)
{
	const struct range_image *img = &plan->img;
	const uint8_t *found = NULL;
	if (addr <= img->lo || addr > img->hi || !img->mark ||
	    range_plan_function_at(plan, addr - 1) == UINT32_MAX)
		return NULL;
	for (size_t len = 1; len <= ZYDIS_MAX_INSTRUCTION_LENGTH; len++) {
		struct code_insn in;
		if (addr - img->lo < len)
			break;
		uint64_t off = addr - len - img->lo;
		if (!(img->mark[off] & RANGE_MARK_INSN) ||
		    !code_decode(img->text + off, img->hi - (addr - len),
				 addr - len, &in) ||
		    in.z.length != len)
			continue;
		if (found)
			return NULL;
		found = img->text + off;
		*len_ret = len;
	}
	return found;
}

bool range_plan_in_file(const struct range_plan *plan, uint64_t addr)
{
	return range_image_at(&plan->img, addr, 1) != NULL;
}

bool range_plan_is_whole(const struct range_plan *plan)
{
	return plan->nr_planned == plan->v->nr_functions;
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

size_t range_plan_most_windows(const struct range_plan *plan)
{
	return plan->most_windows;
}

size_t range_plan_most_subscripts(const struct range_plan *plan)
{
	return plan->most_subscripts;
}

uint32_t range_plan_windows_of(const struct range_plan *plan, uint32_t function,
			       uint32_t *first_ret)
{
	const struct range_plan_function *f = &plan->function[function];
	*first_ret = f->first_window;
	return f->first_window + (uint32_t)f->windows.nr;
}

uint32_t range_plan_function_of(const struct range_plan *plan, uint32_t window)
{
	return window < plan->nr_windows ? plan->function_of[window]
					 : UINT32_MAX;
}

const struct range_subscript *
range_plan_subscripts(const struct range_plan *plan, size_t *nr_ret)
{
	*nr_ret = plan->nr_subscripts;
	return plan->subscript;
}
