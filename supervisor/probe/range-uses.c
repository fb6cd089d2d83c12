/* Which windows a variable has sites in, see range.h. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-plan.h"

bool range_plan_add_use(struct range_plan *plan, uint32_t var, uint32_t window)
{
	if (plan->nr_uses == plan->cap_uses) {
		size_t cap = plan->cap_uses + plan->cap_uses / 2 + 256;
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

static int by_variable(const void *a, const void *b)
{
	const struct range_use *x = a, *y = b;
	if (x->var != y->var)
		return x->var < y->var ? -1 : 1;
	return x->window < y->window ? -1 : x->window > y->window;
}

/* Those that came since are few: put between the others, in the place of
 * sorting all. */
static bool merge(struct range_plan *plan)
{
	size_t a = 0, b = plan->nr_sorted, nr = plan->nr_uses, at = 0;
	struct range_use *all = malloc(nr * sizeof(*all));
	if (!all)
		return false;
	const struct range_use *use = plan->use;
	while (a < plan->nr_sorted && b < nr)
		all[at++] = by_variable(&use[a], &use[b]) <= 0 ? use[a++]
							       : use[b++];
	while (a < plan->nr_sorted)
		all[at++] = use[a++];
	while (b < nr)
		all[at++] = use[b++];
	free(plan->use);
	plan->use = all;
	plan->cap_uses = nr;
	return true;
}

void range_plan_settle(struct range_plan *plan)
{
	size_t nr = plan->nr_uses - plan->nr_sorted;
	if (!nr)
		return;
	qsort(plan->use + plan->nr_sorted, nr, sizeof(*plan->use), by_variable);
	if (plan->nr_sorted && !merge(plan))
		qsort(plan->use, plan->nr_uses, sizeof(*plan->use),
		      by_variable);
	plan->nr_sorted = plan->nr_uses;
}

const struct range_use *range_plan_uses(const struct range_plan *plan,
					uint32_t var, size_t *nr_ret)
{
	size_t a = 0, b = plan->nr_sorted;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (plan->use[mid].var < var)
			a = mid + 1;
		else
			b = mid;
	}
	for (b = a; b < plan->nr_sorted && plan->use[b].var == var;)
		b++;
	*nr_ret = b - a;
	return plan->use + a;
}
