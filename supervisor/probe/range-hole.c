/* Numbers between enumerators, see range-hole.h. */
#include "supervisor/probe/range-hole.h"

#include <string.h>

#define MOST_NAMES 4096 /* they are gone through for each site */
#define FEW_GAPS   16	/* each is a part, then */
#define WIDE	   64	/* numbers: else a bit for each is less to keep */

static bool is_bit(int64_t value)
{
	return value >= 0 && !(value & (value - 1));
}

/* Every bit that has a name, and more: a mask, or "of 32 bits". */
static bool is_mask(int64_t value, int64_t bits)
{
	uint64_t v = (uint64_t)value;
	return !(v & (v + 1)) && (value & bits) == bits;
}

/* From its first to its last one there is one name each: they are counted, as
 * 1, 2, 3, 4 are. All but masks. */
static bool are_counted(const struct var_enumerator *e, size_t nr, int64_t bits)
{
	int64_t first = -1, last = -1, different = 0;
	for (size_t i = 0; i < nr; i++) {
		if (e[i].value < 0 || e[i].value & ~bits)
			continue;
		first = different ? first : e[i].value;
		different += e[i].value != last;
		last = e[i].value;
	}
	return different == last - first + 1;
}

int64_t range_bits_of(const struct var_enumerator *e, size_t nr)
{
	int64_t bits = 0;
	size_t nr_bits = 0, nr_sums = 0;
	for (size_t i = 0; i < nr; i++) {
		if (is_bit(e[i].value)) {
			bits |= e[i].value;
			nr_bits++;
		}
	}
	for (size_t i = 0; i < nr; i++) {
		if (is_bit(e[i].value))
			continue;
		if (!(e[i].value & ~bits))
			nr_sums++;
		else if (!is_mask(e[i].value, bits))
			return 0;
	}
	if (nr_bits <= 2 || bits < 4 || 2 * nr_sums >= nr_bits ||
	    are_counted(e, nr, bits))
		return 0;
	return bits;
}

/* Between two names, in a hole. */
struct gap {
	uint64_t from, end;
	uint32_t next; /* name behind it */
};

/* The gap behind @gap, whose next is 1 or more. False: it was the last. */
static bool next_gap(const struct var_enumerator *e, uint32_t nr, int64_t first,
		     struct gap *gap)
{
	for (uint32_t i = gap->next; i < nr; i++) {
		uint64_t below = (uint64_t)e[i - 1].value;
		uint64_t above = (uint64_t)e[i].value;
		/* A file may have them in any order. */
		if (e[i].value <= e[i - 1].value || above - below == 1)
			continue;
		gap->from = below + 1 - (uint64_t)first;
		gap->end = above - (uint64_t)first;
		gap->next = i + 1;
		return true;
	}
	return false;
}

static bool has_names(const struct variables *v, const struct var_type *t)
{
	return t->class_ == VAR_ENUM && t->nr_enumerators &&
	       t->nr_enumerators <= MOST_NAMES &&
	       !range_bits_of(v->enumerators + t->first_enumerator,
			      t->nr_enumerators);
}

static bool are_sorted(const struct var_enumerator *e, uint32_t nr)
{
	for (uint32_t i = 1; i < nr; i++)
		if (e[i].value < e[i - 1].value)
			return false;
	return true;
}

struct range_hole range_hole_of(const struct variables *v,
				const struct var_type *t)
{
	struct range_hole ret = {.nr = 0};
	struct gap gap = {.next = 1};
	if (!has_names(v, t))
		return ret;
	const struct var_enumerator *e = v->enumerators + t->first_enumerator;
	if (!are_sorted(e, t->nr_enumerators) ||
	    !next_gap(e, t->nr_enumerators, 0, &gap))
		return ret;
	ret.first = (int64_t)gap.from;
	do
		ret.nr = gap.end - (uint64_t)ret.first;
	while (next_gap(e, t->nr_enumerators, 0, &gap));
	unsigned width = range_compare_width(t);
	if (width < 8 && ret.nr >> 8 * width) /* no such numbers */
		ret.nr = 0;
	return ret;
}

bool range_has_hole(const struct variables *v, uint32_t owner)
{
	return owner < v->nr_vars && range_hole_of(v, &v->vars[owner].type).nr;
}

/* How wide a gap must be for being a part. */
static uint64_t least_width(const struct var_enumerator *e, uint32_t nr)
{
	for (uint64_t least = 1;; least = least < WIDE ? WIDE : 2 * least) {
		struct gap gap = {.next = 1};
		size_t n = 0;
		while (next_gap(e, nr, 0, &gap))
			n += gap.end - gap.from >= least;
		if (n <= (least == 1 ? FEW_GAPS : RANGE_HOLE_GAPS))
			return least;
	}
}

/* The numbers from @from to @end, between two gaps that are parts. */
static struct range_hole_part between(uint64_t from, uint64_t end,
				      bool has_gaps, uint64_t *bits_left)
{
	struct range_hole_part part = {.from = from, .kind = RANGE_NAMED};
	if (has_gaps && end - from <= *bits_left) {
		part.kind = RANGE_SOME;
		*bits_left -= end - from;
	}
	return part;
}

size_t range_hole_parts(const struct variables *v, const struct var_type *t,
			struct range_hole_part *part)
{
	struct range_hole hole = range_hole_of(v, t);
	uint32_t nr_names = t->nr_enumerators;
	struct gap gap = {.next = 1};
	uint64_t from = 0, left = RANGE_HOLE_BITS;
	bool has_gaps = false;
	size_t nr = 0;
	if (!hole.nr)
		return 0;
	const struct var_enumerator *e = v->enumerators + t->first_enumerator;
	uint64_t least = least_width(e, nr_names);
	while (next_gap(e, nr_names, hole.first, &gap)) {
		if (gap.end - gap.from < least) {
			has_gaps = true;
			continue;
		}
		if (gap.from > from)
			part[nr++] = between(from, gap.from, has_gaps, &left);
		part[nr++] = (struct range_hole_part){gap.from, RANGE_UNNAMED};
		from = gap.end;
		has_gaps = false;
	}
	if (hole.nr > from)
		part[nr++] = between(from, hole.nr, has_gaps, &left);
	return nr;
}

void range_hole_names(const struct variables *v, const struct var_type *t,
		      uint64_t from, uint64_t end, uint8_t *bits)
{
	int64_t first = range_hole_of(v, t).first;
	memset(bits, 0, (end - from + 7) / 8);
	for (uint32_t i = 0; i < t->nr_enumerators; i++) {
		int64_t value = v->enumerators[t->first_enumerator + i].value;
		uint64_t in = (uint64_t)value - (uint64_t)first;
		if (in >= from && in < end)
			bits[(in - from) / 8] |=
				(uint8_t)(1 << (in - from) % 8);
	}
}

bool range_hole_has(const struct variables *v, const struct var_type *t,
		    uint64_t in)
{
	struct range_hole hole = range_hole_of(v, t);
	for (uint32_t i = 0; i < t->nr_enumerators && in < hole.nr; i++) {
		int64_t value = v->enumerators[t->first_enumerator + i].value;
		if (in == (uint64_t)value - (uint64_t)hole.first)
			return false;
	}
	return in < hole.nr;
}

unsigned range_hole_price(const struct variables *v, uint32_t owner)
{
	struct range_hole_part part[RANGE_HOLE_PARTS];
	if (!range_has_hole(v, owner))
		return 0;
	return range_hole_parts(v, &v->vars[owner].type, part) > 3 ? 3 : 1;
}

size_t range_hole_bytes(const struct variables *v, uint32_t owner)
{
	struct range_hole_part part[RANGE_HOLE_PARTS];
	size_t nr = 0, bytes = 160;
	if (!range_has_hole(v, owner))
		return 0;
	const struct var_type *t = &v->vars[owner].type;
	nr = range_hole_parts(v, t, part);
	if (nr == 1 && part[0].kind == RANGE_UNNAMED)
		return bytes;
	/* Of each a comparison, a constant, and what is done then. */
	for (size_t i = 0; i < nr; i++) {
		uint64_t end =
			i + 1 < nr ? part[i + 1].from : range_hole_of(v, t).nr;
		bytes += 32;
		if (part[i].kind == RANGE_SOME)
			bytes += 40 + (end - part[i].from) / 8;
	}
	return bytes;
}

struct range_cell range_hole_empty(const struct variables *v,
				   const struct var_type *t)
{
	struct range_hole hole = range_hole_of(v, t);
	return (struct range_cell){.smallest = hole.nr,
				   .largest = 0 - (uint64_t)hole.first};
}

bool range_hole_read(const struct range_cell *cell, const struct variables *v,
		     const struct var_type *t, int64_t *ret)
{
	struct range_hole hole = range_hole_of(v, t);
	uint64_t in = __atomic_load_n(&cell->smallest, __ATOMIC_RELAXED);
	*ret = (int64_t)((uint64_t)hole.first + in);
	return in < hole.nr;
}
