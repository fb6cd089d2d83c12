/*
 * The first functions of a plan, see range.h. What there is in a function is
 * found by looking at it alone, so of some at a time two threads look at the
 * next one each, whoever has time; then they get their numbers, in order.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "supervisor/control/fixed.h"
#include "supervisor/probe/range-plan.h"
#include "symbols/pair.h"

#define FIRST_LOOKS 256 /* before it is known how many windows they have */
#define FEW_LOOKS   16
#define MOST_LOOKS  512

void range_plan_look(const struct range_plan *plan, uint32_t function,
		     struct range_found *ret)
{
	*ret = (struct range_found){.ret = 0};
	ret->ret = range_plan_decode(plan, function, &ret->code, &ret->err);
	if (ret->ret || ret->code.refused)
		return;
	ret->ret = range_sites_find(&ret->sites, &ret->code, &plan->img,
				    plan->v, &plan->ix, function, &ret->err);
	if (ret->ret == 0)
		ret->ret = range_windows_find(&ret->windows, &ret->code,
					      &plan->img, plan->v, &ret->sites,
					      &ret->err);
	if (ret->ret == 0)
		ret->ret = range_subscripts_find(&ret->uses, &ret->code,
						 &plan->img, plan->v, &plan->ix,
						 function, &ret->err);
}

void range_found_free(struct range_found *found)
{
	range_code_deinit(&found->code);
	range_sites_deinit(&found->sites);
	range_windows_deinit(&found->windows);
	range_subscripts_deinit(&found->uses);
}

struct looking {
	const struct range_plan *plan;
	struct range_found *found;
	uint32_t first;
	size_t nr;
	atomic_size_t next;
};

static void *look_at_some(void *arg)
{
	struct looking *l = arg;
	size_t i;
	while ((i = l->next++) < l->nr)
		range_plan_look(l->plan, l->first + (uint32_t)i, &l->found[i]);
	return NULL;
}

/* How many functions to look at, if the first @nr have @windows, and so many
 * more are to be planned: rather too few. */
static size_t looks_for(uint32_t nr, size_t windows, size_t more)
{
	size_t looks = nr ? more / (windows / nr + 1) : FIRST_LOOKS;
	return looks < FEW_LOOKS    ? FEW_LOOKS
	       : looks > MOST_LOOKS ? MOST_LOOKS
				    : looks;
}

/* The next functions from *at on, until there are @most windows. */
static int plan_some(struct range_plan *plan, struct looking *l, uint32_t *at,
		     size_t *windows, size_t most, struct smco_err *err)
{
	int r = 0;
	l->first = *at;
	l->nr = min_u64(looks_for(*at, *windows, most - *windows),
			plan->v->nr_functions - *at);
	l->next = 0;
	pair_run(l->nr >= FEW_LOOKS, look_at_some, l, look_at_some, l);
	for (size_t i = 0; i < l->nr; i++) {
		if (r || *windows >= most) {
			range_found_free(&l->found[i]);
			continue;
		}
		r = range_plan_number(plan, *at, &l->found[i], err);
		*windows += plan->function[(*at)++].windows.nr;
	}
	return r;
}

int range_plan_first(struct range_plan *plan, size_t most, struct smco_err *err)
{
	struct looking l = {
		.plan = plan,
		.found = calloc(MOST_LOOKS, sizeof(*l.found)),
	};
	uint32_t at = 0;
	size_t windows = 0;
	int r = 0;
	if (!l.found)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	while (r == 0 && at < plan->v->nr_functions && windows < most)
		r = plan_some(plan, &l, &at, &windows, most, err);
	free(l.found);
	return r;
}
