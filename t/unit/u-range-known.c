/*
 * A program whose variables have known ranges, from two compilers, optimised
 * or not: with everything in exactly those are found where nothing is
 * optimised away, never a wider one, and it says what it says without us.
 */
#include "t/unit/symhelp.h"
#include <fcntl.h>
#include "symbols/pair.h"
#include "t/unit/range-run.h"

#define NR_KNOWN 51 /* in the fixture */

/* A variable's windows are in the functions that it has sensors in. */
static void check_functions(const struct range_run *x)
{
	unsigned served = 0, homeless = 0, strangers = 0;
	for (uint32_t i = 0; i < x->vars->nr_vars; i++) {
		size_t n;
		const struct range_use *use = range_plan_uses(x->plan, i, &n);
		const struct variable *var = &x->vars->vars[i];
		bool sensor = range_plan_variable(x->plan, i)->nr_served;
		served += sensor;
		homeless += sensor != (n > 0);
		homeless += n != range_plan_variable(x->plan, i)->nr_served;
		/* Nothing is inlined that has an own name elsewhere. */
		for (size_t k = 0; k < n; k++) {
			uint32_t f =
				range_plan_function_of(x->plan, use[k].window);
			if (!strcmp(var->scope, "recurse"))
				strangers += !!strcmp(
					x->vars->functions[f].name, "recurse");
		}
	}
	check(served > 20);
	check_int(homeless, 0);
	check_int(strangers, 0);
}

/* When functions are planned and their stubs made. */
enum when {
	AT_ONCE,
	LATE,
	AHEAD,	    /* stubs are made before there is a process */
	BY_TWO,	    /* the same in two threads */
	SOME_AHEAD, /* of the first functions */
	FOR_NOTHING /* they are to lie elsewhere then */
};

static void check_built(const struct range_run *x, enum when when)
{
	size_t all = 0;
	for (uint32_t i = 0; i < x->nr; i++)
		all += range_plan_function(x->plan, i)->nr_windows > 0;
	printf("# %zu of %zu functions are made in the process\n", x->nr_built,
	       all);
	if (when == AHEAD || when == BY_TWO)
		check_int(x->nr_built, 0);
	else if (when == SOME_AHEAD)
		check(x->nr_built > 0 && x->nr_built < all);
	else
		check_int(x->nr_built, all);
}

/* Not all that is known exists where the compiler optimises. */
static void known(const char *cc, const char *flags, enum when when,
		  unsigned exact_at_least)
{
	static const char *const text[] = {
		[AT_ONCE] = "",
		[LATE] = ", planned late",
		[AHEAD] = ", made ahead",
		[BY_TWO] = ", made ahead by two threads",
		[SOME_AHEAD] = ", some made ahead",
		[FOR_NOTHING] = ", made for elsewhere",
	};
	static struct range_run x;
	static size_t usual;
	char prog[256], out[256];
	usual = usual ? usual : pair_from;
	memset(&x, 0, sizeof(x));
	x.late = when == LATE;
	x.ahead = when == AT_ONCE || when == LATE ? 0
		  : when == SOME_AHEAD		  ? 40
						  : SIZE_MAX;
	x.elsewhere = when == FOR_NOTHING;
	pair_from = when == BY_TWO ? 0 : usual;
	printf("# %s %s%s\n", cc, flags, text[when]);
	if (run("%s %s -g -o $D/known t/fixtures/range/known.c -lpthread && "
		"$D/known >$D/plain",
		cc, flags)) {
		check_msg(false, "%s compiles it", cc);
		return;
	}
	snprintf(prog, sizeof(prog), "%s/known", scratch);
	snprintf(out, sizeof(out), "%s/out", scratch);
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	check_int(run("cmp $D/plain $D/out"), 0);
	if (check(x.r != NULL)) {
		struct range_score s = range_run_score(&x, x.r, out);
		printf("# %u exact, %u narrower, %u not seen, %u wider\n",
		       s.exact, s.narrow, s.unseen, s.wide);
		check_int(s.wide, 0);
		check(s.exact >= exact_at_least);
		check_int(s.exact + s.narrow + s.unseen, NR_KNOWN);
		check_functions(&x);
		check_built(&x, when);
	}
	range_run_free(&x);
}

/* Nobody comes to where the one is said to be; the others are addresses, which
 * differ from run to run. */
static void check_sites(const struct range_run *x)
{
	for (uint32_t i = 0; i < x->vars->nr_vars; i++) {
		size_t nr = range_plan_variable(x->plan, i)->nr_sites;
		if (!strcmp(x->vars->vars[i].qualified, "f::left"))
			check_int(nr, 0);
		if (!strcmp(x->vars->vars[i].qualified, "f::stays"))
			check_int(nr, 3);
		if (!strcmp(x->vars->vars[i].qualified, "f::pointer"))
			check_int(nr, 2);
	}
}

/* What compilers say of variables where it is not so: of fixture @name. */
static void doubt(const char *name, unsigned exact, unsigned unseen)
{
	static struct range_run x;
	char prog[256], out[256];
	memset(&x, 0, sizeof(x));
	printf("# %s\n", name);
	check_int(run("gcc -o $D/%s t/fixtures/range/%s.S", name, name), 0);
	snprintf(prog, sizeof(prog), "%s/%s", scratch, name);
	snprintf(out, sizeof(out), "%s/out", scratch);
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	if (check(x.r != NULL)) {
		struct range_score s = range_run_score(&x, x.r, out);
		check_sites(&x);
		check_int(s.exact, exact);
		check_int(s.unseen, unseen);
		check_int(s.wide + s.narrow, 0);
	}
	range_run_free(&x);
}

#define NR_LATE 13 /* in the fixture */

/* Blocks that begin behind the store, as @flags say. */
static void late(const char *flags, unsigned exact)
{
	static struct range_run x;
	char prog[256], out[256];
	memset(&x, 0, sizeof(x));
	printf("# late %s\n", flags);
	check_int(run("gcc %s -o $D/late t/fixtures/range/late.S", flags), 0);
	snprintf(prog, sizeof(prog), "%s/late", scratch);
	snprintf(out, sizeof(out), "%s/out", scratch);
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	if (check(x.r != NULL)) {
		struct range_score s = range_run_score(&x, x.r, out);
		check_int(s.exact, exact);
		check_int(s.unseen, NR_LATE - exact);
		check_int(s.wide + s.narrow, 0);
	}
	range_run_free(&x);
}

int main(void)
{
	make_scratch();
	known("gcc", "-O0", AT_ONCE, NR_KNOWN);
	known("gcc", "-O2", AT_ONCE, 25);
	known("gcc", "-O2 -no-pie -fcf-protection", AT_ONCE, 25);
	known("clang", "-O0", AT_ONCE, NR_KNOWN);
	known("clang", "-O2", AT_ONCE, 20);
	known("gcc", "-O0", LATE, NR_KNOWN);
	known("gcc", "-O2", LATE, 25);
	known("gcc", "-O0", AHEAD, NR_KNOWN);
	known("gcc", "-O2", AHEAD, 25);
	known("gcc", "-O2 -no-pie", AHEAD, 25);
	known("gcc", "-O0", BY_TWO, NR_KNOWN);
	known("gcc", "-O2", BY_TWO, 25);
	known("gcc", "-O0", SOME_AHEAD, NR_KNOWN);
	known("gcc", "-O0", FOR_NOTHING, NR_KNOWN);
	/* loaded, slot, nowhere, inplace, pair.a, pair.b, stored, address,
	 * pushed, stack */
	doubt("doubt", 24, 10);
	doubt("against", 17, 6); /* late, across, sum, sooner, named, left */
	/* half, whole, entered, next, same, round, rounds, ahead, beyond */
	doubt("loops", 16, 9);
	doubt("points", 6, 1); /* nowhere */
	doubt("again", 4, 0);
	doubt("cases", 15, 1); /* only */
	doubt("holes", 8, 0);
	doubt("early", 9, 3); /* cut, alone, byte */
	doubt("bits", 7, 0);
	doubt("ways", 14, 3); /* value, widened, asks */
	doubt("rounds", 7, 0);
	doubt("sums", 23, 0);
	doubt("below", 4, 0);
	doubt("tested", 7, 0);
	doubt("bare", 3, 4); /* spilled, none, handed, returned */
	doubt("same", 11, 0);
	doubt("moved", 8, 0);
	doubt("pieces", 2, 0);
	doubt("led", 3, 5); /* but led, first, given */
	doubt("fork", 8, 0);
	doubt("lent", 13, 0);
	doubt("shrunk", 8, 0);
	doubt("back", 6, 0);
	doubt("reached", 5, 0);
	doubt("guard", 1, 0);
	doubt("wide", 8, 0);
	doubt("reads", 4, 6); /* but indexed, before, given, later */
	late("-DLANGUAGE=28", 5);
	late("-DLANGUAGE=28 -DOPTIMISED", 1);
	late("-DLANGUAGE=12", 1);
	return finish();
}
