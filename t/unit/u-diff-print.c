/*
 * A comparison as text, JSON and HTML. `u-diff-print DIR` writes the traces
 * that the shell test uses into DIR.
 */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "reports/diff-print.h"
#include "t/unit/diff-sample.h"
#include "t/unit/scratch.h"

#define EVIL "<script>\x1b[31m&\"'\xff"

static const struct sample_site v1_sites[] = {
	{.stack = "fill@src/cache.c:10 < serve@src/server.c:40 < "
		  "main@src/server.c:90",
	 .size = 1 << 20,
	 .naps = 4,
	 .nap_ms = 20000},
	{.stack = "load@src/config.c:7 < main@src/server.c:80",
	 .size = 4 << 20,
	 .naps = 1,
	 .nap_ms = 50000,
	 .error_ms = 100},
	{.stack = "parse@src/config.c:30 < main@src/server.c:81",
	 .size = 1 << 20,
	 .naps = 1,
	 .nap_ms = 9000,
	 .freed = true},
	{.stack = "keep@src/pool.c:3 < main@src/server.c:82",
	 .size = 2 << 20,
	 .naps = 2,
	 .nap_ms = 30000},
	{.stack = "hot@src/index.c:3 < main@src/server.c:83", .size = 1 << 20},
};
/* Four lines more at the head of server.c; a leak; the pool is gone. */
static const struct sample_site v2_sites[] = {
	{.stack = "fill@src/cache.c:10 < serve@src/server.c:44 < "
		  "main@src/server.c:94",
	 .size = 1 << 20,
	 .naps = 6,
	 .nap_ms = 20000},
	{.stack = "load@src/config.c:7 < main@src/server.c:84",
	 .size = 4 << 20,
	 .naps = 1,
	 .nap_ms = 50500,
	 .error_ms = 100},
	{.stack = "parse@src/config.c:30 < main@src/server.c:85",
	 .size = 1 << 20,
	 .naps = 1,
	 .nap_ms = 3000,
	 .freed = true},
	{.stack = "leak@src/log.c:12 < serve@src/server.c:47 < "
		  "main@src/server.c:94",
	 .size = 64 << 10,
	 .naps = 40,
	 .nap_ms = 25000},
	{.stack = "hot@src/index.c:3 < main@src/server.c:87", .size = 1 << 20},
};
static const struct sample_session v1 = {
	.instructions = 2000000, .site = v1_sites, .nr = ARRAY_SIZE(v1_sites)};
static const struct sample_session v2 = {.site = v2_sites,
					 .nr = ARRAY_SIZE(v2_sites),
					 .build = "b2",
					 .instructions = 3000000};
static const struct sample_session other = {
	.command = "./other", .site = v1_sites, .nr = 1};

static const char *path;
static struct diff d;
static struct diff_rules rules;

static void add(int side, const struct sample_session *s)
{
	sample_session_write(path, s);
	if (diff_add_run(&d, side, path, NULL))
		abort();
	d.side[side].run[d.side[side].nr_runs - 1].path =
		side ? "new.trace" : "base.trace";
}

static void compare(const char *rule)
{
	struct diff_config config = {.least_change = 0.1};
	check_int(diff_compare(&d, &config, NULL), 0);
	check_int(diff_rules_add(&rules, rule, NULL), 0);
	diff_rules_apply(&rules, &d);
}

static void clear(void)
{
	diff_rules_free(&rules);
	diff_deinit(&d);
}

enum form { TEXT, HTML, JSON };
static char *print(enum form form, unsigned width)
{
	char *text = NULL;
	size_t size;
	struct diff_style style = {
		.page = {open_memstream(&text, &size), width, false, false},
	};
	if (form == TEXT)
		diff_print_text(&d, &rules, &style);
	else if (form == HTML)
		diff_print_html(&d, &rules, &style);
	else
		check_int(diff_print_json(&d, &rules, style.page.out, NULL), 0);
	fclose(style.page.out);
	return text;
}

static void has(const char *text, const char *what)
{
	const char *line = what + strspn(what, "\n");
	if (!check_msg(strstr(text, what) != NULL, "there is: %.*s",
		       (int)strcspn(line, "\n"), line))
		printf("# in:\n%s\n", text);
}

static void text(void)
{
	add(DIFF_BASE, &v1);
	add(DIFF_NEW, &v2);
	compare("sites.new > 0");
	char *out = print(TEXT, 80);
	has(out, "base       ./prog --fast, 60 s: base.trace\n");
	has(out, "note       one run a side: noise cannot be judged.");
	has(out, "    unused             409 MiB\u00b7s \u2192 "
		 "388 MiB\u00b7s, -5.3 %, small\n");
	has(out, "\n1   gone    -120 MiB\u00b7s unused\n"
		 "    unused             120 MiB\u00b7s \u2192 0 B\u00b7s, "
		 "-100 %\n");
	has(out,
	    "\n2   new     +62.5 MiB\u00b7s unused\n"
	    "    unused             0 B\u00b7s \u2192 62.5 MiB\u00b7s, from "
	    "nothing\n");
	has(out, "\n3   grown   +40 MiB\u00b7s unused\n");
	has(out, "    allocated  fill   src/cache.c:10\n"
		 "               serve  src/server.c:44 (line 40 before)\n"
		 "               main   src/server.c:94 (line 90 before)\n");
	has(out, "\n4   shrunk  -6 MiB\u00b7s unused\n"
		 "    unused             9 MiB\u00b7s \u2192 3 MiB\u00b7s, "
		 "-67 %\n    longest nap        9 s \u2192 3 s, -67 %\n"
		 "    allocated");
	has(out,
	    "\n5   grown   +1 000 000 instructions\n"
	    "    count              2 000 000 \u2192 3 000 000, +50 %\n\n");
	has(out, "\nsites      1 new, 1 grown, 1 shrunk, 1 gone; 2 unchanged\n"
		 "counters   1 grown; 1 unchanged\n"
		 "fail-on    crossed: sites.new > 0: 1\n");
	check(!strstr(out, "load") && !strstr(out, "hot"));
	free(out);
	out = print(TEXT, 40);
	unsigned wide = 0;
	for (const char *p = out; *p; p += strcspn(p, "\n") + 1) {
		unsigned columns = 0;
		for (const char *q = p; *q != '\n'; q++)
			columns += (*q & 0xc0) != 0x80;
		wide += columns > 40;
	}
	check_int(wide, 0);
	free(out);
	out = print(HTML, 0);
	has(out, ">sites: 1 new, 1 grown, 1 shrunk, 1 gone; 2 unchanged<");
	has(out, ">counters: 1 grown; 1 unchanged<");
	has(out, "<td>388 MiB\u00b7s</td><td class=\"dim\">-5.3 %</td>"
		 "<td class=\"dim\"></td><td class=\"dim\">small</td></tr>");
	free(out);
	clear();
}

/* Time that was counted is told as time. */
static void counted_time(void)
{
	add(DIFF_BASE, &(struct sample_session){.instructions = 1000});
	add(DIFF_NEW,
	    &(struct sample_session){.instructions = 1000, .clock_ms = 2500});
	compare("counter.task-clock > 1");
	char *out = print(TEXT, 80);
	has(out, "\n1   grown   +1.5 s task-clock\n"
		 "    count              1 s \u2192 2.5 s, +150 %\n");
	free(out);
	out = print(HTML, 0);
	has(out, "<td>1 s</td><td>2.5 s</td>");
	free(out);
	clear();
}

/* A command of many words takes no more than its line. */
static void long_command(void)
{
	const struct sample_session session = {
		.command = "./prog --with blanks --and so many words that one "
			   "line of eighty columns does not hold them"};
	add(DIFF_BASE, &session);
	add(DIFF_NEW, &session);
	compare("duration > 1h");
	char *out = print(TEXT, 80);
	has(out, "base       ./prog --with blanks --and so many words that one "
		 "line of eig\u2026, 60 s:\n           base.trace\n");
	free(out);
	out = print(TEXT, 0);
	has(out, "does not hold them, 60 s: base.trace\n");
	free(out);
	clear();
}

static json_t *at(json_t *v, const char *key, const char *inner)
{
	v = json_object_get(v, key);
	return inner ? json_object_get(v, inner) : v;
}

static void json(void)
{
	json_error_t error;
	for (int i = 0; i < 3; i++) {
		add(DIFF_BASE, &v1);
		add(DIFF_NEW, &v2);
	}
	compare("sites.gone > 1");
	char *out = print(JSON, 0);
	json_t *doc = json_loads(out, JSON_REJECT_DUPLICATES, &error);
	if (!check_msg(doc != NULL, "it is JSON"))
		printf("# %s, line %d\n", error.text, error.line);
	check_int(json_integer_value(at(doc, "schema", NULL)), 1);
	check(json_is_true(at(doc, "judged", NULL)));
	check_int(json_array_size(at(doc, "base", NULL)), 3);
	check_int(json_integer_value(at(doc, "counts", "new")), 1);
	check_int(json_integer_value(at(doc, "counts", "same")), 2);
	check_int(json_array_size(at(doc, "sites", NULL)), 6);
	json_t *counter = json_array_get(at(doc, "counters", NULL), 0);
	check_int(json_array_size(at(doc, "counters", NULL)), 2);
	check_str(json_string_value(at(counter, "name", NULL)), "instructions");
	check_str(json_string_value(at(counter, "verdict", NULL)), "grown");
	json_t *gone = json_array_get(at(doc, "sites", NULL), 0);
	check_str(json_string_value(at(gone, "verdict", NULL)), "gone");
	check_str(json_string_value(at(gone, "match", NULL)), "none");
	check_str(json_string_value(at(gone, "by", NULL)), "nap.bytes_seconds");
	check(json_is_null(at(gone, "new_frames", NULL)));
	check_int(json_array_size(at(gone, "base_frames", NULL)), 2);
	json_t *m = at(gone, "metrics", "nap.longest");
	check_range(json_real_value(at(m, "base", "mean")), 30e9, 30e9);
	check_range(json_real_value(at(m, "change", NULL)), -30e9, -30e9);
	check_range(json_real_value(at(m, "relative", NULL)), -1, -1);
	check_int(json_array_size(at(m, "base", "values")), 3);
	check_int(json_array_size(at(m, "interval", NULL)), 2);
	check(json_is_true(at(m, "changed", NULL)));
	json_t *rule = json_array_get(at(doc, "fail_on", NULL), 0);
	check(json_is_false(at(rule, "crossed", NULL)));
	check_range(json_real_value(at(rule, "value", NULL)), 1, 1);
	check(at(doc, "run", "overhead") != NULL);
	json_decref(doc);
	free(out);
	clear();
}

/* Names that are no names. */
static void hostile(void)
{
	const struct sample_site site[] = {
		{.stack = EVIL "@" EVIL ".c:3 < main@a.c:9",
		 .size = 1 << 20,
		 .naps = 1,
		 .nap_ms = 5000},
	};
	const struct sample_session evil = {
		.site = site, .nr = 1, .command = EVIL};
	add(DIFF_BASE, &v1);
	add(DIFF_NEW, &evil);
	d.side[DIFF_NEW].run[0].path = EVIL;
	compare("sites.new > 0");
	char *out = print(HTML, 0);
	check(!strstr(out, "<script") && !strchr(out, '\x1b') &&
	      !strchr(out, '\xff'));
	has(out, "&lt;script&gt;?[31m&amp;&quot;&#39;?");
	/* Every tag that is opened is closed. */
	int open = 0;
	for (const char *p = out; (p = strchr(p, '<')) != NULL; p++)
		if (p[1] == '/')
			open--;
		else if (p[1] != '!' && strncmp(p, "<meta", 5) &&
			 strncmp(p, "<br", 3))
			open++;
	check_int(open, 0);
	free(out);
	out = print(TEXT, 80);
	check(!strchr(out, '\x1b') && !strchr(out, '\xff'));
	free(out);
	out = print(JSON, 0);
	json_t *doc = json_loads(out, 0, NULL);
	check(doc != NULL);
	json_decref(doc);
	free(out);
	clear();
}

static void write_traces(const char *dir)
{
	const struct sample_session bare = {.monitors = "range"};
	const struct sample_session *const session[] = {&v1, &v2, &other,
							&bare};
	const char *const name[] = {"v1", "v2", "other", "bare"};
	for (size_t i = 0; i < ARRAY_SIZE(session); i++) {
		char file[256];
		snprintf(file, sizeof(file), "%s/%s.trace", dir, name[i]);
		sample_session_write(file, session[i]);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		write_traces(argv[1]);
		return 0;
	}
	path = scratch_path("x.trace");
	text();
	counted_time();
	long_command();
	json();
	hostile();
	return tap_done();
}
