/*
 * How much of the ranges of a reference a run has found: sizes, decades, what
 * is left out, what is beyond the reference.
 */
#include "t/unit/tap.h"

#include <math.h>

#include "reports/accuracy.h"

#define MOST 16
struct made {
	struct model_ranges ranges;
	struct model_range range[MOST];
	struct trace_frame decl[MOST];
};

static void put_flags(struct made *m, const char *name, uint64_t hits,
		      int64_t smallest, int64_t largest, uint32_t var_flags,
		      uint32_t flags)
{
	size_t i = m->ranges.nr++;
	m->decl[i] = (struct trace_frame){
		.function = name, .file = "a.c", .line = 7};
	m->range[i] = (struct model_range){
		.decl = &m->decl[i],
		.type = "int",
		.var = {.bits = 64, .flags = var_flags},
		.has_value = true,
		.smallest = smallest,
		.largest = largest,
		.flags = flags,
		.hits = hits,
		.watched_ns = 100,
		.alive_ns = 100,
	};
	m->ranges.range = m->range;
}

static void put(struct made *m, const char *name, uint64_t hits,
		int64_t smallest, int64_t largest)
{
	put_flags(m, name, hits, smallest, largest, VARIABLE_SIGNED,
		  RANGE_SENSED);
}

static const struct accuracy_variable *find(const struct accuracy *a,
					    const char *name)
{
	static const struct accuracy_variable none = {.accuracy = -1};
	for (size_t i = 0; i < a->nr; i++)
		if (!strcmp(a->variable[i].reference->decl->function, name))
			return &a->variable[i];
	return &none;
}

static void single(void)
{
	struct made run = {0}, ref = {0};
	struct accuracy a;
	put(&ref, "whole", 5, 0, 10);
	put(&ref, "half", 9, -10, 10);
	put(&ref, "one value", 10, 0, 10);
	put(&ref, "never seen", 99, 0, 10);
	put(&ref, "constant", 100, 3, 3);
	put(&ref, "another constant", 100, 3, 3);
	put(&ref, "beyond", 1, 0, 10);
	put(&ref, "elsewhere", 1, 0, 10);
	put(&ref, "all of 64 bits", UINT64_MAX, INT64_MIN, INT64_MAX);
	put_flags(&ref, "large", 1, 0, -1, 0, RANGE_SENSED);
	put(&run, "large", 1, 0, -1); /* as a number of 64 bits: */
	run.range[0].var.flags = 0;
	put(&run, "whole", 1, 0, 10);
	put(&run, "half", 2, -5, 5);
	put(&run, "one value", 1, 4, 4);
	put(&run, "constant", 1, 3, 3);
	put(&run, "beyond", 1, -5, 20);
	put(&run, "elsewhere", 1, 8, 13);
	put(&run, "all of 64 bits", 1, INT64_MIN / 2, INT64_MAX / 2);
	put(&run, "not in the reference", 1, 0, 1);
	check_int(accuracy_measure(&run.ranges, &ref.ranges, &a, NULL), 0);
	check_int(a.nr, 10);
	check_range(find(&a, "whole")->accuracy, 1, 1);
	check_range(find(&a, "half")->accuracy, 0.5, 0.5);
	check_range(find(&a, "one value")->accuracy, 0, 0);
	check(find(&a, "one value")->run != NULL);
	check_range(find(&a, "never seen")->accuracy, 0, 0);
	check(!find(&a, "never seen")->run);
	check_range(find(&a, "constant")->accuracy, 1, 1);
	check_range(find(&a, "another constant")->accuracy, 0, 0);
	check_range(find(&a, "beyond")->accuracy, 1, 1);
	check(find(&a, "beyond")->is_outside);
	check_range(find(&a, "elsewhere")->accuracy, 0.5, 0.5);
	check(find(&a, "elsewhere")->is_outside);
	check_range(find(&a, "all of 64 bits")->accuracy, 0.499, 0.501);
	check_range(find(&a, "large")->accuracy, 1, 1);
	check(!find(&a, "large")->is_outside);
	check_int(a.nr_outside, 2);
	check_int(find(&a, "half")->decade, 0);
	check_int(find(&a, "one value")->decade, 1);
	check_int(find(&a, "never seen")->decade, 1);
	check_int(find(&a, "constant")->decade, 2);
	check_int(find(&a, "all of 64 bits")->decade, 19);
	/* Rarely assigned ones first. */
	for (size_t i = 1; i < a.nr; i++)
		check(a.variable[i - 1].reference->hits <=
		      a.variable[i].reference->hits);
	accuracy_free(&a);
}

static void groups(void)
{
	struct made run = {0}, ref = {0};
	struct accuracy a;
	put(&ref, "a", 1, 0, 4);
	put(&ref, "b", 9, 0, 4);
	put(&ref, "c", 5000, 0, 10);
	put(&ref, "d", 5000, 0, 10);
	put(&ref, "e", 9999, 0, 10);
	put_flags(&ref, "polled", 4, 0, 10, VARIABLE_SIGNED, RANGE_POLLED);
	ref.range[1].watched_ns = 98;
	put(&ref, "no value", 0, 0, 0);
	ref.range[6].has_value = false;
	put(&run, "a", 1, 0, 1);
	put(&run, "c", 1, 0, 10);
	put(&run, "d", 1, 0, 5);
	put(&run, "polled", 1, 0, 5);
	check_int(accuracy_measure(&run.ranges, &ref.ranges, &a, NULL), 0);
	check_int(a.nr_decades, 4);
	check_int(a.nr_polled, 1);
	check_int(a.nr_partly, 1);
	check_int(a.decade[0].nr, 2);
	check_int(a.decade[0].nr_found, 1);
	check_range(a.decade[0].accuracy, 0.125, 0.125); /* 1/4 and 0 */
	check_int(a.decade[1].nr, 0);
	check(isnan(a.decade[1].accuracy));
	check_range(a.up_to[1].accuracy, 0.125, 0.125);
	check_int(a.decade[3].nr, 3);
	check_range(a.decade[3].accuracy, 0.5, 0.5);
	check_int(a.up_to[3].nr, 5);
	check_int(a.up_to[3].nr_found, 3);
	check_range(a.up_to[3].accuracy, 0.35, 0.35);
	check_range(a.up_to[ACCURACY_DECADES - 1].accuracy, 0.35, 0.35);
	accuracy_free(&a);
}

/* Of one name, but declared elsewhere, or of another type. */
static void others(void)
{
	struct made run = {0}, ref = {0};
	struct accuracy a;
	put(&ref, "i", 1, 0, 10);
	put(&ref, "i", 1, 0, 10);
	put(&ref, "i", 1, 0, 10);
	ref.decl[1].line = 8;
	ref.range[2].type = "long";
	put(&run, "i", 1, 0, 5);
	run.decl[0].line = 8;
	check_int(accuracy_measure(&run.ranges, &ref.ranges, &a, NULL), 0);
	check_int(a.up_to[0].nr, 3);
	check_int(a.up_to[0].nr_found, 1);
	for (size_t i = 0; i < a.nr; i++)
		check(!a.variable[i].run ==
		      (a.variable[i].reference != &ref.range[1]));
	accuracy_free(&a);
}

static void nothing(void)
{
	struct made run = {0}, ref = {0};
	struct accuracy a;
	check_int(accuracy_measure(&run.ranges, &ref.ranges, &a, NULL), 0);
	check_int(a.nr, 0);
	check_int(a.nr_decades, 0);
	check(isnan(a.up_to[ACCURACY_DECADES - 1].accuracy));
	accuracy_free(&a);
}

int main(void)
{
	single();
	groups();
	others();
	nothing();
	return tap_done();
}
