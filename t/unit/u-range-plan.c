/*
 * The first functions of a plan are the same whether one thread looks at them
 * or two, and their windows, those that there are, are as many as was asked for
 * and not a function more.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "supervisor/probe/range-plan.h"
#include "symbols/pair.h"
#include "t/unit/tap.h"

static struct sym_space *space;
static struct variables *v;

static void set_cpus(const cpu_set_t *set)
{
	check_int(sched_setaffinity(0, sizeof(*set), set), 0);
}

static struct range_plan *begin(size_t windows)
{
	struct range_plan *plan = NULL;
	struct smco_err err = {0};
	check_int(range_plan_begin(&plan, space, 1, v, windows, &err), 0);
	return plan;
}

static bool same_function(const struct range_plan_function *a,
			  const struct range_plan_function *b)
{
	return a->is_planned == b->is_planned &&
	       a->first_window == b->first_window &&
	       a->windows.nr == b->windows.nr &&
	       a->windows.nr_sites == b->windows.nr_sites &&
	       a->info.nr_sites == b->info.nr_sites &&
	       a->info.nr_unreadable == b->info.nr_unreadable &&
	       a->info.refused == b->info.refused &&
	       (!a->windows.nr ||
		!memcmp(a->windows.window, b->windows.window,
			a->windows.nr * sizeof(*a->windows.window)));
}

/* The functions that @part has, as @all has them. */
static size_t compare(const struct range_plan *part,
		      const struct range_plan *all)
{
	size_t nr = 0, wrong = 0;
	for (; nr < v->nr_functions && part->function[nr].is_planned; nr++)
		wrong +=
			!same_function(&part->function[nr], &all->function[nr]);
	check_int(wrong, 0);
	wrong = 0;
	for (size_t i = 0; i < v->nr_vars; i++)
		wrong += part->var[i].shared_out != all->var[i].shared_out;
	check_int(wrong, 0);
	wrong = 0;
	for (size_t i = 0; i < part->nr_subscripts; i++)
		wrong += part->subscript[i].var != all->subscript[i].var ||
			 part->subscript[i].array != all->subscript[i].array ||
			 part->subscript[i].offset != all->subscript[i].offset;
	check_int(wrong, 0);
	check_int(part->nr_planned, nr);
	return nr;
}

static size_t windows_of(const struct range_plan *plan, size_t nr)
{
	size_t sum = 0;
	for (size_t i = 0; i < nr; i++)
		sum += plan->function[i].windows.nr;
	return sum;
}

int main(void)
{
	cpu_set_t all, one;
	struct smco_err err = {0};
	check_int(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	pair_from = 1;
	space = sym_space_of_file("/proc/self/exe");
	v = variables_load(space, 1, NULL, NULL, &err);
	check_msg(v && v->nr_functions > 300, "variables %s", err.msg);
	set_cpus(&one);
	struct range_plan *alone = begin(SIZE_MAX);
	set_cpus(&all);
	struct range_plan *two = begin(SIZE_MAX);
	struct range_plan *some = begin(500);
	check_int(compare(two, alone), v->nr_functions);
	check_int(memcmp(two->cell_of, alone->cell_of,
			 v->nr_vars * sizeof(*two->cell_of)),
		  0);
	check(two->nr_cells == alone->nr_cells && two->nr_cells > 1000);
	size_t nr = compare(some, alone);
	printf("# %zu of %zu functions, %zu of %zu windows\n", nr,
	       v->nr_functions, windows_of(some, nr),
	       windows_of(two, v->nr_functions));
	check(windows_of(some, nr) >= 500 && windows_of(some, nr - 1) < 500);
	range_plan_destroy(some);
	range_plan_destroy(two);
	range_plan_destroy(alone);
	variables_destroy(v);
	sym_space_destroy(space);
	return tap_done();
}
