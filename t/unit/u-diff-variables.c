/*
 * Variables, and what may be mistakes in them: found again by name and file,
 * new, gone, grown, or not seen well enough to tell.
 */
#include "t/unit/diff-sides.h"

#include "reports/diff-rule.h"
#include "reports/diff-words.h"

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
	/* One side has no such variable: that is told if all is; so is, of
	 * single runs, what one did not see. */
	check_str(verdict_on("gone (a.c)"), "gone");
	check_str(verdict_on("new (a.c)"), "new");
	check_str(verdict_on("other (a.c)"), "gone");
	check_str(verdict_on("other (b.c)"), "new");
	for (size_t i = 1; i < d.nr_changes; i++)
		check(d.change[i].is_told == (i <= 4));
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

static void check_partly(const char *narrow, const char *has_mistake, bool told)
{
	check_str(verdict_on("part (a.c)"), narrow);
	check_str(mistake("part::len (a.c)"), has_mistake);
	check_str(verdict_on("whole (a.c)"), "grown");
	/* Of the mistake the range is grown, too. */
	size_t nr = 0;
	for (size_t i = 1; i < d.nr_changes; i++)
		nr += d.change[i].is_told;
	check_int(nr, told ? 4 : 1);
	char words[NOTE_MAX];
	for (size_t i = 1; i < d.nr_changes; i++)
		if (d.change[i].verdict == VERDICT_UNSURE) {
			diff_words_watched(&d, &d.change[i], words);
			check_str(words, "100 % of the time, before 99 %");
		}
	diff_deinit(&d);
}

/* Of single runs: what a variable had while it was not watched is not known;
 * that it was is no difference. */
static void partly(void)
{
	struct sample_session *base =
		VARIABLES(V("part", "a.c", 1, 0, 10, .watched = 99),
			  V("part::len", "a.c", 2, 0, 10, .watched = 99),
			  V("whole", "a.c", 3, 0, 10));
	struct sample_session *new = VARIABLES(
		V("part", "a.c", 1, 0, 20), V("part::len", "a.c", 2, -7, 10),
		V("whole", "a.c", 3, 0, 20, .watched = 99));
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	compare(0.1);
	check_partly("unsure", "unsure", false);

	/* Repeated runs are judged by how they scatter. */
	for (int i = 0; i < 4; i++) {
		add(DIFF_BASE, base);
		add(DIFF_NEW, new);
	}
	compare(0.1);
	check_partly("grown", "new", true);

	/* The beginning is not all that a variable is there for. */
	base->duration_ms = new->duration_ms = 900;
	add(DIFF_BASE, base);
	add(DIFF_NEW, new);
	compare(0.1);
	check_partly("grown", "new", true);
}

int main(void)
{
	sides_begin();
	variables();
	mistakes();
	partly();
	return tap_done();
}
