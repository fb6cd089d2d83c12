/* The code of a plan's functions, decoded when somebody asks for it, and how
 * much of it is kept; see range-plan.h. */
#include <stdatomic.h>
#include <stdlib.h>

#include "supervisor/probe/range-plan.h"
#include "supervisor/probe/range-relay.h"
#include "symbols/pair.h"

void range_plan_need(const struct range_plan *plan,
		     const struct range_windows *w, struct range_code *code)
{
	for (size_t i = 0; i < w->nr_sites; i++)
		code->insns[w->site[i].gap].use |=
			range_site_regs(&w->site[i], plan->v);
	range_breaks_need(w, plan->v, code);
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
	return range_breaks_fit(w, code) && range_relays_fit(code, img, w);
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
	if (r == 0 && plan->function[function].is_borrowed &&
	    !are_in_code(&plan->function[function].windows, ret, &plan->img)) {
		range_code_deinit(ret);
		r = smco_fail(err, SMCO_UNSUPPORTED, 0,
			      "what was kept is of other code");
	}
	if (r == 0)
		range_plan_need(plan, &plan->function[function].windows, ret);
	return r;
}

void range_plan_release(const struct range_plan *plan, uint32_t function,
			struct range_code *code)
{
	if (code->insns != plan->function[function].code.insns)
		range_code_deinit(code);
}

static uint64_t bytes_of(const struct range_code *code)
{
	return code->nr * sizeof(*code->insns);
}

void range_plan_keep_or_release(struct range_plan *plan,
				struct range_plan_function *f,
				struct range_code *code)
{
	uint64_t bytes = bytes_of(code);
	if (!f->windows.nr ||
	    (!plan->is_fixed && plan->kept_bytes + bytes > RANGE_KEEP_BYTES)) {
		range_code_deinit(code);
		return;
	}
	plan->kept_bytes += bytes;
	f->code = *code;
}

void range_plan_forget(struct range_plan *plan, uint32_t function)
{
	struct range_code *code = &plan->function[function].code;
	if (plan->kept_bytes <= RANGE_KEEP_LATE_BYTES || !code->insns)
		return;
	plan->kept_bytes -= bytes_of(code);
	range_code_deinit(code);
	*code = (struct range_code){.nr = 0};
}

/* Two threads take the next function, whoever has time. */
struct keeping {
	struct range_plan *plan;
	uint64_t most;
	int (*first)(struct range_plan *plan, struct smco_err *err);
	_Atomic uint32_t next;
	_Atomic uint64_t kept;
	atomic_bool failed;
	struct smco_err first_err;
	int ret;
};

static void *keep_some(void *arg)
{
	struct keeping *k = arg;
	struct range_plan *plan = k->plan;
	uint32_t i;
	while (!k->failed && k->kept < k->most &&
	       (i = k->next++) < plan->v->nr_functions) {
		struct range_plan_function *f = &plan->function[i];
		struct smco_err err;
		struct range_code code;
		if (!f->windows.nr || f->code.insns)
			continue;
		int r = range_plan_decode(plan, i, &code, &err);
		if (r == 0) {
			f->code = code;
			k->kept += bytes_of(&code);
		} else if (r != SMCO_UNSUPPORTED) {
			k->failed = true;
		}
	}
	return NULL;
}

static void *keep_after_first(void *arg)
{
	struct keeping *k = arg;
	k->ret = k->first(k->plan, &k->first_err);
	if (k->ret)
		k->failed = true;
	else
		keep_some(k);
	return NULL;
}

int range_plan_keep(struct range_plan *plan, uint64_t bytes,
		    int (*first)(struct range_plan *plan, struct smco_err *err),
		    struct smco_err *err)
{
	struct keeping k = {
		.plan = plan,
		.most = bytes,
		.first = first,
		.kept = plan->kept_bytes,
	};
	pair_run(plan->nr_windows >= pair_from, keep_some, &k, keep_after_first,
		 &k);
	plan->kept_bytes = k.kept;
	if (k.ret)
		*err = k.first_err;
	else if (k.failed)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	return k.ret;
}
