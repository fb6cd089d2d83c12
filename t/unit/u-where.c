/* The language of --where: what it accepts, what it says, what it finds. */
#include "t/unit/tap.h"

#include <stdlib.h>

#include "reports/where.h"

static const struct column columns[] = {
	{"size", KIND_BYTES, 0, ""},	{"length", KIND_TIME, 0, ""},
	{"error", KIND_TIME, 0, ""},	{"pid", KIND_COUNT, 0, ""},
	{"share", KIND_SHARE, 0, ""},	{"addr", KIND_ADDRESS, 0, ""},
	{"never", KIND_FLAG, 0, ""},	{"site", KIND_TEXT, 0, ""},
	{"nothing", KIND_COUNT, 0, ""}, {"other", KIND_TEXT, 0, ""},
};

static void get(const void *ctx, const void *item, size_t column,
		struct value *ret)
{
	(void)ctx;
	(void)item;
	switch (column) {
	case 0:
		return value_number(ret, 1536 << 10);
	case 1:
		return value_number(ret, 2500000000.0L);
	case 2:
		return value_number(ret, 5000000);
	case 3:
		return value_number(ret, UINT64_MAX);
	case 4:
		return value_number(ret, 105000000);
	case 5:
		return value_number(ret, 0x7f0000001000);
	case 6:
		return value_number(ret, 1);
	case 7:
		return value_text(ret, "parse \"x\" src/p.c:12 < main {");
	case 9:
		return value_text(ret, "abc");
	}
}

/* 1, 0, or -1 with the message in @msg. */
static int eval(const char *text, char msg[320])
{
	struct where *w = NULL;
	struct smco_err err = {0};
	int rc = where_parse(text, columns, ARRAY_SIZE(columns), &w, &err);
	snprintf(msg, 320, "%s", err.msg);
	if (rc)
		return rc == SMCO_FORMAT ? -1 : -2;
	bool yes = where_matches(w, get, NULL, NULL);
	where_free(w);
	return yes;
}

static void truths(void)
{
	static const char *const yes[] = {
		"size > 1M",
		"size>1M&&size<2M",
		"size == 1.5M",
		"size == 1536K",
		"size == 1572864",
		"size == 1.5mib",
		"length >= 2.5s",
		"length == 2500ms",
		"length == 2500000000ns",
		"length > 0",
		"length < 1m && length < 1h",
		"length > error",
		"pid == 18446744073709551615",
		"pid != 18446744073709551614",
		"pid > 0.5",
		"share == 10.5%",
		"share > 10%",
		"addr == 0x7f0000001000",
		"addr >= 0x7f0000000000 && addr < 0x7f0000002000",
		"never",
		"never == true",
		"!!never",
		"site ~ \"parse\"",
		"site ~ 'parse'",
		"site ~ \"^parse.*main\"",
		"site ~ 'src/(p|q)\\.c:[0-9]+'",
		"site ~ \"\\\"x\\\"\"",
		"site ~ '\\{$'",
		"site ~ '[{]'",
		"site !~ \"nothing\"",
		"other == 'abc'",
		"other != site",
		"other < 'abd' && other >= 'abc'",
		"size > 2M || never",
		"(size > 2M || never) && !(pid == 1)",
		"size > 2M && never || never",
		"never || never && size > 2M",
		"!size > 2M",
		"!(nothing == 0)",
		"\t never \n",
	};
	static const char *const no[] = {
		"size > 1.5M",
		"!never",
		"never == false",
		"(size > 2M || never) && pid == 1",
		"nothing == 0",
		"nothing != 0",
		"nothing != pid",
		"pid != nothing",
		"site ~ 'Parse'",
		"share >= 10.6%",
		"pid == 18446744073709551614",
	};
	char msg[320];
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
		if (!check_msg(eval(yes[i], msg) == 1, "%s", yes[i]))
			printf("# %s\n", msg);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		if (!check_msg(eval(no[i], msg) == 0, "not: %s", no[i]))
			printf("# %s\n", msg);
}

static void errors(void)
{
	static const struct {
		const char *text, *msg; /* what the message starts with */
	} wrong[] = {
		{"", "character 1: expected a column, not the end"},
		{"size",
		 "character 5: expected a comparison after size, not the"},
		{"size >", "character 7: expected a column, not the end"},
		{"sice > 1",
		 "character 1: there is no column 'sice' (size, len"},
		{"never && 5 > size", "character 10: there is no column '5' ("},
		{"size > 1X",
		 "character 8: size is a size (as 64K, 1.5M), '1X'"},
		{"size > 5s", "character 8: size is a size"},
		{"length > 5", "character 10: length is a time with its unit"},
		{"length > 5M5", "character 10: length is a time"},
		{"share > 10K", "character 9: share is a share (as 10%)"},
		{"pid > 1K", "character 7: pid is a number, '1K' is none"},
		{"pid > 0x", "character 7: pid is a number"},
		{"addr > 12K", "character 8: addr is an address"},
		{"never > 1", "character 9: never is true or false"},
		{"size > length",
		 "character 1: size and length are not of one"},
		{"size > 'x'", "character 1: size is no text"},
		{"site > 5",
		 "character 8: site is a text: compare it with one"},
		{"site ~ other", "character 1: ~ finds a \"pattern\""},
		{"size ~ '1'", "character 1: ~ finds a \"pattern\""},
		{"site ~ 'a", "character 8: the text has no end"},
		{"site ~ '('", "character 1: regular expression: Unmatched"},
		{"site ~ 'a{3}'", "character 1: counted repetitions"},
		{"site ~ '(a)\\1'", "character 1: back-references"},
		{"size = 5",
		 "character 6: expected a comparison after size, not "
		 "'='"},
		{"never & never", "character 7: expected && or ||, not '&'"},
		{"never never", "character 7: expected && or ||, not 'never'"},
		{"(never", "character 7: expected ')', not the end"},
		{"never)", "character 6: expected && or ||, not ')'"},
		{"never || ", "character 10: expected a column, not the end"},
		{"\x01", "character 1: expected a column, not '?'"},
	};
	char msg[320];
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		check_int(eval(wrong[i].text, msg), -1);
		if (!check_msg(
			    !strncmp(msg, wrong[i].msg, strlen(wrong[i].msg)),
			    "%s", wrong[i].msg))
			printf("# got %s\n", msg);
	}
}

/* @nr times @piece, then @end. */
static char *repeated(const char *piece, size_t nr, const char *end)
{
	size_t n = strlen(piece);
	char *text = malloc(n * nr + strlen(end) + 1);
	for (size_t i = 0; i < nr; i++)
		memcpy(text + i * n, piece, n);
	strcpy(text + n * nr, end);
	return text;
}

static void limits(void)
{
	static const struct {
		const char *piece;
		size_t nr;
		const char *end;
		int want;
	} cases[] = {
		{"(", 100000, "", -1},
		{"!", 100000, "never", -1},
		{"!", 60, "never", 1},
		{"!", WHERE_MAX_DEPTH, "never", -1},
		{"never || ", 100, "never", 1},
		{"never||", 200, "never", -1},
		{"never || ", 100000, "never", -1},
		{"site ~ '", 1, "", -1},
	};
	char msg[320];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text =
			repeated(cases[i].piece, cases[i].nr, cases[i].end);
		if (!check_int(eval(text, msg), cases[i].want))
			printf("# %zu %s: %s\n", cases[i].nr, cases[i].piece,
			       msg);
		free(text);
	}
	/* The library doubles what stands before a +. */
	char *groups = repeated("(", 30, "a");
	char *pluses = repeated(")+", 30, "'");
	char nested[200];
	snprintf(nested, sizeof(nested), "site ~ '%s%s", groups, pluses);
	check_int(eval(nested, msg), -1);
	check_str(msg, "character 1: too many repetitions in one another");
	check_int(eval("site ~ 'a++++++++++++++++++++++++++++++'", msg), -1);
	check_int(eval("site ~ '((p+)+a+)+r'", msg), 1);
	check_int(eval("site ~ '[^]+]+[+]'", msg), 0);
	check_int(eval("site ~ '[+'", msg), -1);
	free(groups);
	free(pluses);
	char *long_pattern = repeated("a", 300, "'");
	char *text = repeated("site ~ '", 1, long_pattern);
	check_int(eval(text, msg), -1);
	free(text);
	free(long_pattern);
}

int main(void)
{
	truths();
	errors();
	limits();
	return tap_done();
}
