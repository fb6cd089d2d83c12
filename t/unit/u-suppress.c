/* Suppressions as LeakSanitizer reads them. */
#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/suppress.h"

static void patterns(void)
{
	static const struct {
		const char *pattern, *text;
		bool want;
	} cases[] = {
		{"main", "main", true},
		{"main", "my_main_loop", true},
		{"main", "mai", false},
		{"main", "", false},
		{"^main", "main_loop", true},
		{"^main", "my_main", false},
		{"main$", "my_main", true},
		{"main$", "main_loop", false},
		{"^main$", "main", true},
		{"^main$", "main2", false},
		{"a*c", "xxabbbcyy", true},
		{"^a*c$", "abcbc", true},
		{"^a*c$", "abcb", false},
		{"*", "", true},
		{"*", "x", true},
		{"^*$", "x", true},
		{"a**b", "ab", true},
		{"a*b*c", "a1b2c", true},
		{"a*b*c", "a1c2b", false},
		{"aab", "aaab", true},
		{"^a*ab$", "aaaab", true},
		{"lib*.so$", "/usr/lib/libfoo.so", true},
		{"lib*.so$", "/usr/lib/libfoo.so.1", false},
		{"*x", "aaax", true},
		{"x*", "aaa", false},
		{"^$", "", true},
		{"^$", "x", false},
		{"^", "x", false},
		{"$", "x", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_msg(suppress_pattern_matches(cases[i].pattern,
						   cases[i].text) ==
				  cases[i].want,
			  "%s %s %s", cases[i].pattern,
			  cases[i].want ? "matches" : "does not match",
			  cases[i].text);
	/* Hostile: must end. */
	char text[60001];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	check(!suppress_pattern_matches("a*a*a*a*a*a*a*b", text));
	check(suppress_pattern_matches("a*a*a*a*a*a*a*$", text));
}

#define PARSE(text, ret, err)                                                  \
	suppress_parse("s.txt", text, sizeof(text) - 1, ret, err)

static void files(void)
{
	struct suppress *s = NULL;
	struct smco_err err = {0};
	struct trace_frame f[2] = {
		{"grow", "src/buffer.c", 3, "/usr/bin/server", "", 0, false, 0},
		{"main", "src/main.c", 9, "/usr/bin/server", "", 0, false, 0},
	};
	check_int(PARSE("# comment\n\n  leak:nowhere  \r\nleak:^main$\n", &s,
			&err),
		  0);
	check(suppress_matches(s, f, 2));
	check(!suppress_matches(s, f, 1));
	check(!suppress_matches(s, f, 0));
	suppress_free(s);
	check_int(PARSE("leak:buffer.c$", &s, &err), 0);
	check(suppress_matches(s, f, 1));
	suppress_free(s);
	check_int(PARSE("leak:bin/server", &s, &err), 0);
	check(suppress_matches(s, f, 1));
	suppress_free(s);
	check_int(PARSE("", &s, &err), 0);
	check(!suppress_matches(s, f, 2));
	suppress_free(s);
	check_int(PARSE("leak:a\nrace:b\n", &s, &err), SMCO_FORMAT);
	check_str(err.msg, "s.txt:2: 'race:b' is no suppression (as "
			   "leak:PATTERN)");
	check_int(PARSE("leak:\n", &s, &err), SMCO_FORMAT);
	check_int(PARSE("leak:a\0b\n", &s, &err), SMCO_FORMAT);
	check_int(suppress_load("/nonexistent/x", &s, &err), SMCO_NOTFOUND);
	check_int(suppress_load("/tmp", &s, &err), SMCO_SYS);
}

int main(void)
{
	patterns();
	files();
	return tap_done();
}
