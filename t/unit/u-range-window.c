/*
 * Windows of one function go in and out by themselves: with the busy ones out
 * the rare path is still seen, each time, and counted. Text that a patch has
 * overwritten can be overwritten again, and comes back as it was at first.
 */
#include "t/unit/symhelp.h"
#include <fcntl.h>
#include "supervisor/probe/range-plan.h"
#include "t/unit/calls.h"
#include "t/unit/range-run.h"

static struct range_run x;
static unsigned nr_choices, nr_wrong;

/* While the program is there our output is its own: nothing is printed. */
static uint32_t variable(const char *name)
{
	for (uint32_t i = 0; i < x.vars->nr_vars; i++)
		if (range_run_called(x.vars->vars[i].qualified, name))
			return i;
	nr_wrong++;
	return 0;
}

/* All but those that @var has sensors in; or with @only, no others. */
static void all_but(bool *want, uint32_t var, bool only)
{
	size_t n, nr = range_plan_nr_windows(x.plan);
	const struct range_use *use = range_plan_uses(x.plan, var, &n);
	for (size_t i = 0; i < nr; i++)
		want[i] = !only;
	for (size_t i = 0; i < n; i++)
		want[use[i].window] = only;
}

static void choose(const bool *want)
{
	size_t nr = range_plan_nr_windows(x.plan);
	uint32_t *all = calloc(nr + 1, sizeof(*all));
	for (uint32_t i = 0; all && i < nr; i++)
		all[i] = i;
	unsigned long then = reading_calls();
	nr_wrong += ranges_choose(x.r, all, nr, want, NULL, NULL) != 0;
	free(all);
	nr_choices++;
	/* For the text of all of them, and for what the module begins with. */
	nr_wrong += reading_calls_since(then) > 2;
	for (uint32_t i = 0; i < nr; i++)
		if (range_plan_function_of(x.plan, i) != UINT32_MAX)
			nr_wrong += ranges_window_is_in(x.r, i) != want[i];
}

static bool there;

static bool is_there(void *ctx)
{
	(void)ctx;
	return there;
}

/* What cannot be done is not done later, with another window's change. */
static void refused(uint32_t var)
{
	size_t n, nr = range_plan_nr_windows(x.plan);
	const struct range_use *use = range_plan_uses(x.plan, var, &n);
	bool *want = calloc(nr + 1, sizeof(*want));
	bool *was = calloc(nr + 1, sizeof(*was));
	uint32_t *all = calloc(nr + 1, sizeof(*all));
	for (uint32_t i = 0; i < nr; i++) {
		all[i] = i;
		was[i] = ranges_window_is_in(x.r, i);
		want[i] = !was[i];
	}
	ranges_guard(x.r, is_there, NULL);
	there = false;
	nr_wrong += ranges_choose(x.r, all, nr, want, NULL, NULL) == 0;
	there = true;
	nr_wrong +=
		ranges_choose(x.r, &use[0].window, 1, want, NULL, NULL) != 0;
	for (uint32_t i = 0; i < nr; i++)
		nr_wrong += ranges_window_is_in(x.r, i) !=
			    (i == use[0].window ? want[i] : was[i]);
	nr_wrong += ranges_choose(x.r, all, nr, was, NULL, NULL) != 0;
	free(want);
	free(was);
	free(all);
}

static void planted(struct range_run *run)
{
	bool *want =
		calloc(range_plan_nr_windows(run->plan) + 1, sizeof(*want));
	uint32_t seldom = variable("mostly::seldom");
	/* In, out and in again in one and the same function. */
	all_but(want, seldom, false);
	choose(want);
	all_but(want, seldom, true);
	choose(want);
	all_but(want, variable("mostly::i"), false);
	choose(want);
	all_but(want, variable("mostly::busy"), false);
	choose(want);
	refused(seldom);
	free(want);
}

/* Text as it is now is the file's. */
static void leave(struct range_run *run)
{
	bool *none =
		calloc(range_plan_nr_windows(run->plan) + 1, sizeof(*none));
	planted(run);
	choose(none);
	free(none);
}

/* Code that was kept is what decoding it again gives. */
static void check_kept(void)
{
	unsigned nr = 0, wrong = 0;
	for (uint32_t i = 0; i < x.nr; i++) {
		struct range_plan_function *f = &x.plan->function[i];
		struct range_code kept = f->code, again, same;
		if (!kept.insns)
			continue;
		nr++;
		wrong += range_plan_decode(x.plan, i, &same, NULL) != 0 ||
			 same.insns != kept.insns;
		range_plan_release(x.plan, i, &same);
		f->code = (struct range_code){.nr = 0};
		if (!check_int(range_plan_decode(x.plan, i, &again, NULL), 0))
			continue;
		wrong += again.nr != kept.nr ||
			 memcmp(again.insns, kept.insns,
				kept.nr * sizeof(*kept.insns)) != 0;
		range_plan_release(x.plan, i, &again);
		f->code = kept;
	}
	check(nr > 0);
	check_int(wrong, 0);
}

static uint64_t hits_of(uint32_t var)
{
	size_t n;
	uint64_t sum = 0;
	const struct range_use *use = range_plan_uses(x.plan, var, &n);
	for (size_t i = 0; i < n; i++)
		sum += ranges_hits(x.r, use[i].window);
	return sum;
}

static void see(void (*when_planted)(struct range_run *), bool all_out)
{
	char prog[256], out[256];
	int64_t lo, hi;
	memset(&x, 0, sizeof(x));
	snprintf(prog, sizeof(prog), "%s/rare", scratch);
	snprintf(out, sizeof(out), "%s/out", scratch);
	x.planted = when_planted;
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	if (!check(x.r != NULL))
		return;
	uint32_t seldom = variable("mostly::seldom");
	struct range_score s = range_run_score(&x, x.r, out);
	check_int(s.exact, !all_out);
	check_int(hits_of(seldom), all_out ? 0 : 10);
	check(!range_run_range(&x, x.r, "mostly::busy", &lo, &hi));

	/* News come once. */
	size_t nr = range_plan_nr_windows(x.plan), n;
	struct range_news *news = calloc(nr + 1, sizeof(*news));
	uint64_t sum = 0;
	n = ranges_news(x.r, news);
	for (size_t i = 0; i < n; i++) {
		check_int(news[i].hits, ranges_hits(x.r, news[i].window));
		check(news[i].cost_ps >= news[i].hits);
		sum += news[i].hits;
	}
	check(all_out ? sum == 0 : sum >= 10);
	check_int(ranges_news(x.r, news), 0);
	free(news);
	check_kept();
	range_run_free(&x);
}

int main(void)
{
	make_scratch();
	check_int(run("cc -O0 -g -o $D/rare t/fixtures/range/rare.c"), 0);
	see(planted, false);
	check_int(nr_choices, 4);
	see(leave, true);
	check_int(nr_choices, 9);
	check_int(nr_wrong, 0);
	return finish();
}
