/* What is left of names: the same from build to build. */
#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/diff-run.h"

static struct diff_pool pool;

static void functions(void)
{
	static const char *const same[][2] = {
		{"parse", "parse"},
		{"parse.constprop.0", "parse"},
		{"parse.isra.0.constprop.3", "parse"},
		{"parse.part.1.cold", "parse"},
		{"parse.lto_priv.12", "parse"},
		{"parse.llvm.8812331", "parse"},
		{"counter.2", "counter"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"puts@plt", "puts"},
		{"Tree::grow(int) [clone .isra.0]", "Tree::grow(int)"},
		{"f(int) [clone .part.0] [clone .cold]", "f(int)"},
		{"core::fill::h0123456789abcdef", "core::fill"},
		/* and what must stay */
		{"printf_all(char const*, ...)",
		 "printf_all(char const*, ...)"},
		{"Vec::h0123", "Vec::h0123"},
		{"at[3]", "at[3]"},
		{".cold", ".cold"},
		{"a.b", "a.b"},
		{"", ""},
	};
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		check_str(diff_pool_function(&pool, same[i][0]), same[i][1]);
}

static void stems(void)
{
	check_str(diff_pool_stem(&pool, "std::vector<int>::push_back(int&&)"),
		  "std::vector<...>::push_back");
	check_str(diff_pool_stem(&pool, "(anonymous namespace)::go(long)"),
		  "(anonymous namespace)::go");
	check_str(diff_pool_stem(&pool, "Fn::operator()(int) const"),
		  "Fn::operator()");
	check_str(diff_pool_stem(&pool, "operator new(unsigned long)"),
		  "operator new");
	check_str(diff_pool_stem(&pool, "plain"), "plain");
}

static void paths(void)
{
	check_str(diff_pool_file(&pool, "/build/a-1.2/src/x.c"), "x.c");
	check_str(diff_pool_file(&pool, "x.c"), "x.c");
	check_str(diff_pool_module(&pool, "/lib/libz.so.1.2.13"), "libz.so");
	check_str(diff_pool_module(&pool, "/lib/libz.so"), "libz.so");
	check_str(diff_run_program(&pool, "/usr/bin/python3 -u x.py"),
		  "python3");
	check_str(diff_run_program(&pool, "'/opt/my tools/run me' x"),
		  "run me");
	check_str(diff_run_program(&pool, "a\\ b/c\\ d e"), "c d");
	check_str(diff_run_program(&pool, ""), "");
}

static void once(void)
{
	char text[] = "some text";
	const char *first = diff_pool_text(&pool, text);
	text[0] = 'S';
	check(diff_pool_text(&pool, "some text") == first);
	check(diff_pool_text(&pool, text) != first);
	check(diff_pool_text(&pool, "") == diff_pool_empty);
	check(diff_pool_textn(&pool, "some texts", 9) == first);
	for (int i = 0; i < 10000; i++) {
		char number[16];
		snprintf(number, sizeof(number), "%d", i);
		diff_pool_text(&pool, number);
	}
	check(diff_pool_text(&pool, "some text") == first);
	check(!pool.failed);
}

int main(void)
{
	functions();
	stems();
	paths();
	once();
	diff_pool_free(&pool);
	return tap_done();
}
