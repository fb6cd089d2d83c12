/*
 * Numbers between enumerators: of enums of all shapes it is known of each
 * number in which part it lies, exactly, as long as there are not too many
 * gaps; then of the widest. Bits that are or'ed together have none.
 */
#include <stdlib.h>

#include "supervisor/probe/range-hole.h"
#include "t/unit/tap.h"

#define MANY 5000

static struct var_enumerator name[MANY];
static struct var_type type;
static const struct variables all = {.enumerators = name,
				     .nr_enumerators = MANY};

static int64_t bits(size_t nr, const int64_t *value)
{
	for (size_t i = 0; i < nr; i++)
		name[i].value = value[i];
	return range_bits_of(name, nr);
}
#define BITS(...)                                                              \
	bits(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),               \
	     (int64_t[]){__VA_ARGS__})

static void test_bits(void)
{
	check_int(BITS(1, 2, 4), 7);
	check_int(BITS(0, 1, 2, 4, 8), 15);
	check_int(BITS(0, 16, 64), 80);
	/* Names for all, for some of them, and for a width. */
	check_int(BITS(1, 2, 4, 7), 7);
	check_int(BITS(1, 2, 4, 6, 0x7fffffff), 7);
	check_int(BITS(-1, 1, 2, 4), 7);
	check_int(BITS(0, 1, 2, 4, 255), 7);
	/* What is counted, or something else. */
	check_int(BITS(0, 1, 2), 0);
	check_int(BITS(1, 2, 3, 4), 0);
	check_int(BITS(0, 1, 2, 3, 4, 5, 6), 0);
	check_int(BITS(0, 1, 2, 3, 4, 0x7fffffff), 0);
	check_int(BITS(-1, 0, 1, 2, 3, 4, 255), 0);
	check_int(BITS(1, 2, 4, 9), 0);
	check_int(BITS(-2, 1, 2, 4), 0);
	check_int(BITS(2, 3, 4), 0);
	check_int(BITS(INT64_MIN, 1, 2, 4), 0);
	check_int(BITS(1, 4), 0);
}

/* @nr names, each @step above the one before. */
static void names(uint32_t nr, int64_t first, int64_t step)
{
	for (uint32_t i = 0; i < nr; i++)
		name[i].value = (int64_t)((uint64_t)first + i * (uint64_t)step);
	type = (struct var_type){.class_ = VAR_ENUM,
				 .width = 8,
				 .is_signed = true,
				 .nr_enumerators = nr};
}

static enum range_hole_kind kind_of(const struct range_hole_part *part,
				    size_t nr, uint64_t in)
{
	size_t i = nr;
	while (i-- > 1 && part[i].from > in)
		;
	uint8_t byte[RANGE_HOLE_BITS / 8];
	if (part[i].kind != RANGE_SOME)
		return part[i].kind;
	range_hole_names(&all, &type, part[i].from, in + 1, byte);
	in -= part[i].from;
	return byte[in / 8] >> in % 8 & 1 ? RANGE_NAMED : RANGE_UNNAMED;
}

/* What the parts say of the numbers around each name: how much is wrong, and
 * how many numbers without one are taken to be named. */
static unsigned wrong(unsigned *missed_ret)
{
	struct range_hole_part part[RANGE_HOLE_PARTS];
	struct range_hole hole = range_hole_of(&all, &type);
	size_t nr = range_hole_parts(&all, &type, part);
	unsigned bad = !nr || nr > RANGE_HOLE_PARTS || part[0].from;
	*missed_ret = 0;
	for (size_t i = 1; i < nr; i++)
		bad += part[i].from <= part[i - 1].from;
	for (uint32_t i = 0; i < type.nr_enumerators; i++) {
		for (int k = -1; k < 2; k++) {
			uint64_t in = (uint64_t)name[i].value + (uint64_t)k -
				      (uint64_t)hole.first;
			if (in >= hole.nr)
				continue;
			bool none = range_hole_has(&all, &type, in);
			bool is = kind_of(part, nr, in) == RANGE_UNNAMED;
			bad += is && !none;
			*missed_ret += none && !is;
		}
	}
	return bad;
}

static void test_parts(void)
{
	unsigned missed;
	names(1, 5, 1);
	check_int(range_hole_of(&all, &type).nr, 0);
	names(9, 5, 1);
	check_int(range_hole_of(&all, &type).nr, 0);
	check_int(range_hole_bytes(&all, 0), 0);
	names(9, -5, 3);
	check_int(range_hole_of(&all, &type).first, -4);
	check_int(range_hole_of(&all, &type).nr, 23);
	check_int(wrong(&missed), 0);
	check_int(missed, 0);
	static const struct {
		uint32_t nr;
		int64_t step;
		bool misses;
	} shape[] = {
		{10, 3, false},	       {18, 3, false},
		{4000, 2, false},      {4096, 3, true},
		{40, 1000, false},     {65, 64, false},
		{65, 65, false},       {66, 1000, true},
		{3, 1LL << 62, false}, {60, 1LL << 33, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(shape); i++) {
		names(shape[i].nr, 1 - shape[i].step, shape[i].step);
		check_int(wrong(&missed), 0);
		check_int(missed != 0, shape[i].misses);
	}
	/* The widest are seen, where others are too many. */
	names(200, 7, 100);
	for (int i = 150; i < 200; i++)
		name[i].value += 100000;
	check_int(wrong(&missed), 0);
	check(missed > 0);
	struct range_hole_part part[RANGE_HOLE_PARTS];
	size_t nr = range_hole_parts(&all, &type, part);
	check_int(kind_of(part, nr, 50000), RANGE_UNNAMED);
	names(4097, 7, 100);
	check_int(range_hole_of(&all, &type).nr, 0);
}

/* What no compiler writes. */
static void test_odd_files(void)
{
	names(3, 0, 10);
	name[2].value = -7;
	check_int(range_hole_of(&all, &type).nr, 0);
	names(3, 0, 300);
	type.width = 1;
	check_int(range_hole_of(&all, &type).nr, 0);
	names(2, 0, 0);
	name[0].value = INT64_MIN;
	name[1].value = INT64_MAX;
	check(range_hole_of(&all, &type).nr == UINT64_MAX - 1);
	struct range_cell cell = range_hole_empty(&all, &type);
	int64_t got;
	check(!range_hole_read(&cell, &all, &type, &got));
	cell.smallest = UINT64_MAX - 2;
	check(range_hole_read(&cell, &all, &type, &got));
	check_int(got, INT64_MAX - 1);
}

int main(void)
{
	test_bits();
	test_parts();
	test_odd_files();
	return tap_done();
}
