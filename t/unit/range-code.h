/* range-code.h - code given as bytes, and what range sensors find in it; in
 * tests. */
#ifndef SMCO_T_RANGE_CODE_H
#define SMCO_T_RANGE_CODE_H

#include "supervisor/probe/range-window.h"
#include "t/unit/tap.h"

#define TEXT  0x1000
#define TABLE 0x3000

static uint8_t text[256], table[256];
static struct range_image img;
static struct range_code code;
static uint8_t behind = 0x50; /* the code there is push %rax */

static void load(const void *bytes, size_t len, const void *words, size_t n)
{
	uint64_t start = TEXT;
	range_code_deinit(&code);
	range_image_deinit(&img);
	memset(text, behind, sizeof(text));
	memcpy(text, bytes, len);
	memset(table, 0xff, sizeof(table));
	if (n)
		memcpy(table, words, n);
	img.segment[0] = (struct range_segment){.vaddr = TEXT,
						.len = sizeof(text),
						.bytes = text,
						.exec = true};
	img.segment[1] = (struct range_segment){
		.vaddr = TABLE, .len = sizeof(table), .bytes = table};
	img.nr_segments = 2;
	range_image_scan(&img, &start, 1, NULL);
	struct range_chunk chunk = {TEXT, TEXT + len};
	range_code_init(&code, &img, &chunk, 1, NULL);
}
#define LOAD(...)                                                              \
	load((const uint8_t[]){__VA_ARGS__},                                   \
	     sizeof((const uint8_t[]){__VA_ARGS__}), NULL, 0)

static struct variable var;
static uint8_t var_flags;
static struct range_sites sites;
static struct range_windows windows;

#define MOST_PLACES 3

/* With a variable that is in @of, @nr of them. */
static void find_places(struct var_type type, const struct var_place *of,
			uint32_t nr)
{
	static struct var_op ops[1];
	static struct var_function function = {.entry = TEXT};
	static struct var_place place[MOST_PLACES];
	struct variables v = {.vars = &var,
			      .nr_vars = 1,
			      .places = place,
			      .nr_places = nr,
			      .ops = ops,
			      .functions = &function,
			      .nr_functions = 1};
	struct range_index ix;
	var = (struct variable){
		.name = "v", .type = type, .flags = var_flags, .nr_places = nr};
	memcpy(place, of, nr * sizeof(*of));
	range_sites_deinit(&sites);
	range_windows_deinit(&windows);
	range_index_init(&ix, &v, NULL);
	range_sites_find(&sites, &code, &img, &v, &ix, 0, NULL);
	range_windows_find(&windows, &code, &img, &v, &sites, NULL);
	range_index_deinit(&ix);
}

static inline void find_two(struct var_type type, struct var_place p,
			    struct var_place other, uint32_t nr)
{
	find_places(type, (const struct var_place[]){p, other}, nr);
}

static inline void find(struct var_type type, struct var_place p)
{
	find_two(type, p, p, 1);
}
static const struct var_type int4 = {.width = 4, .is_signed = true};

#define HERE .lo = TEXT, .hi = TEXT + sizeof(text)

static void forget_code(void)
{
	range_code_deinit(&code);
	range_image_deinit(&img);
	range_sites_deinit(&sites);
	range_windows_deinit(&windows);
}

#endif
