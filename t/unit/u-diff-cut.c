/*
 * Stacks that were not read to their end: whose they may be, and what is
 * therefore not said of sites that begin like them.
 */
#include "t/unit/diff-sides.h"

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

int main(void)
{
	sides_begin();
	cut_stacks();
	cut_runs();
	cut_and_left();
	hidden();
	cut_without_lines();
	return tap_done();
}
