/*
 * More windows than one look takes in: what was passed lately is told of at
 * once, everything within some looks, and each pass once.
 */
#include "t/unit/symhelp.h"
#include <fcntl.h>
#include "supervisor/probe/range-live.h"
#include "t/unit/range-run.h"

#define NR_FUNCTIONS 2600

static struct range_run x;

/* The last is passed ten times, others once. */
static void make_program(void)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/many.c", scratch);
	FILE *f = fopen(path, "we");
	for (int i = 0; f && i < NR_FUNCTIONS; i++)
		fprintf(f,
			"static int f%d(int a)\n{\n\tint b = a + 1;\n"
			"\tint c = b * 3;\n\tint d = c ^ a;\n\tint e = d - b;\n"
			"\tint g = e + c;\n\tint h = g * d;\n"
			"\treturn h + e;\n}\n",
			i);
	fprintf(f, "int main(void)\n{\n\tint s = 0;\n");
	for (int i = 0; i < NR_FUNCTIONS; i++)
		fprintf(f, "\ts += f%d(s);\n", i);
	fprintf(f, "\tfor (int i = 0; i < 9; i++)\n\t\ts += f%d(s);\n",
		NR_FUNCTIONS - 1);
	fprintf(f, "\treturn s == 1;\n}\n");
	fclose(f);
	check_int(run("cc -O0 -g -o $D/many $D/many.c"), 0);
}

struct count {
	uint64_t hits, cost_ps;
	size_t most;
};

static struct count glances(size_t nr, size_t times)
{
	struct range_news *news = calloc(nr + 1, sizeof(*news));
	struct count sum = {.hits = 0};
	for (size_t i = 0; i < times; i++) {
		size_t n = ranges_glance(x.r, news);
		sum.most = n > sum.most ? n : sum.most;
		for (size_t k = 0; k < n; k++) {
			sum.hits += news[k].hits;
			sum.cost_ps += news[k].cost_ps;
		}
	}
	free(news);
	return sum;
}

/* Window @i is passed once more: that is told, and nothing else. */
static void check_one(uint32_t i, size_t nr)
{
	uint64_t *counter =
		(uint64_t *)(x.r->data + range_counters_off(x.plan));
	/* One that has no sensors is not told of. */
	if (!ranges_hits(x.r, i))
		return;
	struct range_news *news = calloc(nr + 1, sizeof(*news));
	counter[i]++;
	size_t n = ranges_glance(x.r, news);
	if (!n) /* others were in turn */
		n = ranges_glance(x.r, news);
	check(n == 1 && news[0].window == i && news[0].hits == 1);
	check_int(glances(nr, 3).hits, 0);
	free(news);
}

/* Wherever it is among those whose counters are looked at together. */
static void test_each(size_t nr)
{
	size_t last = (nr - 1) / LIVE_LINE * LIVE_LINE;
	for (uint32_t i = 0; i < LIVE_LINE; i++) {
		check_one(i, nr);
		check_one(8000 + i, nr);
		if (last + i < nr)
			check_one((uint32_t)last + i, nr);
	}
}

int main(void)
{
	char prog[256], out[256];
	make_scratch();
	make_program();
	snprintf(prog, sizeof(prog), "%s/many", scratch);
	snprintf(out, sizeof(out), "%s/out", scratch);
	check(range_run_to_end(&x, (char *[]){prog, NULL}, out));
	check_int(x.run.exit_status, 0);
	if (!check(x.r != NULL))
		return finish();
	size_t nr = range_plan_nr_windows(x.plan);
	printf("# %zu windows\n", nr);
	check(nr > RANGE_GLANCE && nr < 2 * RANGE_GLANCE);
	uint64_t all = 0;
	for (uint32_t i = 0; i < nr; i++)
		all += ranges_hits(x.r, i);
	check(all > NR_FUNCTIONS * 2);
	struct count first = glances(nr, 1), second = glances(nr, 1);
	check(first.hits > 0 && second.hits > 0);
	check(first.most <= RANGE_GLANCE);
	check_int(first.hits + second.hits, all);
	check(first.cost_ps > first.hits);
	/* Nothing is told of twice. */
	check_int(glances(nr, 5).hits, 0);
	struct range_news *news = calloc(nr + 1, sizeof(*news));
	check_int(ranges_news(x.r, news), 0);
	free(news);
	test_each(nr);
	range_run_free(&x);
	return finish();
}
