/* Which variables are looked at now and then, and how values are taken in. */
#include <stdlib.h>

#include "supervisor/monitor/range-private.h"
#include "tap.h"

static struct var_place places[16];
static struct variable vars[16];
static size_t nr;

/* A variable in memory for good. */
static struct variable *add(uint64_t addr, struct var_type type)
{
	places[nr] = (struct var_place){
		.hi = UINT64_MAX, .kind = VAR_ADDR, .offset = (int64_t)addr};
	vars[nr] = (struct variable){
		.type = type,
		.first_place = (uint32_t)nr,
		.nr_places = 1,
		.flags = VAR_STATIC,
	};
	return &vars[nr++];
}

static void test_find(void)
{
	struct variables v = {.vars = vars, .places = places};
	struct range_unit u = {.vars = &v};
	add(0x3000, (struct var_type){.width = 4});
	add(0x1000, (struct var_type){.width = 8});
	add(0x2000,
	    (struct var_type){.width = 2,
			      .nr_dims = 2,
			      .dim = (struct var_dim[]){{3, 40}, {5, 4}}});
	/* Those that are not: constant, on the stack, of a union. */
	add(0x10, (struct var_type){.width = 4, .is_const = true});
	add(0x20, (struct var_type){.width = 4})->flags = 0;
	add(0x30, (struct var_type){.width = 4})->flags |= VAR_IN_UNION;
	/* Of unknown length, too large, with elements in each other. */
	add(0x40, (struct var_type){.width = 4,
				    .nr_dims = 1,
				    .dim = &(struct var_dim){0, 4}});
	add(0x50, (struct var_type){.width = 4,
				    .nr_dims = 1,
				    .dim = &(struct var_dim){
					    RANGE_POLL_MOST / 4 + 1, 4}});
	add(0x60, (struct var_type){.width = 1,
				    .nr_dims = 3,
				    .dim = (struct var_dim[]){{1 << 20, 1},
							      {1 << 20, 1},
							      {1 << 20, 1}}});
	add(0x70, (struct var_type){
			  .width = 4,
			  .nr_dims = 1,
			  .dim = &(struct var_dim){UINT64_MAX, UINT64_MAX}});
	v.nr_vars = nr;
	check_int(range_polls_find(&u), 0);
	if (check_int(u.nr_polls, 3)) {
		check_int(u.polls[0].var, 1);
		check_int(u.polls[0].len, 8);
		check_int(u.polls[1].var, 2);
		check_int(u.polls[1].len, 2 * 40 + 4 * 4 + 2);
		check_int(u.polls[2].var, 0);
		check_int(u.polls[2].addr, 0x3000);
	}
	check_int(u.nr_kept, 3);
	free(u.kept);
	free(u.polls);
	free(u.is_polled);
}

static void test_values(void)
{
	struct range_value v = {0};
	const struct var_type is_signed = {.width = 4, .is_signed = true};
	const struct var_type is_unsigned = {.width = 8};
	range_value_add(&v, &is_signed, 5, 5, RANGE_POLLED);
	check(v.is_new && v.smallest == 5 && v.largest == 5);
	v.is_new = false;
	range_value_add(&v, &is_signed, 5, 5, RANGE_POLLED);
	check(!v.is_new);
	range_value_add(&v, &is_signed, -3, 4, RANGE_POLLED);
	check(v.is_new && v.smallest == -3 && v.largest == 5);
	v.is_new = false;
	range_value_add(&v, &is_signed, 0, 0, RANGE_SENSED);
	check(v.is_new && v.flags == (RANGE_POLLED | RANGE_SENSED));
	v = (struct range_value){0};
	range_value_add(&v, &is_unsigned, 7, -1, RANGE_SENSED);
	range_value_add(&v, &is_unsigned, INT64_MIN, INT64_MIN, RANGE_SENSED);
	check(v.smallest == 7 && v.largest == -1);
}

/* One after the other, as plainly as can be. */
static void expect(const struct var_type *t, unsigned dim, const uint8_t *bytes,
		   struct range_value *ret)
{
	if (dim == t->nr_dims) {
		int64_t value = range_value_at(t, bytes);
		range_value_add(ret, t, value, value, RANGE_POLLED);
		return;
	}
	for (uint64_t i = 0; i < t->dim[dim].count; i++)
		expect(t, dim + 1, bytes + i * t->dim[dim].stride, ret);
}

static uint32_t seed = 1;

static uint8_t any_byte(void)
{
	seed = seed * 1103515245 + 12345;
	return (uint8_t)(seed >> 16);
}

/* Every width, sign and bit-field of arrays with holes, of random bytes in
 * memory that ends where the last element does. */
static void test_elements(void)
{
	const struct var_dim dims[][2] = {
		{{1, 8}, {1, 8}},    {{3, 72}, {7, 8}}, {{2, 200}, {13, 15}},
		{{300, 16}, {2, 8}}, {{1, 99}, {5, 9}},
	};
	unsigned nr_wrong = 0, nr_tried = 0;
	for (unsigned i = 0; i < 4u * 2 * 3 * 5 * 8; i++) {
		struct var_type t = {.width = (uint8_t)(1 << i % 4),
				     .is_signed = i / 4 % 2,
				     .nr_dims = (uint8_t)(i / 8 % 3),
				     .dim = dims[i / 24 % 5]};
		unsigned bits = 8u * t.width;
		if (i / 120 % 8) {
			t.bit_size = (uint8_t)(1 + any_byte() % bits);
			t.bit_offset =
				(uint8_t)(any_byte() % (bits - t.bit_size + 1));
		}
		uint64_t len = t.width;
		for (unsigned k = 0; k < t.nr_dims; k++)
			len += (t.dim[k].count - 1) * t.dim[k].stride;
		uint8_t *bytes = malloc(len);
		for (uint64_t k = 0; bytes && k < len; k++)
			bytes[k] = any_byte();
		struct range_value v = {0};
		int64_t smallest = 0, largest = 0;
		expect(&t, 0, bytes, &v);
		range_elements(&t, bytes, &smallest, &largest);
		nr_tried++;
		nr_wrong += smallest != v.smallest || largest != v.largest;
		free(bytes);
	}
	check_int(nr_tried, 960);
	check_int(nr_wrong, 0);
}

int main(void)
{
	test_find();
	test_values();
	test_elements();
	return tap_done();
}
