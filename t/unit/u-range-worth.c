/*
 * What is still to be expected at a window: nothing of constants that were
 * seen, and of types whose every value was; of others the less, the more values
 * came and were nothing new.
 */
#include "t/unit/symhelp.h"
#include <fcntl.h>
#include "supervisor/probe/range-live.h"
#include "t/unit/range-run.h"

static struct range_run x;

/* How many windows were passed that have sensors of @name alone; how many of
 * them are worth nothing. */
static unsigned passed(const char *program, const char *name, unsigned *none)
{
	char prog[256], out[256];
	unsigned nr = 0;
	memset(&x, 0, sizeof(x));
	x.only = name;
	snprintf(prog, sizeof(prog), "%s/%s", scratch, program);
	snprintf(out, sizeof(out), "%s/out", scratch);
	*none = 0;
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	if (!check(x.r != NULL))
		return 0;
	for (uint32_t i = 0; i < range_plan_nr_windows(x.plan); i++) {
		if (!ranges_hits(x.r, i))
			continue;
		bool doubled;
		/* It does not matter that somebody was going to ask. */
		const struct range_news ahead[] = {{.window = i},
						   {.window = UINT32_MAX}};
		ranges_worth_ahead(x.r, ahead, ARRAY_SIZE(ahead));
		uint32_t first = ranges_worth(x.r, i, 10, &doubled);
		check(!doubled);
		nr++;
		*none += !first;
		check(first <= RANGE_WORTH);
		uint32_t second = ranges_worth(x.r, i, 10, &doubled);
		check(!doubled);
		check(first ? second && second < first : !second);
		/* It is values that count, however seldom it is asked. */
		second = ranges_worth(x.r, i, 1000, &doubled);
		check(first ? second && second < RANGE_WORTH / 100 : !second);
		second = ranges_worth(x.r, i, UINT64_MAX / 2, &doubled);
		check_int(second, first ? 1 : 0);
	}
	range_run_free(&x);
	return nr;
}

/* Is something new told of @window when the largest value is @more larger? */
static bool told(uint32_t window, uint32_t var, int32_t more)
{
	struct range_cell *cell =
		(struct range_cell *)x.r->data + x.plan->cell_of[var];
	bool doubled;
	cell->largest += (uint32_t)more;
	ranges_worth(x.r, window, 10, &doubled);
	return doubled;
}

/* The program, with sensors of "part" alone, which is 0 to 9 then: its number,
 * and a window's that was passed. */
static void run_part(uint32_t *var_ret, uint32_t *window_ret)
{
	char prog[256], out[256];
	uint32_t var = 0, window = 0;
	memset(&x, 0, sizeof(x));
	x.only = "part";
	snprintf(prog, sizeof(prog), "%s/plain", scratch);
	snprintf(out, sizeof(out), "%s/out", scratch);
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	while (var < x.vars->nr_vars && strcmp(x.vars->vars[var].name, "part"))
		var++;
	while (window < range_plan_nr_windows(x.plan) &&
	       !ranges_hits(x.r, window))
		window++;
	check(var < x.vars->nr_vars && window < range_plan_nr_windows(x.plan));
	*var_ret = var;
	*window_ret = window;
}

/* A range that becomes twice as wide is something new, once; others are not. */
static void test_doubled(void)
{
	uint32_t var, window;
	run_part(&var, &window);
	check(!told(window, var, 0));
	check(told(window, var, 9));
	check(!told(window, var, 0));
	check(!told(window, var, 17));
	check(told(window, var, 35));
	check(!told(window, var, 1));
	range_run_free(&x);
}

/* A place that is passed, and never gives a value: as a store that may be to an
 * array, and is not. */
static void test_barren(void)
{
	int64_t values[2];
	bool doubled;
	uint32_t var, window;
	run_part(&var, &window);
	check_int(ranges_take(x.r, var, values), 2);
	check(ranges_worth(x.r, window, 1, &doubled) > RANGE_WORTH / 2);
	check_range(ranges_worth(x.r, window, 9, &doubled), 2,
		    RANGE_WORTH / 10 + 1);
	check_int(ranges_worth(x.r, window, 100000, &doubled), 1);
	/* One came after all. */
	struct range_cell *cell =
		(struct range_cell *)x.r->data + x.plan->cell_of[var];
	cell->smallest = cell->largest = 5;
	check(ranges_worth(x.r, window, 10, &doubled) > RANGE_WORTH / 8);
	check(!doubled);
	range_run_free(&x);
}

static void check_none(const char *program, const char *name, bool is_none)
{
	unsigned none, nr = passed(program, name, &none);
	printf("# %s: %u windows\n", name, nr);
	check(nr > 0);
	check_int(none, is_none ? nr : 0);
}

int main(void)
{
	make_scratch();
	check_int(run("cc -O0 -g -o $D/plain t/fixtures/range/complete.c"), 0);
	check_int(run("cc -O2 -g -o $D/fast t/fixtures/range/complete.c"), 0);
	check_none("plain", "byte", true);
	check_none("plain", "less", true);
	check_none("plain", "field.three", true);
	check_none("plain", "most", false);
	check_none("plain", "part", false);
	check_none("fast", "byte", true);
	check_none("fast", "part", false);
	/* Constants, whatever else it may have been. */
	check_none("fast", "state", true);
	check_none("plain", "state", true);
	test_doubled();
	test_barren();
	return finish();
}
