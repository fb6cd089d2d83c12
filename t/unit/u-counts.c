/*
 * What reports make of counters in a trace: sums, scaling, time, what follows
 * from them; and nothing bad of records that cannot be.
 */
#include <stdlib.h>
#include <unistd.h>

#include "reports/section.h"
#include "reports/counts.h"
#include "reports/select.h"
#include "reports/summary.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"
#include "t/unit/trace-sample.h"

static const char *path;

static void put_meta(struct trace_writer *w)
{
	static const char *const pairs[][2] = {
		{"monitors", "counters"},
		{"command", "./server"},
		{"elapsed_ns", "2000000000"},
		{"counters.interval_ns", "100000000"},
		{"counters.missing", "r1: no \033[31mPMU"},
		{"counter.0.0", "task-clock"},
		{"counter.0.0.role", "task-clock"},
		{"counter.0.0.unit", "ns"},
		{"counter.0.1", "page-faults:u"},
		{"counter.0.1.role", "faults"},
		{"counter.0.1.level", "user"},
		{"counter.1.0", "cycles"},
		{"counter.1.0.role", "cycles"},
		{"counter.1.1", "instructions"},
		{"counter.1.1.role", "instructions"},
		{"counter.1.2", "L1D.REPLACEMENT"},
		{"counter.1.2.role", "misses"},
		{"counter.2.0", "power/energy-pkg/"},
		{"counter.2.0.unit", "Joules"},
		{"counter.2.0.scale", "0.5"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		trace_put_meta(w, pairs[i][0], pairs[i][1]);
}

static void put(struct trace_writer *w, uint64_t ms, uint32_t tid,
		uint32_t group, const struct ev_counts *ev)
{
	trace_put(w, &(struct record){.event = EV_COUNTS,
				      .time_ns = SAMPLE_MS(ms),
				      .cpu = UINT32_MAX,
				      .tid = tid,
				      .param = group,
				      .payload_len = sizeof(*ev),
				      .payload = ev});
}

static void write_records(struct trace_writer *w)
{
	put(w, 100, 10, 0,
	    &(struct ev_counts){10,
				2,
				SAMPLE_MS(100),
				SAMPLE_MS(80),
				0,
				{SAMPLE_MS(80), 40}});
	/* The hardware counted half of the time. */
	put(w, 100, 10, 1,
	    &(struct ev_counts){10,
				3,
				SAMPLE_MS(100),
				SAMPLE_MS(80),
				SAMPLE_MS(40),
				{1000000, 500000, 1000}});
	put(w, 200, 11, 0,
	    &(struct ev_counts){10,
				2,
				SAMPLE_MS(50),
				SAMPLE_MS(20),
				0,
				{SAMPLE_MS(20), 2}});
	/* Three intervals in one, for the budget was used up. */
	put(w, 500, 10, 0,
	    &(struct ev_counts){10,
				2,
				SAMPLE_MS(300),
				SAMPLE_MS(300),
				0,
				{SAMPLE_MS(300), 30}});
	put(w, 500, 0, 2,
	    &(struct ev_counts){0, 1, SAMPLE_MS(500), SAMPLE_MS(500), 0, {84}});
}

static struct trace_reader *make_trace(void (*records)(struct trace_writer *))
{
	struct trace_writer *w = NULL;
	struct trace_reader *r = NULL;
	trace_writer_create(path, 0, &w, NULL);
	put_meta(w);
	records(w);
	trace_writer_close(w, NULL);
	check_int(trace_reader_open(path, &r, NULL), 0);
	return r;
}

static struct trace_reader *names; /* of the counts that are loaded */

static struct counts *load(void (*records)(struct trace_writer *))
{
	struct trace_reader *r = make_trace(records);
	struct counts *c = NULL;
	struct record rec;
	names = r;
	check_int(counts_create(r, 0, &c), 0);
	if (!check(c != NULL))
		exit(tap_done());
	while (trace_next(r, &rec, NULL) > 0)
		if (rec.event == EV_COUNTS)
			check_int(counts_take(c, &rec), 0);
	counts_finish(c);
	return c;
}

static void unload(struct counts *c)
{
	counts_destroy(c);
	trace_reader_close(names);
}

static void test_sums(void)
{
	struct counts *c = load(write_records);
	check_int(c->nr_events, 6);
	check_int(c->nr_threads, 3);
	check_int(c->nr_records, 5);
	check_int(c->nr_unknown, 0);
	check_int(c->interval_ns, 100000000);
	check_int(c->event[1].role, ROLE_FAULTS);
	check_str(c->event[1].level, "user");
	check_int(c->total[0].raw, SAMPLE_MS(400));
	check_int(c->total[1].raw, 72);
	/* Raw as it was counted, scaled as it would have been. */
	check_int(c->total[2].raw, 1000000);
	check_int(c->total[2].scaled, 2000000);
	check_int(c->total[2].missed_ns, SAMPLE_MS(40));
	check_int(c->total[4].scaled, 2000);
	check_int(c->thread[1].tid, 11);
	check_int(c->thread[1].sum[0].raw, SAMPLE_MS(20));
	check_int(c->thread[1].start_ns, SAMPLE_MS(150));
	check_int(c->thread[1].end_ns, SAMPLE_MS(200));
	unload(c);
}

static void test_time(void)
{
	struct counts *c = load(write_records);
	const double *faults = c->bucket + COUNTS_BUCKETS;
	check_int(c->bucket_ns, SAMPLE_MS(100));
	check_int(c->nr_buckets, 5);
	check_range(faults[0], 39.99, 40.01);
	check_range(faults[1], 1.99, 2.01);
	/* Shared out among those that the reading was about. */
	check_range(faults[2], 9.99, 10.01);
	check_range(faults[4], 9.99, 10.01);
	unload(c);
}

static void test_derived(void)
{
	struct counts *c = load(write_records);
	double v = 0;
	uint64_t time = 2 * NSEC_PER_SEC;
	check_int(counts_derive(c, c->total, 0, time, &v), RATE_CPUS);
	check_range(v, 0.1999, 0.2001);
	check_int(counts_derive(c, c->total, 1, time, &v), RATE_PER_SECOND);
	check_range(v, 179.9, 180.1); /* 72 in 0.4 s of CPU time */
	check_int(counts_derive(c, c->total, 2, time, &v), RATE_HZ);
	check_range(v, 4.99e6, 5.01e6);
	check_int(counts_derive(c, c->total, 3, time, &v), RATE_PER_CYCLE);
	check_range(v, 0.499, 0.501);
	check_int(counts_derive(c, c->total, 4, time, &v), RATE_PER_1000);
	check_range(v, 1.99, 2.01);
	check_int(counts_derive(c, c->total, 5, time, &v), RATE_NONE);
	check_range(counts_cpi(c, c->total), 1.99, 2.01);
	/* A thread without cycles has none of that. */
	check(counts_cpi(c, c->thread[1].sum) < 0);
	check_int(counts_derive(c, c->thread[1].sum, 3, time, &v), RATE_NONE);
	unload(c);
}

/* 100 ms that end @ms, of which @missed_ns were not counted. */
static void put_interval(struct trace_writer *w, uint64_t ms, uint32_t thread,
			 uint64_t missed_ns, uint64_t value)
{
	put(w, ms, thread, 1,
	    &(struct ev_counts){thread,
				1,
				SAMPLE_MS(100),
				SAMPLE_MS(100),
				missed_ns,
				{value}});
}

/* A pause of a whole interval, then half of one. */
static void paused_records(struct trace_writer *w)
{
	put_interval(w, 100, 10, 0, 1000);
	put_interval(w, 200, 10, SAMPLE_MS(100), 0);
	put(w, 300, 11, 1,
	    &(struct ev_counts){10, 1, SAMPLE_MS(100), SAMPLE_MS(50), 0, {7}});
}

static void test_paused(void)
{
	struct counts *c = load(paused_records);
	check_int(c->total[2].raw, 1007);
	check_int(c->thread[0].sum[2].scaled, 2000);
	check_int(c->thread[1].sum[2].scaled, 7);
	check_int(c->total[2].scaled, 2007);
	check_range(c->bucket[2 * COUNTS_BUCKETS + 1], 0, 0);
	unload(c);
}

/* Two that lived while counting paused, one of them before it was counted. */
static void unseen_records(struct trace_writer *w)
{
	put_interval(w, 100, 10, SAMPLE_MS(50), 400);
	put_interval(w, 100, 11, 0, 100);
	put_interval(w, 200, 12, SAMPLE_MS(100), 0);
	put_interval(w, 200, 13, SAMPLE_MS(100), 0);
	put_interval(w, 300, 13, 0, 30);
	put(w, 300, 0, 2,
	    &(struct ev_counts){0, 1, SAMPLE_MS(100), SAMPLE_MS(100), 0, {84}});
}

static void test_unseen(void)
{
	struct counts *c = load(unseen_records);
	check_int(c->thread[2].sum[2].scaled, 0);
	check_int(c->thread[3].sum[2].scaled, 60);
	/* 800, 100 and 60 in 400 ms, so much again in 100 of 12. */
	check_int(c->total[2].raw, 530);
	check_int(c->total[2].enabled_ns, SAMPLE_MS(500));
	check_int(c->total[2].scaled, 960 + 240);
	/* The machine has no such threads. */
	check_int(c->total[5].scaled, 84);
	check_int(c->total[5].raw, 84);
	unload(c);
}

/* All of one part counted, a twentieth of the next, nothing of what follows. */
static void part_records(struct trace_writer *w)
{
	put_interval(w, 100, 10, 0, 1000);
	put_interval(w, 200, 10, SAMPLE_MS(95), 10);
	put_interval(w, 200, 11, SAMPLE_MS(100) - 400000, 3);
	put_interval(w, 300, 11, SAMPLE_MS(100) - 600000, 5);
	put_interval(w, 300, 10, SAMPLE_MS(100), 0);
}

static void test_parts(void)
{
	struct counts *c = load(part_records);
	/* 1000, and 10 of 5 of 200 ms. */
	check_int(c->thread[0].sum[2].raw, 1010);
	check_int(c->thread[0].sum[2].scaled, 1400);
	/* Too short to stand for itself: 8 in 1 of 200 ms. */
	check_int(c->thread[1].sum[2].scaled, 1600);
	check_int(c->total[2].scaled, 3000);
	unload(c);
}

/* Far too late, too long, of groups and with values there are none of. */
static void hostile_records(struct trace_writer *w)
{
	static const uint64_t extremes[] = {0, 1, UINT64_MAX, UINT64_MAX / 2,
					    1ull << 62};
	for (size_t i = 0; i < 625; i++) {
		struct ev_counts ev = {
			.pid = (uint32_t)i,
			.nr = (uint32_t)(i % 5),
			.length_ns = extremes[i % 5],
			.enabled_ns = extremes[i / 5 % 5],
			.missed_ns = extremes[i / 25 % 5],
			.value = {extremes[i / 125 % 5], UINT64_MAX},
		};
		trace_put(w, &(struct record){.event = EV_COUNTS,
					      .time_ns = extremes[i / 25 % 5],
					      .tid = (uint32_t)i % 7,
					      .param = i % 9 == 8 ? UINT32_MAX
								  : i % 5,
					      .payload_len = sizeof(ev),
					      .payload = &ev});
	}
}

static void test_hostile(void)
{
	struct counts *c = load(hostile_records);
	check_int(c->nr_records, 625);
	check(c->nr_unknown > 300 && c->nr_unknown < 625);
	check(c->nr_buckets <= COUNTS_BUCKETS);
	unload(c);
}

static void no_records(struct trace_writer *w)
{
	trace_put_meta(w, "x", "y");
}

static struct summary *summary_of(void (*records)(struct trace_writer *))
{
	struct trace_reader *r = make_trace(records);
	struct summary *s = NULL;
	check_int(summary_load(r, &s, NULL), 0);
	trace_reader_close(r);
	return s;
}

/* The text as smco-trace prints it; @width 0: whole. */
static char *text_in(void (*records)(struct trace_writer *), unsigned width)
{
	struct summary *s = summary_of(records);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	summary_print(s, f, NULL,
		      &(struct summary_style){.max_sites = 10, .width = width});
	fclose(f);
	summary_free(s);
	return text;
}

static char *text_of(void (*records)(struct trace_writer *))
{
	return text_in(records, 0);
}

static void has(const char *text, const char *want)
{
	if (!check_msg(strstr(text, want) != NULL, "the text has \"%s\"", want))
		printf("# %s\n", text);
}

static void test_text(void)
{
	char *text = text_of(write_records);
	has(text, "counters   task-clock              400 ms            "
		  "0.2 CPUs used\n");
	has(text, "page-faults:u           72                180 a second\n");
	has(text, "0.5 a cycle (CPI 2)  scaled, counted 50 %");
	has(text, "2 in 1000 instructions");
	has(text, "power/energy-pkg/       42 Joules\n");
	has(text, "not counted: r1: no ");
	has(text, "threads    10, 380 ms task-clock, 70 page-faults:u");
	check(!strchr(text, '\033'));
	check(!strstr(text, "unused"));
	/* One blank line behind the counters, where nothing else follows. */
	check(!strstr(text, "\n\n\n"));
	free(text);
	text = text_of(no_records);
	has(text, "no reading in the trace");
	free(text);
}

/* The command begins after 1.6 s of two, in which the machine was measured: it
 * has used a CPU for all of its time. */
static void late_records(struct trace_writer *w)
{
	put(w, 1900, 10, 0,
	    &(struct ev_counts){10,
				2,
				SAMPLE_MS(300),
				SAMPLE_MS(300),
				0,
				{SAMPLE_MS(300), 30}});
	put(w, 2000, 10, 0,
	    &(struct ev_counts){10,
				2,
				SAMPLE_MS(100),
				SAMPLE_MS(100),
				0,
				{SAMPLE_MS(100), 2}});
}

static void test_late(void)
{
	char *text = text_of(late_records);
	has(text, "counters   task-clock              400 ms            "
		  "1 CPUs used\n");
	free(text);
}

/* Where there is no room for columns numbers are not left out. */
static void test_narrow(void)
{
	char *text = text_in(write_records, 40);
	has(text, "counters   task-clock 400 ms,\n           0.2 CPUs used\n");
	has(text, "page-faults:u 72,\n           180 a second\n");
	has(text, "power/energy-pkg/ 42 Joules\n");
	for (const char *p = text, *end; (end = strchr(p, '\n')); p = end + 1)
		if (end - p > 40)
			check_msg(false, "%.*s: too long", (int)(end - p), p);
	free(text);
}

/* What is selected has no reading; the trace has. */
static void test_none_selected(void)
{
	struct trace_reader *r = make_trace(write_records);
	const struct select later = {.from_ns = 100000000000};
	struct summary_input input = {.reader = r};
	struct summary *s = NULL;
	char *text = NULL;
	size_t size;
	check_int(summary_load_files(&input, 1, &later, &s, NULL), 0);
	FILE *f = open_memstream(&text, &size);
	summary_print(s, f, NULL, &(struct summary_style){.max_sites = 10});
	fclose(f);
	has(text, "no reading selected");
	free(text);
	summary_free(s);
	trace_reader_close(r);
}

static void other_events(struct trace_writer *w)
{
	trace_put_meta(w, "monitors", "counters");
	trace_put_meta(w, "counter.0.0", "cycles");
	trace_put_meta(w, "counters.missing", "r1: none");
	put(w, 100, 10, 0,
	    &(struct ev_counts){.pid = 10,
				.nr = 1,
				.length_ns = SAMPLE_MS(100),
				.enabled_ns = SAMPLE_MS(100),
				.value = {5}});
}

static char *text_of_two(void (*second)(struct trace_writer *))
{
	struct summary_input input[] = {
		{.reader = make_trace(write_records), .name = "a.trace"},
		{.reader = make_trace(second), .name = "b.trace"}};
	struct summary *s = NULL;
	char *text = NULL;
	size_t size;
	check_int(summary_load_files(input, 2, NULL, &s, NULL), 0);
	FILE *f = open_memstream(&text, &size);
	summary_print(s, f, NULL, &(struct summary_style){.max_sites = 10});
	fclose(f);
	summary_free(s);
	trace_reader_close(input[0].reader);
	trace_reader_close(input[1].reader);
	return text;
}

/* What several files counted alike is added up, else each has its name. */
static void test_files(void)
{
	char *text = text_of_two(write_records);
	has(text, "\ncounters   task-clock              800 ms            "
		  "0.2 CPUs used\n");
	has(text, "page-faults:u           144               180 a second\n");
	has(text, "0.5 a cycle (CPI 2)  scaled, counted 50 %");
	has(text, "power/energy-pkg/       84 Joules\n");
	has(text, "of all 2 traces (smco-report --counters");
	const char *missing = strstr(text, "not counted: r1");
	check(missing && !strstr(missing + 1, "not counted: r1"));
	check(!strstr(text, "threads"));
	free(text);
	text = text_of_two(other_events);
	has(text, "\ncounters   a.trace\n           task-clock ");
	has(text, "\n\ncounters   b.trace\n           cycles ");
	free(text);
}

/* What a count is to be multiplied with is no whole number. */
static void test_scale(void)
{
	const struct select all = {.from_ns = 0};
	const struct section_options csv = {.format = SECTION_CSV};
	struct summary *s = summary_of(write_records);
	char *text = NULL;
	size_t size;
	struct section_source src = {s, NULL, 0, &all, NULL};
	struct page page = {.out = open_memstream(&text, &size), .width = 80};
	check_int(section_print(&counter_section, &src, &csv, &page, NULL), 0);
	fclose(page.out);
	has(text, ",Joules,0.5,");
	free(text);
	text = NULL;
	/* For people in its unit. */
	const struct section_options plain = {.format = SECTION_TEXT};
	page.out = open_memstream(&text, &size);
	check_int(section_print(&counter_section, &src, &plain, &page, NULL),
		  0);
	fclose(page.out);
	has(text, "  task-clock                    400 ms  ");
	has(text, "  power/energy-pkg/          42 Joules  ");
	free(text);
	summary_free(s);
}

int main(void)
{
	path = scratch_path("x.trace");
	test_sums();
	test_time();
	test_paused();
	test_parts();
	test_unseen();
	test_derived();
	test_hostile();
	test_text();
	test_late();
	test_narrow();
	test_none_selected();
	test_files();
	test_scale();
	return tap_done();
}
