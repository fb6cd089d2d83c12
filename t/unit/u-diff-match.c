/*
 * Which site of one build is which of another: what rebuilding changes, and
 * what must not be taken for the same.
 */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include "reports/diff-match.h"
#include "t/unit/diff-sample.h"
#include "t/unit/scratch.h"

static const char *path;
static struct diff_pool pool;

#define MOST 12
struct stacks {
	const char *stack[MOST];
};

static void load(const struct stacks *stacks, const char *build,
		 const char *dir, struct diff_run *run)
{
	struct sample_site site[MOST] = {0};
	size_t nr = 0;
	/* The first ones allocate most, so that the order stays. */
	for (; nr < MOST && stacks->stack[nr]; nr++)
		site[nr] = (struct sample_site){.stack = stacks->stack[nr],
						.size = 1 << 20,
						.naps = MOST - (unsigned)nr,
						.nap_ms = 2000};
	sample_session_write(path, &(struct sample_session){.site = site,
							    .nr = nr,
							    .build = build,
							    .dir = dir});
	struct trace_reader *reader;
	if (trace_reader_open(path, &reader, NULL) ||
	    diff_run_read(reader, 0, &pool, run, NULL))
		abort();
	trace_reader_close(reader);
}

/* "0=1 moved, 1=- none, -=0 none, ...", sites counted from 0. */
static void describe(const struct diff_pairs *pairs, char *buf, size_t size)
{
	size_t n = 0;
	*buf = '\0';
	for (size_t i = 1; i < pairs->nr && n < size; i++) { /* 0: the run */
		const struct diff_pair *p = &pairs->pair[i];
		char a[8] = "-", b[8] = "-";
		if (p->a != UINT32_MAX)
			snprintf(a, sizeof(a), "%u", p->a - 1);
		if (p->b != UINT32_MAX)
			snprintf(b, sizeof(b), "%u", p->b - 1);
		n += (size_t)snprintf(
			buf + n, size - n, "%s%s=%s %s%s", n ? ", " : "", a, b,
			diff_how_name(p->how), p->ambiguous ? "?" : "");
	}
}

static void expect(const char *what, struct stacks a, const char *build_a,
		   struct stacks b, const char *build_b, const char *want)
{
	struct diff_run ra, rb;
	struct diff_pairs pairs;
	const struct diff_item *ia[MOST + 1], *ib[MOST + 1];
	char got[400];
	load(&a, build_a, "/build/v1/", &ra);
	load(&b, build_b, "/home/you/v2/", &rb);
	for (size_t i = 0; i < ra.nr_items; i++)
		ia[i] = &ra.item[i];
	for (size_t i = 0; i < rb.nr_items; i++)
		ib[i] = &rb.item[i];
	if (diff_match(ia, ra.nr_items, ib, rb.nr_items, &pairs))
		abort();
	describe(&pairs, got, sizeof(got));
	if (!check_msg(!strcmp(got, want), "%s", what))
		printf("# got:  %s\n# want: %s\n", got, want);
	free(pairs.pair);
	diff_run_free(&ra);
	diff_run_free(&rb);
}
#define S(...) ((struct stacks){{__VA_ARGS__}})

static void rebuilt(void)
{
	expect("nothing changed but the build and its directory",
	       S("fill@c.c:10 < main@m.c:5", "grow@c.c:30 < main@m.c:6"), "b1",
	       S("fill@c.c:10 < main@m.c:5", "grow@c.c:30 < main@m.c:6"), "b2",
	       "0=0 exact, 1=1 exact");
	expect("another order",
	       S("fill@c.c:10 < main@m.c:5", "grow@c.c:30 < main@m.c:6"), "b1",
	       S("grow@c.c:30 < main@m.c:6", "fill@c.c:10 < main@m.c:5"), "b2",
	       "0=1 exact, 1=0 exact");
	expect("lines moved", S("fill@c.c:10 < main@m.c:5"), "b1",
	       S("fill@c.c:14 < main@m.c:5"), "b2", "0=0 moved");
	expect("moved onto another's line",
	       S("main@m.c:136", "main@m.c:138", "main@m.c:145"), "b1",
	       S("main@m.c:138", "main@m.c:140", "main@m.c:147"), "b2",
	       "0=0 moved, 1=1 moved, 2=2 moved");
	expect("a new one in between", S("main@m.c:136", "main@m.c:145"), "b1",
	       S("main@m.c:136", "main@m.c:140", "main@m.c:149"), "b2",
	       "0=0 exact, 1=2 moved, -=1 none");
	expect("what stands above moved, and one of the same is gone",
	       S("get@u.c:1 < a@m.c:10", "get@u.c:1 < b@m.c:100",
		 "get@u.c:1 < b@m.c:110", "get@u.c:1 < b@m.c:120"),
	       "b1",
	       S("get@u.c:1 < a@m.c:20", "get@u.c:1 < b@m.c:110",
		 "get@u.c:1 < b@m.c:120"),
	       "b2", "0=0 moved, 1=1 moved, 2=2 moved, 3=- none");
	expect("clones", S("fill.constprop.0@c.c:10 < go.isra.0@m.c:5"), "b1",
	       S("fill@c.c:10 < go.part.0@m.c:5"), "b2", "0=0 exact");
	expect("the same file in another place, and static functions",
	       S("init@a.c:3 < main@m.c:5", "init@b.c:3 < main@m.c:6"), "b1",
	       S("init@b.c:3 < main@m.c:6", "init@a.c:3 < main@m.c:5"), "b2",
	       "0=1 exact, 1=0 exact");
}

static void loosely(void)
{
	expect("the file was renamed", S("fill@c.c:10 < main@m.c:5"), "b1",
	       S("fill@cache.c:10 < main@m.c:5"), "b2", "0=0 stems");
	expect("no lines on one side", S("fill@c.c:10 < main@m.c:5"), "b1",
	       S("fill < main"), "b2", "0=0 stems");
	expect("another type", S("V<int>::add(int)@v.h:7 < main@m.c:5"), "b1",
	       S("V<long>::add(long)@v.h:7 < main@m.c:5"), "b2", "0=0 stems");
	expect("both types are there on both sides",
	       S("V<int>::add(int)@v.h:7 < main@m.c:5",
		 "V<long>::add(long)@v.h:7 < main@m.c:6"),
	       "b1",
	       S("V<long>::add(long)@v.h:7 < main@m.c:6",
		 "V<int>::add(int)@v.h:7 < main@m.c:5"),
	       "b2", "0=1 exact, 1=0 exact");
	expect("inlined, and nobody knows", S("get < fill < run < main"), "b1",
	       S("get < run < main"), "b2", "0=0 inlined");
	expect("the allocating function was inlined", S("xm < fill < main"),
	       "b1", S("fill < main"), "b2", "0=0 inlined");
	expect("a caller was renamed",
	       S("fill@c.c:10 < serve@s.c:9 < main@m.c:5"), "b1",
	       S("fill@c.c:10 < handle@s.c:9 < main@m.c:5"), "b2",
	       "0=0 callers");
	expect("a stack that was cut",
	       S("fill@c.c:10 < run@r.c:4 < main@m.c:5"), "b1",
	       S("fill@c.c:10 < run@r.c:4"), "b1", "0=0 cut");
	expect("a library of another version",
	       S("+100@/lib/libz.so.1.2 < main@m.c:5"), "b1",
	       S("+180@/lib/libz.so.1.3 < main@m.c:5"), "b2", "0=0 exact");
}

static void not_the_same(void)
{
	expect("one build, other lines", S("main@m.c:136"), "b1",
	       S("main@m.c:138"), "b1", "0=- none, -=0 none");
	expect("one build, other callers",
	       S("fill@c.c:10 < a@s.c:9 < main@m.c:5"), "b1",
	       S("fill@c.c:10 < b@s.c:19 < main@m.c:5"), "b1",
	       "0=- none, -=0 none");
	expect("one build, a frame more", S("get < fill < run < main"), "b1",
	       S("get < run < main"), "b1", "0=- none, -=0 none");
	expect("another function allocates", S("old@c.c:10 < main@m.c:5"), "b1",
	       S("leak@c.c:20 < main@m.c:5"), "b2", "0=- none, -=0 none");
	expect("both places are there, but not together",
	       S("f@c.c:1 < main@m.c:10", "f@c.c:2 < main@m.c:20"), "b1",
	       S("f@c.c:1 < main@m.c:20", "f@c.c:2 < main@m.c:10"), "b2",
	       "0=0 callers, 1=1 callers");
	expect("the call is known to be elsewhere",
	       S("main@m.c:10", "main@m.c:20"), "b1", S("main@m.c:20"), "b2",
	       "0=- none, 1=0 exact");
}

static void ambiguous(void)
{
	expect("two look like one",
	       S("f@c.c:10 < a@m.c:5", "f@c.c:10 < a@m.c:6"), "b1", S("f < a"),
	       "b2", "0=0 stems?, 1=- none?");
	expect("inlined from one of two",
	       S("get < x < run < main", "get < y < run < main"), "b1",
	       S("get < run < main"), "b2", "0=- none?, 1=- none?, -=0 none?");
	expect("twice the same without lines: each once",
	       S("f@c.c:10 < main@m.c:5", "f@c.c:11 < main@m.c:5"), "b1",
	       S("f@d.c:10 < main@m.c:5", "f@d.c:11 < main@m.c:5"), "b2",
	       "0=0 stems?, 1=1 stems?");
}

int main(void)
{
	path = scratch_path("x.trace");
	rebuilt();
	loosely();
	not_the_same();
	ambiguous();
	diff_pool_free(&pool);
	return tap_done();
}
