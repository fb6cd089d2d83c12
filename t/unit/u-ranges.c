/*
 * Ranges of variables in reports: joined over processes and files, judged,
 * ordered, and shown.
 */
#include <stdlib.h>
#include <unistd.h>

#include "reports/model.h"
#include "reports/section.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"

struct put {
	struct trace_writer *w;
	uint32_t next_id;
};

static void put_record(struct put *p, uint32_t event, uint32_t id,
		       const void *payload, uint32_t len)
{
	trace_put(p->w, &(struct record){.event = event,
					 .time_ns = NSEC_PER_SEC,
					 .cpu = UINT32_MAX,
					 .param = id,
					 .payload_len = len,
					 .payload = payload});
}

/* A variable; returns its id. */
static uint32_t put_variable(struct put *p, const char *name, uint32_t line,
			     const char *type, uint32_t bits, uint32_t class_,
			     uint32_t flags)
{
	uint32_t id = p->next_id++;
	const struct trace_frame f[] = {
		{.function = name,
		 .file = "/src/prog.c",
		 .line = line,
		 .module = "/bin/prog",
		 .build_id = "c0ffee"},
		{.function = type, .file = "", .module = "", .build_id = ""},
	};
	trace_put_stack(p->w, 100 + id, f, 2);
	const struct ev_variable ev = {
		.decl = 100 + id,
		.bits = bits,
		.class_ = class_,
		.flags = flags,
	};
	put_record(p, EV_VARIABLE, id, &ev, sizeof(ev));
	return id;
}

static void put_range(struct put *p, uint32_t id, uint32_t pid,
		      int64_t smallest, int64_t largest, uint32_t flags)
{
	const struct ev_range ev = {
		.smallest = smallest,
		.largest = largest,
		.hits = (uint64_t)largest - (uint64_t)smallest,
		.watched_ns = 250,
		.alive_ns = 1000,
		.pid = pid,
		.flags = flags,
	};
	put_record(p, EV_RANGE, id, &ev, sizeof(ev));
}

static struct trace_reader *finish(struct put *p, const char *path)
{
	struct trace_reader *r = NULL;
	trace_writer_close(p->w, NULL);
	check(!trace_reader_open(path, &r, NULL));
	return r;
}

static struct put start(const char *path)
{
	struct put p = {.next_id = 1};
	check(!trace_writer_create(path, 0, &p.w, NULL));
	trace_put_meta(p.w, "monitors", "range");
	return p;
}

static const struct model_range *find(const struct summary *s, const char *name)
{
	static const struct model_range none = {.unwatched = ""};
	for (size_t i = 0; i < s->ranges.nr; i++)
		if (!strcmp(s->ranges.range[i].decl->function, name))
			return &s->ranges.range[i];
	return &none;
}

#define INT VARIABLE_INT
#define S   VARIABLE_SIGNED

/* One value each, and what is thought of it. */
static const struct {
	const char *name;
	uint32_t bits, class_, flags;
	int64_t smallest, largest;
	uint32_t odd;
	enum finding finding;
} judged[] = {
	{"a", 32, INT, S, -5, 5, 0, FINDING_NONE},
	{"full", 32, INT, S, INT32_MIN, INT32_MAX, 0, FINDING_WRAPPED},
	{"top", 32, INT, S, 0, INT32_MAX - 21000000, 0, FINDING_LIMIT},
	{"below", 32, INT, S, 0, INT32_MAX - 22000000, 0, FINDING_NONE},
	{"bottom", 32, INT, S, INT32_MIN + 5, 0, 0, FINDING_LIMIT},
	{"zero", 32, INT, 0, 0, 7, 0, FINDING_NONE},
	{"u", 32, INT, 0, 1, UINT32_MAX, 0, FINDING_WRAPPED},
	{"u64", 64, INT, 0, 1000000, -1, 0, FINDING_WRAPPED},
	{"high", 64, INT, 0, INT64_MIN, -1, 0, FINDING_LIMIT},
	{"s64", 64, INT, S, INT64_MIN, 0, 0, FINDING_LIMIT},
	{"byte", 8, INT, 0, 0, 255, 0, FINDING_NONE},
	{"char", 8, VARIABLE_CHAR, S, -128, 127, 0, FINDING_NONE},
	{"short", 16, INT, 0, 9, 65535, 0, FINDING_WRAPPED},
	{"field", 5, INT, 0, 0, 31, 0, FINDING_NONE},
	{"yes", 8, VARIABLE_BOOL, 0, 0, 1, 0, FINDING_NONE},
	{"no", 8, VARIABLE_BOOL, 0, 0, 2, 0, FINDING_BOOL},
	{"e", 32, VARIABLE_ENUM, S, 0, INT32_MAX, 0, FINDING_NONE},
	{"odd", 32, VARIABLE_ENUM, 0, 0, 9, RANGE_ODD_LARGEST, FINDING_ENUM},
	{"few", 32, VARIABLE_ENUM, 0, 0, 9, RANGE_ODD_BETWEEN, FINDING_ENUM},
	{"f::len", 32, INT, S, -2, 9, 0, FINDING_NEGATIVE},
	{"f::n.buf_size", 64, INT, S, -2, 9, 0, FINDING_NEGATIVE},
	{"f::count", 32, INT, S, -1, 9, 0, FINDING_NONE},
	{"f::silen", 32, INT, S, -2, 9, 0, FINDING_NONE},
	{"len::x", 32, INT, S, -2, 9, 0, FINDING_NONE},
};

static void put_odd(struct put *p, uint32_t id, uint32_t pid, int64_t smallest,
		    int64_t largest, int64_t odd)
{
	const struct ev_range ev = {
		.smallest = smallest,
		.largest = largest,
		.pid = pid,
		.flags = RANGE_SENSED | RANGE_ODD_BETWEEN,
		.odd = odd,
	};
	put_record(p, EV_RANGE, id, &ev, sizeof(ev));
}

/* Which value between the others names no enumerator: the smallest of all
 * processes, if it is between; none is told that is one of the others. */
static void test_between(void)
{
	const char *path = scratch_path("between");
	char words[RANGE_WORDS];
	struct summary *s = NULL;
	struct put p = start(path);
	uint32_t a = put_variable(&p, "a", 1, "enum e", 32, VARIABLE_ENUM, S);
	put_odd(&p, a, 7, -5, 9, 4);
	put_odd(&p, a, 8, -5, 9, -3);
	put_odd(&p, a, 9, -5, 9, 5);
	put_range(&p, a, 10, -9, 9, RANGE_SENSED);
	/* What one has begun with, and what another's smallest was. */
	uint32_t e = put_variable(&p, "e", 5, "enum e", 32, VARIABLE_ENUM, S);
	put_range(&p, e, 7, -9, 9, RANGE_SENSED);
	put_range(&p, e, 8, 0, 0, RANGE_INITIAL | RANGE_ODD_SMALLEST);
	put_range(&p, e, 9, 4, 5, RANGE_SENSED | RANGE_ODD_SMALLEST);
	uint32_t f = put_variable(&p, "f", 6, "enum e", 32, VARIABLE_ENUM, S);
	put_range(&p, f, 7, -9, 9, RANGE_SENSED);
	put_range(&p, f, 8, 4, 5, RANGE_SENSED | RANGE_ODD_LARGEST);
	uint32_t b = put_variable(&p, "b", 2, "enum e", 32, VARIABLE_ENUM, S);
	put_odd(&p, b, 7, 3, 9, 3);
	uint32_t c = put_variable(&p, "c", 3, "enum e", 32, VARIABLE_ENUM, S);
	put_odd(&p, c, 7, 3, 9, 9);
	uint32_t d = put_variable(&p, "d", 4, "enum e", 32, VARIABLE_ENUM, S);
	put_range(&p, d, 7, -9, 9, RANGE_SENSED);
	struct trace_reader *r = finish(&p, path);
	check(!summary_load(r, &s, NULL));
	check_str(range_odd_words(find(s, "a"), words), ": -3");
	check_int(find(s, "a")->smallest, -9);
	check_int(find(s, "a")->finding, FINDING_ENUM);
	check_str(range_odd_words(find(s, "b"), words), "");
	check_str(range_odd_words(find(s, "e"), words), ": 4");
	check_str(range_odd_words(find(s, "f"), words), ": 5");
	check_str(range_odd_words(find(s, "c"), words), "");
	check_str(range_odd_words(find(s, "d"), words), "");
	check_int(find(s, "d")->finding, FINDING_NONE);
	summary_free(s);
	trace_reader_close(r);
}

static void test_findings(void)
{
	const char *path = scratch_path("findings");
	struct summary *s = NULL;
	struct put p = start(path);
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
		uint32_t id = put_variable(&p, judged[i].name, (uint32_t)i, "t",
					   judged[i].bits, judged[i].class_,
					   judged[i].flags);
		put_range(&p, id, 7, judged[i].smallest, judged[i].largest,
			  RANGE_SENSED | judged[i].odd);
	}
	/* Nothing is thought of what had no value. */
	put_variable(&p, "unseen", 99, "bool", 8, VARIABLE_BOOL, 0);
	struct trace_reader *r = finish(&p, path);
	check(!summary_load(r, &s, NULL));
	size_t nr = 0;
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++) {
		const struct model_range *m = find(s, judged[i].name);
		nr += judged[i].finding != FINDING_NONE;
		check_msg(m->has_value && m->finding == judged[i].finding,
			  "%s: '%s' (got '%s')", judged[i].name,
			  finding_text(judged[i].finding),
			  finding_text(m->finding));
	}
	check_int(s->ranges.nr_findings, nr);
	check_int(s->ranges.nr_with_value, ARRAY_SIZE(judged));
	check(!find(s, "unseen")->has_value);
	for (size_t i = 1; i < nr; i++)
		check(s->ranges.range[i - 1].finding <=
		      s->ranges.range[i].finding);
	check_int(s->ranges.range[nr].finding, FINDING_NONE);
	/* Unsigned ones are numbers above zero, however large. */
	check(range_number(find(s, "u64"), -1) == 18446744073709551615.0L);
	check(range_number(find(s, "s64"), INT64_MIN) ==
	      -9223372036854775808.0L);
	summary_free(s);
	trace_reader_close(r);
}

/* One value: a mistake where much was assigned, and all of it seen. */
static void test_constant(void)
{
	static const struct {
		const char *name;
		uint64_t hits, watched_ns;
		int64_t largest;
		uint32_t var_flags, flags;
		bool is_finding;
	} of[] = {
		{"often", 1000, 1000, 7, S, RANGE_SENSED, true},
		{"seldom", 999, 1000, 7, S, RANGE_SENSED, false},
		{"missed", 1000, 980, 7, S, RANGE_SENSED, false},
		{"changes", 1000, 1000, 8, S, RANGE_SENSED, false},
		{"polled", 1000, 1000, 7, S, RANGE_POLLED, false},
		{"passed", 1000, 1000, 7, S | VARIABLE_PARAMETER, RANGE_SENSED,
		 false},
		{"array[]", 1000, 1000, 7, S | VARIABLE_ARRAY, RANGE_SENSED,
		 false},
		{"initial", 1000, 1000, 7, S, RANGE_INITIAL, false},
	};
	const char *path = scratch_path("constant");
	struct summary *s = NULL;
	struct put p = start(path);
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		uint32_t id = put_variable(&p, of[i].name, (uint32_t)i, "int",
					   32, INT, of[i].var_flags);
		const struct ev_range ev = {
			.smallest = 7,
			.largest = of[i].largest,
			.hits = of[i].hits,
			.watched_ns = of[i].watched_ns,
			.alive_ns = 1000,
			.pid = 7,
			.flags = of[i].flags,
		};
		put_record(&p, EV_RANGE, id, &ev, sizeof(ev));
	}
	struct trace_reader *r = finish(&p, path);
	check(!summary_load(r, &s, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(of); i++)
		check_msg(find(s, of[i].name)->finding ==
				  (of[i].is_finding ? FINDING_CONSTANT
						    : FINDING_NONE),
			  "%s: '%s'", of[i].name,
			  finding_name(find(s, of[i].name)->finding));
	summary_free(s);
	trace_reader_close(r);
}

static void test_join(void)
{
	const char *path[2] = {scratch_path("one"), scratch_path("two")};
	struct summary_input input[2] = {0};
	struct summary *s = NULL;
	struct put p = start(path[0]);
	uint32_t a = put_variable(&p, "main::i", 5, "int", 32, INT, S);
	put_variable(&p, "main::i", 6, "int", 32, INT, S); /* another one */
	put_range(&p, a, 7, 3, 4, RANGE_POLLED);
	put_range(&p, a, 7, 1, 5, RANGE_POLLED); /* instead of that before */
	put_range(&p, a, 8, -2, 2, RANGE_SENSED);
	input[0].reader = finish(&p, path[0]);
	p = start(path[1]);
	put_variable(&p, "other", 1, "int", 32, INT, S);
	/* The same variable with another id. */
	a = put_variable(&p, "main::i", 5, "int", 32, INT, S);
	put_range(&p, a, 7, 0, 90, RANGE_SENSED);
	/* Of a variable that nobody has described. */
	put_range(&p, 4711, 7, 0, 1000, RANGE_SENSED);
	input[1].reader = finish(&p, path[1]);
	check(!summary_load_files(input, 2, NULL, &s, NULL));
	const struct model_range *m = find(s, "main::i");
	check_int(s->ranges.nr, 3);
	check_int(s->ranges.nr_with_value, 1);
	check_int(m->smallest, -2);
	check_int(m->largest, 90);
	check_int(m->nr_processes, 3);
	check_int(m->hits, 4 + 4 + 90);
	check_int(m->flags, RANGE_POLLED | RANGE_SENSED);
	check_int(range_watched_ppb(m), 250000000);
	check_str(m->type, "int");
	check_int(m->decl->line, 5);
	check(model_has_monitor(s, "range") && !model_has_monitor(s, "nap"));
	summary_free(s);
	/* Of one process what that one had. */
	const struct select one = {.has_process = true, .process = 8};
	trace_rewind(input[0].reader);
	trace_rewind(input[1].reader);
	check(!summary_load_files(input, 2, &one, &s, NULL));
	m = find(s, "main::i");
	check_int(s->ranges.nr_with_value, 1);
	check_int(m->smallest, -2);
	check_int(m->largest, 2);
	check_int(m->nr_processes, 1);
	summary_free(s);
	trace_reader_close(input[0].reader);
	trace_reader_close(input[1].reader);
}

/* What the summary says, one text after the other. */
static void test_text(void)
{
	static const char *const lines[] = {
		"\nranges     of 2 of 3 integer variables (smco-report "
		"--ranges)\n",
		"\n           1 cannot be watched: 1 because\n",
		"\n           1 may be mistakes\n",
		"\n1   f::len: -7 to 9\n    negative, though called a size\n"
		"    int, src/prog.c:2, watched 25 % of the time\n",
	};
	const char *path = scratch_path("text");
	char text[4096] = "";
	struct summary *s = NULL;
	struct put p = start(path);
	uint32_t a = put_variable(&p, "f::i", 1, "int", 32, INT, S);
	put_range(&p, a, 7, 3, 4, RANGE_SENSED);
	a = put_variable(&p, "f::len", 2, "int", 32, INT, S);
	put_range(&p, a, 7, -7, 9, RANGE_SENSED);
	const struct trace_frame why = {.function = "because",
					.file = "",
					.module = "",
					.build_id = ""};
	trace_put_stack(p.w, 9, &why, 1);
	a = put_variable(&p, "f::gone", 3, "int", 32, INT, S);
	const struct ev_variable ev = {
		.decl = 100 + a, .bits = 32, .unwatched = 9};
	put_record(&p, EV_VARIABLE, a + 1, &ev, sizeof(ev));
	struct trace_reader *r = finish(&p, path);
	check(!summary_load(r, &s, NULL));
	check_str(find(s, "f::gone")->unwatched, "because");
	FILE *out = fmemopen(text, sizeof(text), "w");
	const struct summary_style style = {.width = 80, .max_sites = 10};
	summary_print(s, out, NULL, &style);
	fclose(out);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		check_msg(strstr(text, lines[i]) != NULL, "says%s", lines[i]);
	/* Naps were not looked for, so nothing is said of them. */
	check(!strstr(text, "unused") && !strstr(text, "coverage"));
	if (tap_failed)
		printf("# %s\n", text);
	summary_free(s);
	trace_reader_close(r);
}

/* What a variable was as a subscript, in two processes. */
static const struct {
	uint64_t elements;
	uint32_t flags;
	int32_t offset;
	int64_t smallest[2], largest[2];
	bool is_outside;
} subscripts[] = {
	{10, 0, 0, {0, 3}, {9, 9}, false},
	{10, 0, 0, {0, 3}, {9, 10}, true},
	{10, 0, 0, {0, -1}, {9, 9}, true},
	{10, 0, -1, {-1, 0}, {3, 3}, true},
	/* Never inside: it may be another array, unless that is sure. */
	{10, 0, 0, {10, 12}, {10, 15}, false},
	{10, 0, 0, {-7, -3}, {-5, -1}, false},
	{10, VARIABLE_SURE_ARRAY, 0, {10, 12}, {10, 15}, true},
	{10, VARIABLE_SURE_ARRAY, 0, {-7, -3}, {-5, -1}, true},
	{10, VARIABLE_SURE_ARRAY, 0, {1, 2}, {2, 3}, false},
	/* Inside in one process, outside in the other. */
	{10, 0, 0, {0, 10}, {9, 11}, true},
	{0, VARIABLE_SURE_ARRAY, 0, {-4, 0}, {9, 10}, false},
	{10, 0, INT32_MIN, {INT64_MIN, 0}, {INT64_MAX, 3}, true},
};

/* The subscript of a variable in array "s.table[].x" of line @line. */
static void put_subscript(struct put *p, size_t i, const char *name,
			  uint32_t line)
{
	uint32_t id = p->next_id++;
	const struct trace_frame f[] = {
		{.function = name,
		 .file = "/src/prog.c",
		 .line = (uint32_t)i,
		 .module = "",
		 .build_id = ""},
		{.function = "t", .file = "", .module = "", .build_id = ""},
		{.function = "s.table[].x",
		 .file = "/src/table.c",
		 .line = line,
		 .module = "",
		 .build_id = ""},
	};
	trace_put_stack(p->w, 100 + id, f, 3);
	const struct ev_variable ev = {
		.elements = subscripts[i].elements,
		.decl = 100 + id,
		.bits = 64,
		.flags = S | VARIABLE_SUBSCRIPT | subscripts[i].flags,
		.offset = subscripts[i].offset,
	};
	put_record(p, EV_VARIABLE, id, &ev, sizeof(ev));
	for (unsigned k = 0; k < 2; k++)
		put_range(p, id, 7 + k, subscripts[i].smallest[k],
			  subscripts[i].largest[k], RANGE_SENSED);
}

static void check_subscript(const struct summary *s, size_t i, const char *name)
{
	const struct model_range *m = find(s, name);
	const struct model_subscript *sub = m->subscript;
	check_int(m->finding,
		  subscripts[i].is_outside ? FINDING_SUBSCRIPT : FINDING_NONE);
	/* The variable's own values are what they were. */
	check_int(m->smallest, 3);
	check_int(m->largest, 4);
	if (!subscripts[i].is_outside) {
		check(!sub);
	} else if (check(sub != NULL)) {
		const int64_t *lo = subscripts[i].smallest;
		const int64_t *hi = subscripts[i].largest;
		check_int(sub->smallest, lo[0] < lo[1] ? lo[0] : lo[1]);
		check_int(sub->largest, hi[0] > hi[1] ? hi[0] : hi[1]);
		check_int(sub->array->line, 30);
	}
}

static void test_subscripts(void)
{
	const char *path = scratch_path("subscripts");
	char name[16], words[RANGE_WORDS];
	struct summary *s = NULL;
	struct put p = start(path);
	for (size_t i = 0; i < ARRAY_SIZE(subscripts); i++) {
		snprintf(name, sizeof(name), "f::i%zu", i);
		uint32_t id =
			put_variable(&p, name, (uint32_t)i, "t", 32, INT, S);
		put_range(&p, id, 7, 3, 4, RANGE_SENSED);
		put_subscript(&p, i, name, 30);
	}
	struct trace_reader *r = finish(&p, path);
	check(!summary_load(r, &s, NULL));
	check_int(s->ranges.nr, ARRAY_SIZE(subscripts));
	for (size_t i = 0; i < ARRAY_SIZE(subscripts); i++) {
		snprintf(name, sizeof(name), "f::i%zu", i);
		check_subscript(s, i, name);
	}
	check_int(s->ranges.range[0].finding, FINDING_SUBSCRIPT);
	check_str(subscript_words(find(s, "f::i3"), words), "f::i3 - 1");
	check_str(subscript_words(find(s, "f::i1"), words), "f::i1");
	check_str(subscript_array_words(find(s, "f::i1")->subscript, words),
		  "s.table[10].x");
	summary_free(s);
	trace_reader_close(r);
}

static char *table(const struct summary *s, const struct summary_input *input,
		   const struct where *where)
{
	char *text = NULL;
	size_t size;
	struct section_source src = {.s = s, .input = input, .nr_inputs = 1};
	const struct section_options o = {.where = where};
	struct page page = {.out = open_memstream(&text, &size), .width = 60};
	check_int(section_print(&range_section, &src, &o, &page, NULL), 0);
	fclose(page.out);
	return text;
}

/* An empty table says why, unless a condition made it empty. */
static void test_none(void)
{
	const char *path = scratch_path("none");
	struct put p = start(path);
	struct summary *s = NULL;
	struct where *where = NULL;
	trace_put_meta(p.w, "range.missing",
		       "/bin/prog has no debug information: compile it with "
		       "-g");
	const struct summary_input input = {.reader = finish(&p, path)};
	check(!summary_load(input.reader, &s, NULL));
	char *text = table(s, &input, NULL);
	check(strstr(text, "\nnone: /bin/prog has no debug information: "
			   "compile it with\n-g\n") != NULL);
	free(text);
	check(!where_parse("bits > 3", range_section.column,
			   range_section.nr_columns, &where, NULL));
	text = table(s, &input, where);
	check(strstr(text, "\nnone\n") != NULL);
	free(text);
	where_free(where);
	summary_free(s);
	trace_reader_close(input.reader);
}

int main(void)
{
	test_findings();
	test_between();
	test_subscripts();
	test_constant();
	test_join();
	test_text();
	test_none();
	if (tap_failed)
		printf("# kept: %s\n", scratch_keep());
	return tap_done();
}
