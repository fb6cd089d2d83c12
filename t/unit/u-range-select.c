/* Which variables globs choose, and what is said when they choose none. */
#include <stdlib.h>

#include "supervisor/monitor/range-select.h"
#include "tap.h"

static const struct variable variables[] = {
	{.name = "count",
	 .qualified = "count",
	 .scope = "",
	 .file = "/src/x/main.c",
	 .flags = VAR_GLOBAL},
	{.name = "i",
	 .qualified = "sort::i",
	 .scope = "sort",
	 .file = "/src/x/sort.c"},
	{.name = "t.len",
	 .qualified = "sort::t.len",
	 .scope = "sort",
	 .file = "/src/x/sort.c"},
	{.name = "n",
	 .qualified = "ns::f(int)::n",
	 .scope = "ns::f(int)",
	 .file = "/src/y/f.cc"},
	{.name = "k",
	 .qualified = "(anonymous namespace)::g(long)::k",
	 .scope = "(anonymous namespace)::g(long)",
	 .file = "/src/y/f.cc"},
	{.name = "max",
	 .qualified = "ns::max",
	 .scope = "ns",
	 .file = "/src/y/f.cc",
	 .flags = VAR_GLOBAL},
};

static struct range_globs globs(const char *a, const char *b)
{
	struct range_globs g = {.nr = (a != NULL) + (b != NULL)};
	g.glob[0] = a;
	g.glob[1] = b;
	return g;
}

/* Which of them, as a string of their indices. */
static void chosen(struct range_select s, const char *want)
{
	char got[16] = "";
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		if (range_selected(&s, &variables[i]))
			snprintf(got + strlen(got), 3, "%zu", i);
	check_str(got, want);
}
#define VARS(a, b)	  .vars = globs(a, b)
#define FUNCTIONS(a, b)	  .functions = globs(a, b)
#define FILES(a, b)	  .files = globs(a, b)
#define CHOSEN(want, ...) chosen((struct range_select){__VA_ARGS__}, want)

static void explained(struct range_select s, const char *want)
{
	struct range_nearest *n = calloc(1, sizeof(*n));
	struct smco_err err = {0};
	n->select = &s;
	for (size_t i = 0; i < ARRAY_SIZE(variables); i++)
		check(!range_nearest_see(n, &variables[i]));
	check_int(range_nearest_explain(n, "/usr/bin/prog", &err), SMCO_FORMAT);
	check_str(err.msg, want);
	free(n);
}
#define EXPLAINED(want, ...) explained((struct range_select){__VA_ARGS__}, want)

static struct variable array(const char *name, const char *qualified,
			     uint64_t count, uint8_t flags)
{
	static const struct var_dim dims[] = {
		{0, 4}, {1, 4}, {2, 4}, {3, 4}, {4, 4}};
	return (struct variable){
		.name = name,
		.qualified = qualified,
		.type = {.nr_dims = 1, .dim = &dims[count]},
		.flags = flags,
	};
}

/* "tabel" of arrays, and of others whose elements nobody can have. */
static void test_elements(void)
{
	const struct range_select s = {.elements = globs("tabel", NULL)};
	const struct variable arrays[] = {
		array("tabl[0]", "f::tabl[0]", 3, VAR_ELEMENT),
		array("tabe[]", "f::tabe[]", 0, 0),
		array("tabell[]", "f::tabell[]", 3, VAR_IN_UNION),
		{.name = "label", .qualified = "label"},
		array("table[].len", "f::table[].len", 3, 0),
		array("table[].flag", "f::table[].flag", 3, 0),
		array("other[]", "f::other[]", 2, 0),
		array("cable[][]", "f::cable[][]", 4, 0),
	};
	struct range_nearest n = {.select = &s};
	struct smco_err err = {0};
	check_int(range_nearest_explain_elements(&n, &err), SMCO_FORMAT);
	check_str(err.msg,
		  "--elements 'tabel': no array of integers has this name and "
		  "a length that is known");
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		range_nearest_see_array(&n, &arrays[i]);
	check_int(range_nearest_explain_elements(&n, &err), SMCO_FORMAT);
	check_str(err.msg,
		  "--elements 'tabel': no array of integers has this name and "
		  "a length that is known; nearest: table, cable");
	const struct range_select in = {.elements = globs("g::t", NULL)};
	n = (struct range_nearest){.select = &in};
	range_nearest_see_array(&n, &arrays[4]);
	range_nearest_explain_elements(&n, &err);
	check_str(err.msg,
		  "--elements 'g::t': no array of integers has this name and a "
		  "length that is known; nearest: table");
	const struct range_select long_in = {.elements =
						     globs("f::tabel", NULL)};
	n = (struct range_nearest){.select = &long_in};
	range_nearest_see_array(&n, &arrays[4]);
	range_nearest_explain_elements(&n, &err);
	check_str(err.msg,
		  "--elements 'f::tabel': no array of integers has this name "
		  "and a length that is known; nearest: f::table");
}

int main(void)
{
	check(!range_select_any(&(struct range_select){0}));
	check(range_select_any(&(struct range_select){FILES("x", NULL)}));
	CHOSEN("012345", .vars = {.nr = 0});
	CHOSEN("1", VARS("i", NULL));
	CHOSEN("1", VARS("sort::i", NULL));
	CHOSEN("12", VARS("sort::*", NULL));
	CHOSEN("012", VARS("c*t", "sort::*"));
	CHOSEN("", VARS("ort::i", NULL));
	CHOSEN("12", FUNCTIONS("s?rt", NULL));
	CHOSEN("3", FUNCTIONS("ns::f", NULL));
	CHOSEN("3", FUNCTIONS("ns::f(int)", NULL));
	CHOSEN("4", FUNCTIONS("(anonymous namespace)::g", NULL));
	/* What is in a namespace is in no function. */
	CHOSEN("", FUNCTIONS("ns", NULL));
	CHOSEN("12", FILES("sort.c", NULL));
	CHOSEN("345", FILES("y/*", NULL));
	CHOSEN("345", FILES("/src/y/f.cc", NULL));
	CHOSEN("", FILES("ort.c", NULL));
	CHOSEN("2", VARS("*len", NULL), FILES("*.c", NULL));
	CHOSEN("", VARS("count", NULL), FUNCTIONS("sort", NULL));

	static const struct {
		const char *glob, *path;
		bool want;
	} libraries[] = {
		{NULL, "/home/u/libx.so.1", true},
		{NULL, "/usr/local/lib/libx.so", true},
		{NULL, "/usr/lib/x86_64-linux-gnu/libz.so.1", false},
		{NULL, "/lib/libc.so.6", false},
		{NULL, "[vdso]", false},
		{"libz.so*", "/usr/lib/x86_64-linux-gnu/libz.so.1", true},
		{"gnu/libz.so.1", "/usr/lib/x86_64-linux/gnu/libz.so.1", true},
		{"libz.so*", "/home/u/libx.so.1", false},
		{"*", "/usr/lib64/ld-linux-x86-64.so.2", false},
		{"none", "/home/u/libx.so.1", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		struct range_select s = {.vars = {.nr = 0}};
		s.libraries.glob[0] = libraries[i].glob;
		s.libraries.nr = libraries[i].glob != NULL;
		check_msg(range_library_selected(&s, libraries[i].path) ==
				  libraries[i].want,
			  "%s", libraries[i].path);
	}

	EXPLAINED("--var 'cuont': prog has no such variable with integers; "
		  "nearest: count, n",
		  VARS("cuont", NULL));
	EXPLAINED("--function 'srot': prog has no such function with "
		  "integers; nearest: sort, ns::f",
		  FUNCTIONS("srot", NULL));
	EXPLAINED("--file 'sart.c': prog has no such file with integers; "
		  "nearest: sort.c, main.c",
		  FILES("sart.c", NULL));
	EXPLAINED("--var, --function and --file together match no integer "
		  "variable of prog",
		  VARS("count", NULL), FUNCTIONS("sort", NULL));
	test_elements();
	return tap_done();
}
