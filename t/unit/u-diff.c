/*
 * What counts as a change, and what not: single runs, repeated runs, chance,
 * coverage; and what a pipeline's rules make of it.
 */
#include "t/unit/tap.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "reports/diff-rule.h"
#include "reports/diff-words.h"
#include "t/unit/diff-sample.h"
#include "t/unit/scratch.h"

static const char *path;
static struct diff d;

static void add(int side, const struct sample_session *s)
{
	struct smco_err err = {0};
	sample_session_write(path, s);
	if (diff_add_run(&d, side, path, &err)) {
		printf("# %s\n", err.msg);
		abort();
	}
}

static void compare(double least)
{
	struct diff_config config = {.least_change = least};
	check_int(diff_compare(&d, &config, NULL), 0);
}

/* The site whose innermost function is @name. */
static const struct diff_change *site(const char *name)
{
	static const struct diff_change none;
	for (size_t i = 0; i < d.nr_changes; i++)
		for (int k = 0; k < DIFF_SIDES; k++) {
			const struct diff_item *item = d.change[i].item[k];
			if (item && item->nr_frames &&
			    !strcmp(item->frames[0].function, name))
				return &d.change[i];
		}
	return &none;
}
#define VERDICT(name) diff_verdict_name(site(name)->verdict)

#define SITE(st, sz, n, ms, ...)                                               \
	{                                                                      \
		.stack = (st), .size = (sz), .naps = (n), .nap_ms = (ms),      \
		__VA_ARGS__                                                    \
	}
#define SESSION(...)                                                           \
	(&(struct sample_session){                                             \
		.site = (const struct sample_site[]){__VA_ARGS__},             \
		.nr = ARRAY_SIZE(                                              \
			((const struct sample_site[]){__VA_ARGS__}))})

static void single(void)
{
	struct sample_session *base =
		SESSION(SITE("same@a.c:1", 1 << 20, 2, 5000),
			SITE("grow@a.c:2", 1 << 20, 2, 5000),
			SITE("shrink@a.c:3", 1 << 20, 4, 5000),
			SITE("gone@a.c:4", 4096, 1, 5000),
			SITE("used@a.c:5", 1 << 20, 0, 0),
			SITE("vague@a.c:6", 1 << 20, 1, 5000, .error_ms = 900),
			SITE("rich@a.c:7", 1 << 20, 0, 0, .allocs = 100));
	struct sample_session *new =
		SESSION(SITE("same@a.c:1", 1 << 20, 2, 5100),
			SITE("grow@a.c:2", 1 << 20, 3, 5000),
			SITE("shrink@a.c:3", 1 << 20, 4, 2000),
			SITE("fresh@a.c:9", 8192, 1, 3000),
			SITE("used@a.c:5", 1 << 20, 1, 9000),
			SITE("vague@a.c:6", 1 << 20, 1, 6500, .error_ms = 900),
			SITE("rich@a.c:7", 1 << 20, 0, 0, .allocs = 150));
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	check_int(diff_check(&d, NULL), 0);
	compare(0.1);
	check(!d.is_judged);
	check_str(VERDICT("same"), "same"); /* 2 % */
	check_str(VERDICT("grow"), "grown");
	check_str(VERDICT("shrink"), "shrunk");
	check_str(VERDICT("gone"), "gone");
	check_str(VERDICT("fresh"), "new");
	check_str(VERDICT("used"), "new"); /* allocated before, too, but used */
	check_str(VERDICT("vague"), "same"); /* 30 %, but +-18 % each */
	check_str(VERDICT("rich"), "grown");
	check_int(site("rich")->by, DIFF_ALLOCS);
	check_int(site("grow")->by, DIFF_BYTE_SECONDS);
	check_range(site("grow")->measure[DIFF_BYTE_SECONDS].test.change,
		    5 << 20, 5 << 20);
	check_range(diff_relative(&site("grow")->measure[DIFF_UNUSED]), 0.5,
		    0.5);
	check(isinf(diff_relative(&site("used")->measure[DIFF_LONGEST])));
	/* The run first, then by how much changed, then what did not. */
	check_int(d.change[0].kind, DIFF_RUN);
	check(&d.change[1] == site("shrink"));
	check(&d.change[2] == site("used"));
	check(d.change[d.nr_changes - 1].verdict == VERDICT_SAME);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_SAME], 2);
	check_range(d.change[0].measure[DIFF_ALLOC_BYTES].test.change,
		    (51 << 20) + 4096, (51 << 20) + 4096);
	diff_deinit(&d);

	/* The same run twice. */
	add(DIFF_BASE, base);
	add(DIFF_NEW, base);
	compare(0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_SAME], 7);
	check_int(d.nr_changes, 8);
	diff_deinit(&d);
}

static const char *counter(const char *name)
{
	for (size_t i = 0; i < d.nr_changes; i++) {
		const struct diff_item *item = d.change[i].item[DIFF_BASE];
		if (d.change[i].kind == DIFF_COUNTER && item &&
		    !strncmp(item->name, name, strlen(name)))
			return diff_verdict_name(d.change[i].verdict);
	}
	return "not there";
}

/* What the next run of the same might have or not is no change of one run a
 * side; of several it is. */
static void by_chance(void)
{
	struct sample_session *base =
		SESSION(SITE("brief@a.c:1", 1 << 20, 2, 1400),
			SITE("kept@a.c:2", 1 << 20, 2, 1400),
			SITE("long@a.c:3", 1 << 20, 2, 1600));
	struct sample_session *new =
		SESSION(SITE("brief@a.c:1", 1 << 20, 0, 0, .allocs = 2),
			SITE("kept@a.c:2", 1 << 20, 2, 1500),
			SITE("long@a.c:3", 1 << 20, 0, 0, .allocs = 2));
	base->instructions = new->instructions = 2000000;
	base->switches = 1000;
	new->switches = 3000;
	new->clock_ms = 1200;
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	compare(0.05);
	check_str(VERDICT("brief"), "same");
	check_str(VERDICT("kept"), "same"); /* 7 % */
	check_str(VERDICT("long"), "gone");
	check_str(counter("context-switches"), "same");
	check_str(counter("instructions"), "same");
	check_str(counter("task-clock"), "grown"); /* in no more time */
	diff_deinit(&d);

	new->duration_ms = 72000;
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	compare(0.05);
	check_str(counter("task-clock"), "same");
	diff_deinit(&d);

	for (int i = 0; i < 3; i++) {
		add(DIFF_BASE, base);
		add(DIFF_NEW, new);
	}
	compare(0.05);
	check_str(VERDICT("brief"), "gone");
	check_str(counter("context-switches"), "grown");
	check_str(counter("task-clock"), "grown");
	diff_deinit(&d);
}

/* Of one run a side: naps are longer where the whole run is. */
static void longer(void)
{
	struct sample_session *base =
		SESSION(SITE("idle@a.c:1", 1 << 20, 2, 5000),
			SITE("grow@a.c:2", 1 << 20, 2, 5000),
			SITE("gone@a.c:3", 1 << 20, 2, 5000));
	struct sample_session *new =
		SESSION(SITE("idle@a.c:1", 1 << 20, 2, 6250),
			SITE("grow@a.c:2", 1 << 20, 2, 7000),
			SITE("gone@a.c:3", 1 << 20, 0, 0));
	for (int i = 0; i < 2; i++) {
		new->duration_ms = i ? 60000 : 72000; /* 20 % more */
		add(DIFF_BASE, base);
		add(DIFF_NEW, new);
		compare(0.1);
		check_str(VERDICT("idle"), i ? "grown" : "same"); /* 25 % */
		check_str(VERDICT("grow"), "grown");		  /* 40 % */
		check_str(VERDICT("gone"), "gone");
		diff_deinit(&d);
	}
}

/* Five runs a side; the site's naps last as long as given. */
static void add_five(int side, const char *name, unsigned size,
		     const unsigned ms[5])
{
	for (int i = 0; i < 5; i++)
		add(side, SESSION(SITE(name, size, ms[i] ? 1 : 0, ms[i]),
				  SITE("steady@a.c:9", 1 << 20, 1, 7000)));
}

static void repeated(void)
{
	const unsigned noisy[] = {2000, 9000, 4000, 12000, 6000};
	const unsigned noisier[] = {9000, 12000, 3000, 8000, 10000};
	const unsigned low[] = {5000, 5100, 4900, 5050, 4950};
	const unsigned high[] = {6000, 6100, 5900, 6050, 5950};
	const unsigned little[] = {5100, 5200, 5000, 5150, 5050};
	const unsigned none[5] = {0};
	const unsigned sometimes[] = {0, 5000, 0, 5000, 5000};

	add_five(DIFF_BASE, "f@a.c:1", 1 << 20, noisy);
	add_five(DIFF_NEW, "f@a.c:1", 1 << 20, noisier);
	compare(0.05);
	check(d.is_judged);
	check_str(VERDICT("f"), "same"); /* +27 %, but noise */
	check_str(VERDICT("steady"), "same");
	diff_deinit(&d);

	add_five(DIFF_BASE, "f@a.c:1", 1 << 20, low);
	add_five(DIFF_NEW, "f@a.c:1", 1 << 20, high);
	compare(0.05);
	check_str(VERDICT("f"), "grown");
	const struct diff_measure *m = &site("f")->measure[DIFF_LONGEST];
	/* 1 s, sd 79 ms each: 2.306 * 79.06 ms * sqrt(2/5) to either side */
	check_range(m->test.low / 1e9, 0.884, 0.885);
	check_range(m->test.high / 1e9, 1.115, 1.116);
	check_range(m->side[DIFF_BASE].mean / 1e9, 5, 5);
	diff_deinit(&d);

	add_five(DIFF_BASE, "f@a.c:1", 1 << 20, low);
	add_five(DIFF_NEW, "f@a.c:1", 1 << 20, little);
	compare(0.05);
	check_str(VERDICT("f"), "same"); /* 2 %: too little to tell */
	diff_deinit(&d);

	add_five(DIFF_BASE, "f@a.c:1", 1 << 20, none);
	add_five(DIFF_NEW, "f@a.c:1", 1 << 20, noisy);
	compare(0.05);
	check_str(VERDICT("f"), "new"); /* in every run, however it scatters */
	diff_deinit(&d);

	add_five(DIFF_BASE, "f@a.c:1", 1 << 20, none);
	add_five(DIFF_NEW, "f@a.c:1", 1 << 20, sometimes);
	compare(0.05);
	check_str(VERDICT("f"), "same");
	diff_deinit(&d);
}

/* Noise on many sites: some would pass 5 % each. */
static void many(void)
{
	enum { SITES = 60 };
	struct sample_site s[SITES];
	char stack[SITES][32];
	uint64_t state = 42;
	for (int run = 0; run < 10; run++) {
		for (int i = 0; i < SITES; i++) {
			state = state * 6364136223846793005u +
				1442695040888963407u;
			snprintf(stack[i], sizeof(stack[i]), "f%d@a.c:%d", i,
				 i + 1);
			s[i] = (struct sample_site)SITE(
				stack[i], 1 << 20, 1,
				2000 + (unsigned)((state >> 33) % 2000));
		}
		s[7].nap_ms = run < 5 ? 3000 + 10u * run : 9000 + 10u * run;
		add(run < 5 ? DIFF_BASE : DIFF_NEW,
		    &(struct sample_session){.site = s, .nr = SITES});
	}
	compare(0.05);
	unsigned by_itself = 0;
	for (size_t i = 1; i < d.nr_changes; i++)
		by_itself += d.change[i].measure[DIFF_LONGEST].test.p < 0.05;
	check(by_itself > 2); /* or this tests nothing */
	check_str(VERDICT("f7"), "grown");
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_SAME], SITES - 1);
	diff_deinit(&d);
}

static void coverage(void)
{
	char words[NOTE_MAX];
	struct sample_session *base =
		SESSION(SITE("leak@a.c:1", 1 << 20, 10, 5000),
			SITE("kept@a.c:2", 1 << 20, 10, 5000),
			SITE("calm@a.c:3", 1 << 20, 10, 5000));
	struct sample_session *new = SESSION(
		SITE("leak@a.c:1", 1 << 20, 0, 0, .allocs = 10, .watched = 10),
		SITE("kept@a.c:2", 1 << 20, 20, 5000),
		SITE("calm@a.c:3", 1 << 20, 0, 0, .allocs = 10));
	/* Watched as much: it is gone, and watched less since it was freed. */
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	compare(0.1);
	check_str(VERDICT("leak"), "gone");
	diff_deinit(&d);

	new->armed = 50;
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	compare(0.1);
	check(diff_is_watched_less(&d, DIFF_NEW));
	check(!diff_is_watched_less(&d, DIFF_BASE));
	check_str(VERDICT("leak"), "unsure");
	check_str(VERDICT("calm"), "gone");  /* its blocks had their turns */
	check_str(VERDICT("kept"), "grown"); /* more, though less watched */
	check_range(site("leak")->watched[DIFF_NEW], 0.1, 0.1);
	diff_deinit(&d);

	/* The same from the other side. */
	add(DIFF_BASE, new);
	add(DIFF_NEW, base);
	compare(0.1);
	check_str(VERDICT("leak"), "unsure");
	check_str(VERDICT("kept"), "shrunk");
	diff_deinit(&d);

	/* A trace without its end. */
	struct smco_err err = {0};
	new->armed = 0;
	new->cut = true;
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	check_int(diff_check(&d, &err), SMCO_FORMAT);
	check(strstr(err.msg, "has no end") != NULL);
	compare(0.1);
	check_str(VERDICT("leak"), "unsure");
	check_str(diff_words_watched(&d, site("leak"), words),
		  "10 % of its blocks, before 100 %; of the new runs, parts of "
		  "traces are missing");
	diff_deinit(&d);

	/* Naps known less exactly. */
	add(DIFF_BASE, base);
	add(DIFF_NEW,
	    SESSION(SITE("leak@a.c:1", 1 << 20, 4, 5000, .error_ms = 2000),
		    SITE("kept@a.c:2", 1 << 20, 10, 5000, .error_ms = 2000)));
	compare(0.1);
	check(diff_is_watched_less(&d, DIFF_NEW));
	check_str(VERDICT("leak"), "unsure");
	check_str(diff_words_watched(&d, site("leak"), words),
		  "100 % of its blocks, before 100 %; but naps are known less "
		  "exactly in the new runs");
	diff_deinit(&d);
}

/* A run that did not watch blocks has not none. */
static void without_naps(void)
{
	char note[NOTE_MAX];
	struct sample_session *naps =
		SESSION(SITE("leak@a.c:1", 1 << 20, 10, 5000),
			SITE("calm@a.c:3", 99, 0, 0));
	struct sample_session none = {.monitors = "counters",
				      .instructions = 1000};
	const struct diff_change *whole = NULL;
	for (int side = 0; side < DIFF_SIDES; side++) {
		add(side, &none);
		add(!side, naps);
		compare(0.1);
		whole = &d.change[0];
		check(!whole->measure[DIFF_BYTE_SECONDS].is_known);
		check(!whole->measure[DIFF_ALLOCS].is_known);
		check(whole->measure[DIFF_DURATION].is_known);
		check_str(VERDICT("leak"), "same");
		check_int(d.nr_one_sided[DIFF_SITE], 2);
		check(!diff_compares_naps(&d));
		check(diff_words_note(&d, 1, note) &&
		      strstr(note, "without -m nap: nothing is said of"));
		check(!diff_words_note(&d, 2, note));
		diff_deinit(&d);
	}
	/* Beside others of its side: what they have is compared. */
	add(DIFF_BASE, naps);
	add(DIFF_NEW, naps);
	add(DIFF_NEW, &none);
	compare(0.1);
	whole = &d.change[0];
	check(whole->measure[DIFF_BYTE_SECONDS].is_known);
	check(whole->measure[DIFF_BYTE_SECONDS].test.change == 0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_SAME], 2);
	check(d.quality[DIFF_NEW].watched == 1);
	check(diff_compares_naps(&d));
	diff_deinit(&d);
}

static void programs(void)
{
	struct smco_err err = {0};
	struct sample_session *s = SESSION(SITE("f@a.c:1", 1 << 20, 1, 5000));
	s->command = "/opt/v1/server -a";
	add(DIFF_BASE, s);
	s->command = "./server -b";
	s->build = "other";
	add(DIFF_NEW, s);
	check_int(diff_check(&d, &err), 0);
	s->command = "./client";
	add(DIFF_NEW, s);
	check_int(diff_check(&d, &err), SMCO_FORMAT);
	check(strstr(err.msg, "\"server\"") && strstr(err.msg, "\"client\""));
	check(strstr(err.msg, "--force") != NULL);
	diff_deinit(&d);
}

/* Stacks that were cut in one run belong to the whole one. */
static void cut_stacks(void)
{
	add(DIFF_BASE, SESSION(SITE("f@a.c:1 < main@a.c:9", 1 << 20, 2, 5000),
			       SITE("f@a.c:1", 1 << 20, 3, 6000),
			       SITE("g@a.c:2", 1 << 20, 1, 5000),
			       SITE("g@a.c:2 < x@a.c:7", 1 << 20, 1, 5000),
			       SITE("g@a.c:2 < y@a.c:8", 1 << 20, 1, 5000)));
	check_int(d.side[DIFF_BASE].run[0].nr_items, 1 + 1 + 3);
	const struct diff_item *f = &d.side[DIFF_BASE].run[0].item[1];
	check_int(f->nr_frames, 2);
	check_range(f->value[DIFF_BYTE_SECONDS], 28 << 20, 28 << 20);
	check_range(f->value[DIFF_LONGEST], 6e9, 6e9);
	check_int(f->nr_allocs, 5);
	diff_deinit(&d);
}

/* Where they could belong to several, nothing is known of these in that run,
 * and nothing of them is new or gone. */
static void cut_runs(void)
{
	struct sample_session *whole = SESSION(
		SITE("g@a.c:2 < x@a.c:7 < main@a.c:1", 1 << 20, 1, 5000),
		SITE("g@a.c:2 < y@a.c:8 < main@a.c:2", 1 << 20, 2, 5000));
	struct sample_session *cut = SESSION(SITE("g@a.c:2", 1 << 20, 3, 5000));
	struct sample_session *less = SESSION(
		SITE("g@a.c:2 < x@a.c:7 < main@a.c:1", 1 << 20, 1, 5000));
	double v[4];
	for (int i = 0; i < 3; i++) {
		add(DIFF_BASE, whole);
		add(DIFF_NEW, less);
	}
	add(DIFF_BASE, cut);
	compare(0.05);
	const struct diff_change *y = NULL;
	for (size_t i = 0; i < d.nr_changes; i++) {
		const struct diff_item *item = d.change[i].item[DIFF_BASE];
		if (item && item->nr_frames == 3 &&
		    !strcmp(item->frames[1].function, "y"))
			y = &d.change[i];
	}
	check(y && y->verdict == VERDICT_GONE);
	check_int(diff_values(&d.side[DIFF_BASE], y->entry[DIFF_BASE],
			      DIFF_ALLOCS, v),
		  3);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GONE], 1);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_SAME], 2);
	diff_deinit(&d);

	add(DIFF_BASE, whole);
	add(DIFF_NEW, cut);
	compare(0.1);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GONE], 0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_NEW], 0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_UNSURE], 3);
	diff_deinit(&d);

	/* Little that was cut does not make much unknown. */
	cut = SESSION(SITE("g@a.c:2 < x@a.c:7 < main@a.c:1", 1 << 20, 1, 5000),
		      SITE("g@a.c:2 < y@a.c:8 < main@a.c:2", 1 << 20, 2, 5000),
		      SITE("g@a.c:2", 4096, 1, 5000));
	add(DIFF_BASE, cut);
	add(DIFF_NEW, less);
	compare(0.1);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GONE], 1);
	diff_deinit(&d);
}

/* A cut stack that others of its own run begin like may be theirs, although
 * only one is left on the other side that it could be laid against. */
static void cut_and_left(void)
{
	add(DIFF_BASE,
	    SESSION(SITE("g@a.c:2 < x@a.c:7 < main@a.c:1", 4096, 22, 5000),
		    SITE("g@a.c:2 < y@a.c:8 < main@a.c:2", 4096, 22, 5000),
		    SITE("g@a.c:2 < z@a.c:9 < main@a.c:3", 4096, 2, 5000)));
	add(DIFF_NEW,
	    SESSION(SITE("g@a.c:2 < x@a.c:7 < main@a.c:1", 4096, 6, 5000),
		    SITE("g@a.c:2 < y@a.c:8 < main@a.c:2", 4096, 6, 5000),
		    SITE("g@a.c:2", 4096, 34, 5000)));
	compare(0.1);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GROWN], 0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_NEW], 0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_SHRUNK], 0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_UNSURE], 3);
	diff_deinit(&d);
}

/* Nor is what only one side has new or gone, if each run of the other has
 * stacks that were cut and begin like it; of one run a side that is not told.
 */
static void hidden(void)
{
#define STAY                                                                   \
	SITE("g@a.c:2 < y@a.c:8 < main@a.c:2", 4096, 30, 5000),                \
		SITE("g@a.c:2 < z@a.c:9 < main@a.c:3", 4096, 30, 5000)
	struct sample_session *whole =
		SESSION(SITE("g@a.c:2 < x@a.c:7 < main@a.c:1", 4096, 22, 5000),
			SITE("g@a.c:2", 4096, 1, 5000), STAY);
	struct sample_session *less =
		SESSION(SITE("g@a.c:2", 4096, 31, 5000), STAY);
	struct sample_session *few =
		SESSION(SITE("g@a.c:2", 4096, 2, 5000), STAY);
	struct sample_session *none = SESSION(STAY);
	const struct {
		struct sample_session *new[2];
		size_t nr_unsure, nr_gone; /* what was cut is unsure itself */
	} run[] = {
		{{less}, 4, 0},	      {{less, less}, 4, 0},
		{{less, none}, 0, 1}, /* one without */
		{{few}, 1, 1},	      {{none}, 1, 1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(run); i++) {
		bool twice = run[i].new[1];
		add(DIFF_BASE, whole);
		add(DIFF_NEW, run[i].new[0]);
		if (twice) {
			add(DIFF_BASE, whole);
			add(DIFF_NEW, run[i].new[1]);
		}
		compare(0.1);
		printf("# case %zu\n", i);
		check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_UNSURE],
			  run[i].nr_unsure);
		check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GONE],
			  run[i].nr_gone);
		for (size_t k = 1; k < d.nr_changes; k++)
			check(d.change[k].is_told ==
			      (d.change[k].verdict == VERDICT_GONE ||
			       (twice &&
				d.change[k].verdict == VERDICT_UNSURE)));
		diff_deinit(&d);
	}
}

/* Functions without lines are put together by their names, so that any offset
 * in them may be the cut one's. */
static void cut_without_lines(void)
{
	add(DIFF_BASE, SESSION(SITE("g < x < main", 4096, 22, 5000),
			       SITE("g < y < main", 4096, 30, 5000),
			       SITE("g < z < main", 4096, 30, 5000)));
	add(DIFF_NEW, SESSION(SITE("h", 4096, 1, 5000),
			      SITE("g < y < main", 4096, 30, 5000),
			      SITE("g < z < main", 4096, 30, 5000),
			      SITE("g", 4096, 31, 5000)));
	compare(0.1);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_NEW], 1); /* h */
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GONE], 0);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GROWN], 0);
	check_int(d.change[2].is_told, false);
	diff_deinit(&d);
}

#define VARIABLES(...)                                                         \
	(&(struct sample_session){                                             \
		.variable = (const struct sample_variable[]){__VA_ARGS__},     \
		.nr_variables = ARRAY_SIZE(                                    \
			((const struct sample_variable[]){__VA_ARGS__}))})

/* "grown": of that kind what has that whole name; "" if there is none. */
static const char *verdict_of_kind(enum diff_kind kind, const char *name)
{
	for (size_t i = 0; i < d.nr_changes; i++)
		if (d.change[i].kind == kind &&
		    !strcmp(diff_words_name(&d.change[i]), name))
			return diff_verdict_name(d.change[i].verdict);
	return "";
}
static const char *verdict_on(const char *name)
{
	return verdict_of_kind(DIFF_VARIABLE, name);
}
static const char *mistake(const char *name)
{
	return verdict_of_kind(DIFF_MISTAKE, name);
}

#define V(n, f, l, lo, hi, ...)                                                \
	{                                                                      \
		.name = (n), .file = (f), .line = (l), .smallest = (lo),       \
		.largest = (hi), __VA_ARGS__                                   \
	}

static void variables(void)
{
	add(DIFF_BASE,
	    VARIABLES(V("wider", "/v1/a.c", 3, 0, 10),
		      V("narrower", "/v1/a.c", 4, -100, 100),
		      V("same", "/v1/a.c", 5, -3, 3), V("gone", "a.c", 6, 0, 1),
		      V("f::i", "a.c", 7, 0, 5), V("f::i", "a.c", 9, 0, 50),
		      V("constant", "a.c", 11, 7, 7),
		      V("other", "a.c", 1, 0, 1),
		      V("missed", "a.c", 12, 0, 100),
		      V("late", "a.c", 13, 0, 100, .watched = 10),
		      V("polled", "a.c", 14, 0, 1, .polled = true)));
	add(DIFF_NEW,
	    VARIABLES(V("wider", "/v2/a.c", 30, -5, 10),
		      V("narrower", "/v2/a.c", 40, -100, 0),
		      V("same", "/v2/a.c", 50, -3, 3), V("new", "a.c", 6, 0, 1),
		      V("f::i", "a.c", 70, 0, 5), V("f::i", "a.c", 90, 0, 500),
		      V("constant", "a.c", 11, 7, 8),
		      V("other", "b.c", 1, 0, 9),
		      V("missed", "a.c", 12, 0, 50, .watched = 10),
		      V("late", "a.c", 13, 0, 200),
		      V("polled", "a.c", 14, 0, 9, .polled = true)));
	compare(0.1);
	check_str(verdict_on("wider (a.c)"), "grown");
	check_str(verdict_on("narrower (a.c)"), "shrunk");
	check_str(verdict_on("same (a.c)"), "same");
	/* One side has no such variable: that is told if all is. */
	check_str(verdict_on("gone (a.c)"), "gone");
	check_str(verdict_on("new (a.c)"), "new");
	check_str(verdict_on("other (a.c)"), "gone");
	check_str(verdict_on("other (b.c)"), "new");
	for (size_t i = 1; i < d.nr_changes; i++)
		check(d.change[i].is_told == (i <= 6));
	/* In the order of their lines. */
	check_str(verdict_on("f::i (a.c)"), "same");
	check_str(verdict_on("f::i #2 (a.c)"), "grown");
	check_str(verdict_on("constant (a.c)"), "grown");
	/* It may be for want of watching. */
	check_str(verdict_on("missed (a.c)"), "unsure");
	check_str(verdict_on("late (a.c)"), "unsure");
	check_str(verdict_on("polled (a.c)"), "");
	check_int(d.nr_by_verdict[DIFF_VARIABLE][VERDICT_GROWN], 3);
	check_int(d.nr_by_verdict[DIFF_SITE][VERDICT_GROWN], 0);
	struct diff_rules rules = {0};
	check_int(diff_rules_add(&rules, "variables.grown > 2", NULL), 0);
	check_int(diff_rules_add(&rules, "variables.grown > 3", NULL), 0);
	check_int(diff_rules_add(&rules, "variables.bigger > 3", NULL),
		  SMCO_FORMAT);
	check(diff_rules_apply(&rules, &d));
	check(rules.rule[0].is_crossed && !rules.rule[1].is_crossed);
	diff_rules_free(&rules);
	diff_deinit(&d);
}

static void mistakes(void)
{
	add(DIFF_BASE,
	    VARIABLES(V("right", "a.c", 1, 0, 9), V("worse", "a.c", 2, 0, 9),
		      V("still", "a.c", 3, 0, INT32_MAX),
		      V("mended::len", "a.c", 4, -7, 9),
		      V("left", "a.c", 5, 0, INT32_MAX),
		      V("dark", "a.c", 6, 0, 9, .watched = 10),
		      V("looked", "a.c", 7, 0, 9, .polled = true)));
	add(DIFF_NEW, VARIABLES(V("right", "a.c", 1, 0, 9),
				V("worse", "a.c", 2, 0, INT32_MAX),
				V("still", "a.c", 3, 0, INT32_MAX),
				V("mended::len", "a.c", 4, 0, 9),
				V("fresh", "a.c", 5, 0, INT32_MAX),
				V("dark", "a.c", 6, 0, INT32_MAX),
				V("looked", "a.c", 7, 0, INT32_MAX)));
	compare(0.1);
	check_str(mistake("right (a.c)"), "");
	check_str(mistake("worse (a.c)"), "new");
	check_str(mistake("still (a.c)"), "same");
	check_str(mistake("mended::len (a.c)"), "gone");
	/* Variables that only one side has. */
	check_str(mistake("left (a.c)"), "gone");
	check_str(mistake("fresh (a.c)"), "new");
	/* What was hardly, or not, watched before may have been there. */
	check_str(mistake("dark (a.c)"), "unsure");
	check_str(mistake("looked (a.c)"), "unsure");
	check_int(d.nr_by_verdict[DIFF_MISTAKE][VERDICT_NEW], 2);
	check_int(d.nr_by_verdict[DIFF_MISTAKE][VERDICT_SAME], 1);
	struct diff_rules rules = {0};
	check_int(diff_rules_add(&rules, "mistakes.new > 1", NULL), 0);
	check_int(diff_rules_add(&rules, "mistakes.new > 2", NULL), 0);
	check(diff_rules_apply(&rules, &d));
	check(rules.rule[0].is_crossed && !rules.rule[1].is_crossed);
	diff_rules_free(&rules);
	diff_deinit(&d);

	/* Who did not look has not found nothing. */
	add(DIFF_BASE, SESSION(SITE("g@a.c:2", 4096, 1, 5000)));
	add(DIFF_NEW, VARIABLES(V("worse", "a.c", 2, 0, INT32_MAX)));
	compare(0.1);
	check_str(mistake("worse (a.c)"), "same");
	check_str(verdict_on("worse (a.c)"), "same");
	check_int(d.nr_one_sided[DIFF_MISTAKE], 1);
	check_int(d.nr_one_sided[DIFF_VARIABLE], 1);
	diff_deinit(&d);
}

/* A value of any sign, and no shares of it. */
static void numbers(void)
{
	char text[WORDS_MAX];
	struct diff_measure m = {.test = {.change = -1500}};
	check_str(diff_words_value(UNIT_NUMBER, -12345, true, text), "-12 345");
	check_str(diff_words_value(UNIT_NUMBER, 0, true, text), "0");
	check_str(diff_words_value(UNIT_NS, 1.5e9, true, text), "1.5 s");
	check_str(diff_words_relative(UNIT_NUMBER, &m, text), "-1500");
}

int main(void)
{
	path = scratch_path("x.trace");
	single();
	by_chance();
	longer();
	repeated();
	many();
	coverage();
	without_naps();
	programs();
	cut_stacks();
	cut_runs();
	cut_and_left();
	hidden();
	cut_without_lines();
	variables();
	mistakes();
	numbers();
	return tap_done();
}
