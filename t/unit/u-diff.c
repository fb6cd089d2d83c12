/*
 * What counts as a change, and what not: single runs, repeated runs, chance,
 * coverage.
 */
#include "t/unit/tap.h"

#include <math.h>
#include <stdlib.h>

#include "reports/diff-words.h"
#include "t/unit/diff-sides.h"

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

/* Nor is it gone where the run was so much shorter that its naps need not have
 * been long enough to be told of: these are of 1 s and more. */
static void shorter(void)
{
	struct sample_session *base =
		SESSION(SITE("idle@a.c:1", 1 << 20, 2, 5000),
			SITE("long@a.c:2", 1 << 20, 2, 20000),
			SITE("more@a.c:3", 1 << 20, 2, 5000));
	struct sample_session *new =
		SESSION(SITE("idle@a.c:1", 1 << 20, 0, 0, .allocs = 2),
			SITE("long@a.c:2", 1 << 20, 0, 0, .allocs = 2),
			SITE("more@a.c:3", 1 << 20, 2, 9000));
	for (int i = 0; i < 2; i++) {
		base->duration_ms = 60000;
		new->duration_ms = i ? 24000 : 12000;
		add(i ? DIFF_BASE : DIFF_NEW, base);
		add(i ? DIFF_NEW : DIFF_BASE, new);
		compare(0.1);
		check_str(VERDICT("idle"), i ? "gone" : "same"); /* 2 s, 1 s */
		check_str(VERDICT("long"), i ? "gone" : "new");
		check_str(VERDICT("more"), i ? "grown" : "same"); /* 4/5 less */
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

/* @nr runs on one side that have not the site @name, on the other those that
 * do: is it told? */
static const char *from_nothing(size_t nr, const unsigned *ms, size_t nr_ms)
{
	for (size_t i = 0; i < nr; i++)
		add(DIFF_BASE, SESSION(SITE("f@a.c:1", 1 << 20, 0, 0)));
	for (size_t i = 0; i < nr_ms; i++)
		add(DIFF_NEW, SESSION(SITE("f@a.c:1", 1 << 20, 1, ms[i])));
	compare(0.05);
	const char *verdict = VERDICT("f");
	diff_deinit(&d);
	return verdict;
}

/* In all runs of one side and in none of the other: that alone is significant
 * where so few orders of the runs are like it. */
static void by_order(void)
{
	const unsigned noisy[] = {2000, 9000, 4000, 12000, 2500};
	const unsigned steady[] = {5000, 5100, 4900};
	check_str(from_nothing(3, noisy, 3), "same"); /* 1 of 10 */
	check_str(from_nothing(3, steady, 3), "new"); /* by Welch's test */
	check_str(from_nothing(3, noisy, 4), "same"); /* 2 of 35 */
	check_str(from_nothing(4, noisy, 4), "new");  /* 2 of 70 */
	check_str(from_nothing(3, noisy, 5), "new");  /* 2 of 56 */
	check_str(from_nothing(1, noisy, 5), "same"); /* 1 of 3 */
}

/* A migration in each of three runs, and none before, is no more certain. */
static void by_order_of_counts(void)
{
	struct sample_session none = {.instructions = 1000,
				      .no_switches = true};
	struct sample_session one = {.instructions = 1500, .switches = 1};
	for (size_t nr = 3; nr <= 4; nr++) {
		for (size_t i = 0; i < nr; i++) {
			add(DIFF_BASE, &none);
			add(DIFF_NEW, &one);
		}
		compare(0.05);
		check_str(counter("context-switches"), nr < 4 ? "same" : "new");
		check_str(counter("instructions"), "grown");
		diff_deinit(&d);
	}
}

/* Of @nr_apart sites that only the new runs have and @nr_some that some runs
 * of both have, by chance, how many are told. */
static unsigned told_of(unsigned nr_apart, unsigned nr_some)
{
	enum { RUNS = 5, SITES = 30 };
	struct sample_site s[SITES];
	char stack[SITES][32];
	uint64_t state = 7;
	unsigned nr_told = 0;
	for (unsigned run = 0; run < 2 * RUNS; run++) {
		for (unsigned i = 0; i < nr_apart + nr_some; i++) {
			state = state * 6364136223846793005u +
				1442695040888963407u;
			unsigned ms = 2000 + (unsigned)((state >> 33) % 9000);
			bool is_there =
				i < nr_apart ? run >= RUNS : (run + i) & 1;
			snprintf(stack[i], sizeof(stack[i]), "f%u@a.c:%u", i,
				 i + 1);
			s[i] = (struct sample_site)SITE(stack[i], 1 << 20,
							is_there ? 1 : 0, ms);
		}
		add(run < RUNS ? DIFF_BASE : DIFF_NEW,
		    &(struct sample_session){.site = s,
					     .nr = nr_apart + nr_some});
	}
	compare(0.05);
	for (size_t i = 1; i < d.nr_changes; i++)
		nr_told += d.change[i].is_told;
	diff_deinit(&d);
	return nr_told;
}

/* The more sites come and go by chance, the likelier is one that does so as if
 * the version were the cause. */
static void by_order_of_many(void)
{
	check_int(told_of(1, 0), 1);
	check_int(told_of(20, 0), 20);
	check_int(told_of(1, 5), 1); /* 1 of 6 times 5 % */
	check_int(told_of(1, 6), 0);
	check_int(told_of(4, 20), 4);
	check_int(told_of(3, 20), 0);
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

	/* Or since it never got a turn, as some did not. */
	new->without_turn = 1;
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	compare(0.1);
	check_str(VERDICT("leak"), "unsure");
	check(!site("leak")->is_told);
	check_str(VERDICT("calm"), "gone");
	check_str(VERDICT("kept"), "grown");
	diff_deinit(&d);
	new->without_turn = 0;

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
	sides_begin();
	single();
	by_chance();
	longer();
	shorter();
	repeated();
	by_order();
	by_order_of_counts();
	by_order_of_many();
	many();
	coverage();
	without_naps();
	programs();
	numbers();
	return tap_done();
}
