/* Numbers and names as people read them; lines cut, wrapped and cleaned. */
#include "t/unit/tap.h"

#include <math.h>
#include <stdlib.h>

#include "reports/line.h"
#include "reports/names.h"
#include "reports/text-frames.h"
#include "reports/units.h"

/* Also of what a damaged trace can add up to. */
static void whole_numbers(void)
{
	check(units_whole(-1e300) == 0);
	check(units_whole(0.4) == 0);
	check(units_whole(0.5) == 1);
	check(units_whole(2.5e9) == 2500000000);
	check(units_whole(1.7e19) == 17000000000000000000u);
	check(units_whole(2.2e19) == UINT64_MAX);
	check(units_whole(INFINITY) == UINT64_MAX);
	check(units_whole(NAN) == UINT64_MAX);
}

static void units(void)
{
	char b[UNITS_MAX];
	check_str(units_bytes(0, b), "0 B");
	check_str(units_bytes(999, b), "999 B");
	check_str(units_bytes(1000, b), "0.98 KiB");
	check_str(units_bytes(1536, b), "1.5 KiB");
	check_str(units_bytes(8192, b), "8 KiB");
	check_str(units_bytes(1023 * 1024, b), "1 MiB");
	check_str(units_bytes(285212672, b), "272 MiB");
	check_str(units_bytes(UINT64_MAX, b), "16 EiB");
	check_str(units_byte_seconds(0, true, b), "0 B*s");
	check_str(units_byte_seconds(3.7 * (1 << 30), false, b),
		  "3.7 GiB\u00b7s");
	check_str(units_byte_seconds(3.4e38, true, b), "2.88e+17 ZiB*s");
	check_str(units_duration(0, b), "0 ns");
	check_str(units_duration(999, b), "999 ns");
	check_str(units_duration(1234, b), "1.23 us");
	check_str(units_duration(999600, b), "1 ms");
	check_str(units_duration(58100 * NSEC_PER_MSEC, b), "58.1 s");
	check_str(units_duration(119 * NSEC_PER_SEC, b), "119 s");
	check_str(units_duration(120 * NSEC_PER_SEC, b), "2 min");
	check_str(units_duration(725 * NSEC_PER_SEC, b), "12 min 5 s");
	check_str(units_duration(3 * 3600 * NSEC_PER_SEC, b), "3 h");
	check_str(units_duration(100000 * NSEC_PER_SEC, b), "27 h 46 min");
	check_str(units_duration(200000 * NSEC_PER_SEC, b), "2 d 7 h");
	check_str(units_duration(UINT64_MAX, b), "213503 d 23 h");
	check_str(units_percent(0, b), "0 %");
	check_str(units_percent(48109966, b), "4.81 %");
	check_str(units_percent(100000000, b), "10 %");
	check_str(units_percent(-5000000, b), "-0.5 %");
	check_str(units_percent(-5, b), "0 %");
	check_str(units_percent(12345000000, b), "1234 %");
	check_str(units_count(0, b), "0");
	check_str(units_count(9999, b), "9999");
	check_str(units_count(10000, b), "10 000");
	check_str(units_count(UINT64_MAX, b), "18 446 744 073 709 551 615");
}

static const char *function(const char *name, size_t max, char *buf)
{
	return names_function(&(struct trace_frame){.function = name,
						    .file = "",
						    .module = ""},
			      max, buf);
}

static const char *place(const char *file, uint32_t line, char *buf)
{
	return names_place(&(struct trace_frame){.function = "f",
						 .file = file,
						 .line = line,
						 .module = "/lib/libc.so.6"},
			   buf);
}

static void names(void)
{
	char b[NAMES_MAX];
	struct trace_frame f = {.function = "",
				.file = "",
				.module = "/usr/lib/libx.so.1",
				.offset = 0x1234};
	check_str(names_function(&f, 80, b), "libx.so.1+0x1234");
	f.module = "";
	check_str(names_function(&f, 80, b), "0x1234");
	f.offset = 0;
	check_str(names_function(&f, 80, b), "?");
	check_str(function("main", 80, b), "main");
	check_str(function("std::vector<int>::at(int)", 80, b),
		  "std::vector<int>::at(int)");
	check_str(function("std::map<int, std::vector<X> >::at(int)", 20, b),
		  "std::map<...>::at(int)");
	check_str(function("X<a>& operator<< <X<a> >(X<a>&)", 9, b),
		  "X<...>& operator<< <...>(X<...>&)");
	check_str(function("A<1>::operator->() const", 9, b),
		  "A<...>::operator->() const");
	check_str(function("<a as b>::c", 3, b), "<...>::c");
	char deep[2000];
	memset(deep, '<', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	check_str(function(deep, 10, b), "<...>");
	memset(deep, 'x', sizeof(deep) - 1);
	check(strlen(function(deep, 10, b)) < NAMES_MAX);

	check_str(place("/a/b/src/cache.c", 7, b), "src/cache.c:7");
	check_str(place("cache.c", 7, b), "cache.c:7");
	check_str(place("src/cache.c", 7, b), "src/cache.c:7");
	check_str(place("./cache.c", 7, b), "cache.c:7");
	check_str(place("../../cache.c", 7, b), "cache.c:7");
	check_str(place("/cache.c", 0, b), "cache.c");
	check_str(place("/", 1, b), "/:1");
	check_str(place("", 0, b), "[libc.so.6]");

	struct trace_frame stack[] = {{.function = "f"},
				      {.function = "clone3"},
				      {.function = "start_thread"},
				      {.function = "clone3"}};
	check_int(names_worth_showing(stack, 4), 1);
	check_int(names_worth_showing(stack, 2), 1);
	check_int(names_worth_showing(stack, 1), 1);
	check_int(names_worth_showing(stack + 1, 3), 3);
	check_int(names_worth_showing(NULL, 0), 0);
	/* A stripped program: its _start has no name. */
	struct trace_frame stripped[] = {{.function = ""},
					 {.function = "__libc_start_call_main"},
					 {.function = "__libc_start_main_impl"},
					 {.function = ""}};
	check_int(names_worth_showing(stripped, 4), 1);
	check_int(names_worth_showing(stripped + 1, 3), 3);

	check_str(names_syscall(0, b), "read");
	check_str(names_syscall(1, b), "write");
	check_str(names_syscall(202, b), "futex");
	check_str(names_syscall(9999, b), "syscall 9999");
	check_str(names_syscall(-7, b), "syscall -7");
	check_str(names_exit(0, b), "exited with status 0");
	check_str(names_exit(7 << 8, b), "exited with status 7");
	check_str(names_exit(15, b), "killed by SIGTERM");
	check_str(names_exit(11 | 0x80, b), "killed by SIGSEGV (core dumped)");
	check_str(names_exit(40, b), "killed by signal 40");
	check_str(names_exit(-1, b), "ended");
}

static char *written;
static size_t written_size;
static FILE *out; /* into written */

/* TAP is made of lines; what is compared here has several. */
static void check_written(const char *want)
{
	fclose(out);
	if (check_msg(!strcmp(written, want), "lines are as wanted"))
		return;
	for (const char *p = written; *p; p += strcspn(p, "\n") + 1)
		printf("# got  %.*s\n", (int)strcspn(p, "\n"), p);
}

static struct page page(unsigned width, bool color)
{
	free(written);
	written = NULL;
	out = open_memstream(&written, &written_size);
	return (struct page){
		.out = out,
		.width = width,
		.color = color,
	};
}

static void lines(void)
{
	struct line l;
	struct page p = page(10, false);
	line_begin(&l, &p, 0, "ab", INK_BOLD, 4);
	line_add(&l, INK_NONE, "123456");
	line_end(&l);
	line_begin(&l, &p, 0, "", INK_NONE, 4);
	line_add(&l, INK_NONE, "12345");
	line_add(&l, INK_NONE, "67");
	line_add(&l, INK_NONE, "never seen");
	line_end(&l);
	check_written("ab  123456\n    12345\u2026\n");

	p = page(12, false);
	line_begin(&l, &p, 0, "a", INK_NONE, 2);
	line_words(&l, INK_NONE, "one two three  four");
	line_end(&l);
	line_begin(&l, &p, 0, "", INK_NONE, 0);
	line_item(&l, INK_NONE, ", ", "first");
	line_item(&l, INK_NONE, ", ", "second");
	line_item(&l, INK_NONE, ", ", "3rd");
	line_end(&l);
	check_written("a one two\n  three\n  four\nfirst,\nsecond, 3rd\n");

	/* Hostile: escapes, C1 controls, a half character, right-to-left. */
	p = page(0, false);
	line_begin(&l, &p, 0, "", INK_NONE, 0);
	line_add(&l, INK_NONE,
		 "a\033[1m\xc2\x9b\xe2\x80\xae\xff\xe2\x82"
		 "\xc3\xa9\xf0\x9f\x98\x80\n");
	line_end(&l);
	check_written("a?[1m?????\u00e9\U0001f600?\n");
	check_int(line_columns("\u00e9\U0001f600\033"), 3);

	p = page(8, true);
	line_begin(&l, &p, 0, "k", INK_BOLD, 2);
	line_words(&l, INK_BAD, "red red red");
	line_end(&l);
	check_written("\033[1mk\033[0m \033[31mred\033[0m\n"
		      "  \033[31mred\033[0m\n  \033[31mred\033[0m\n");
	free(written);
	written = NULL;
}

/* A very long name stands alone: the others' places stay beside them. */
static void frames(void)
{
	static const char tall[] = "a_function_whose_name_goes_on_and_on_until_"
				   "nobody_reads_it_any_more";
	const struct trace_frame f[] = {
		{.function = "parse", .file = "a.c", .line = 1, .module = ""},
		{.function = tall, .file = "b.c", .line = 2, .module = ""},
		{.function = "main", .file = "c.c", .line = 3, .module = ""},
	};
	const struct frames_place at = {.label = "from", .col = 5};
	struct page p = page(0, false);
	frames_print(&p, &at, f, 3, NULL);
	char want[200];
	snprintf(want, sizeof(want),
		 "from parse  a.c:1\n     %s  b.c:2\n     main   c.c:3\n",
		 tall);
	check_written(want);
	free(written);
	written = NULL;
}

int main(void)
{
	whole_numbers();
	units();
	names();
	lines();
	frames();
	return tap_done();
}
