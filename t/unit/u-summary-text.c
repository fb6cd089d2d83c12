/*
 * The whole text of summaries of made-up sessions, against t/golden/. With
 * SMCO_GOLDEN=write in the environment the files are written anew; look at
 * the diff then. `u-summary-text PATH` writes the sample session to PATH, for
 * the shell tests.
 */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include "reports/summary.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-sample.h"

static const char *path;

/* Start time and file size differ from run to run. */
static void write_normal(FILE *out, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		const char *label = text + (*text == '\033' ? 4 : 0);
		const char *path_at = strstr(label, "smco-report");
		if (!strncmp(label, "session", 7))
			fputs("session    (when)\n", out);
		else if (!strncmp(label, "trace", 5) && path_at)
			fprintf(out, "trace      (size) %.*s\n",
				(int)strcspn(path_at, "\n"), path_at);
		else
			fprintf(out, "%.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static char *slurp(const char *name)
{
	char *text = NULL;
	size_t size = 0;
	FILE *from = fopen(name, "r"), *to = open_memstream(&text, &size);
	for (int c; from && (c = getc(from)) != EOF;)
		putc(c, to);
	fclose(to);
	if (from)
		fclose(from);
	return text;
}

static void show_difference(const char *got, const char *want)
{
	int line = 1;
	while (*got && *got == *want) {
		line += *got == '\n';
		got++;
		want++;
	}
	printf("# first difference in line %d:\n", line);
	printf("# got:  %.*s\n", (int)strcspn(got, "\n"), got);
	printf("# want: %.*s\n", (int)strcspn(want, "\n"), want);
}

static char *print(const struct summary_style *style)
{
	struct trace_reader *r = NULL;
	struct summary *s = NULL;
	char *raw = NULL, *text = NULL;
	size_t size;
	if (trace_reader_open(path, &r, NULL) || summary_load(r, &s, NULL))
		return strdup("cannot be read");
	trace_reader_close(r); /* the summary keeps what it needs */
	FILE *f = open_memstream(&raw, &size);
	summary_print(s, f, "it's.trace", style);
	fclose(f);
	summary_free(s);
	f = open_memstream(&text, &size);
	write_normal(f, raw);
	fclose(f);
	free(raw);
	return text;
}

static void golden(const char *name, struct summary_style style)
{
	char file[256];
	snprintf(file, sizeof(file), "%.*s/golden/summary-%s.txt",
		 (int)(strstr(__FILE__, "/unit/") - __FILE__), __FILE__, name);
	const char *mode = getenv("SMCO_GOLDEN");
	char *got = print(&style);
	if (mode && !strcmp(mode, "write")) {
		FILE *f = fopen(file, "w");
		fputs(got, f);
		fclose(f);
	}
	char *want = slurp(file);
	if (!check_msg(!strcmp(got, want), "text is that of %s", file))
		show_difference(got, want);
	unsigned wide = 0;
	for (const char *p = got; *p; p += strcspn(p, "\n") + 1) {
		unsigned columns = 0;
		for (const char *q = p; *q != '\n'; q++)
			columns += (*q & 0xc0) != 0x80;
		/* The command to copy is never cut. */
		wide += style.width && columns > style.width &&
			strncmp(p, "trace ", 6);
	}
	if (!style.color)
		check_int(wide, 0);
	free(got);
	free(want);
}

static void without_naps(void)
{
	struct trace_writer *w = NULL;
	struct ev_ledger l = {.run_ns = SAMPLE_MS(1000),
			      .spent_ns = SAMPLE_MS(300),
			      .worst_window_ppb = 430000000};
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	trace_put_meta(w, "command", "sleepy --now");
	trace_put_meta(w, "attached", "33 44");
	trace_put_meta(w, "detached", "on SIGINT");
	trace_put_meta(w, "target_ppb", "100000000");
	trace_put_meta(w, "nap_ns", "500000000");
	trace_put_meta(w, "mechanism", "pagescan");
	trace_put_meta(w, "missing", "reads are not seen: no BPF here");
	SAMPLE_PUT(w, EV_PROCESS, 0, 33, (struct ev_process){33, 1, -1, 1});
	SAMPLE_PUT(w, EV_LEDGER, 900, 0, l);
	SAMPLE_PUT(w, EV_COVERAGE, 950, COVER_WATCHED,
		   (struct ev_coverage){1, 8192});
	trace_writer_close(w, NULL);
}

/* A mechanism that does not see reads; no limit; left for no said reason. */
static void writes_only(void)
{
	struct trace_writer *w = NULL;
	struct ev_nap nap = {.size = 5000,
			     .length_ns = SAMPLE_MS(700),
			     .error_ns = SAMPLE_MS(300),
			     .pid = 33,
			     .alloc_stack = 9, /* not in the trace */
			     .ended_syscall = -1,
			     .flags = NAP_WRITES_ONLY | NAP_ENDED_WRITE};
	struct ev_ledger l = {.run_ns = 0};
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	trace_put_meta(w, "command",
		       "a command that is so long that it does "
		       "not fit on a line of eighty columns");
	trace_put_meta(w, "target_ppb", "unlimited");
	trace_put_meta(w, "detached", "1");
	trace_put_meta(w, "elapsed_ns", "90000000000000");
	trace_put_meta(w, "mechanism", "something new");
	SAMPLE_PUT(w, EV_LEDGER, 900, 0, l);
	SAMPLE_PUT(w, EV_NAP, 950, 1, nap);
	trace_writer_close(w, NULL);
}

/* Hardly ran: start-up is no share of that; a nap that was found late. */
static void short_run(void)
{
	struct trace_writer *w = NULL;
	struct ev_nap nap = {.size = 5000,
			     .length_ns = SAMPLE_MS(1220),
			     .error_ns = SAMPLE_MS(1910),
			     .pid = 33,
			     .ended_syscall = -1,
			     .flags = NAP_FREED};
	struct ev_ledger l = {.run_ns = SAMPLE_MS(12),
			      .spent_ns = SAMPLE_MS(9),
			      .mech_ns = {SAMPLE_MS(9)},
			      .nr_stops = 3,
			      .longest_stop_ns = SAMPLE_MS(4)};
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	trace_put_meta(w, "command", "true");
	trace_put_meta(w, "target_ppb", "100000000");
	SAMPLE_PUT(w, EV_LEDGER, 900, 0, l);
	SAMPLE_PUT(w, EV_NAP, 950, 1, nap);
	/* No stack, but watched. */
	SAMPLE_PUT(w, EV_COVERAGE, 960, COVER_WATCHED,
		   (struct ev_coverage){3, 24576});
	SAMPLE_PUT(w, EV_COVERAGE, 960, COVER_NEVER_ARMED,
		   (struct ev_coverage){1, 8192});
	SAMPLE_PUT(w, EV_COVERAGE, 960, COVER_NO_STACK,
		   (struct ev_coverage){2, 16384});
	SAMPLE_PUT(w, EV_COVERAGE, 960, COVER_SHORT_LIVED,
		   (struct ev_coverage){5, 1 << 20});
	trace_writer_close(w, NULL);
}

/* What is charged for a hit is more than it takes in a row. And getting ready
 * is no part of the time for which the command ran. */
static void many_hits(bool attached, uint64_t spent_ns)
{
	struct trace_writer *w = NULL;
	struct ev_ledger l = {.run_ns = SAMPLE_MS(3492),
			      .spent_ns = spent_ns,
			      .mech_ns = {spent_ns}};
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	trace_put_meta(w, "command", "true");
	trace_put_meta(w, "target_ppb", "9223372036854775807");
	if (attached)
		trace_put_meta(w, "attached", "4711");
	SAMPLE_PUT(w, EV_PROCESS, 500, 4711,
		   (struct ev_process){4711, 1, -1, 0});
	SAMPLE_PUT(w, EV_LEDGER, 6300, 0, l);
	trace_writer_close(w, NULL);
}

/* Nothing but a header: the supervisor was killed at once. */
static void empty(void)
{
	struct trace_writer *w = NULL;
	check_int(trace_writer_create(path, 1, &w, NULL), 0);
	trace_writer_destroy(w);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return sample_write(argv[1], NULL) != 0;
	path = scratch_path("x.trace");
	check_int(sample_write(path, NULL), 0);
	golden("80", (struct summary_style){.width = 80});
	golden("40-ascii", (struct summary_style){.width = 40, .ascii = true});
	golden("color", (struct summary_style){.width = 100, .color = true});
	golden("top2-frames1",
	       (struct summary_style){.max_sites = 2, .max_frames = 1});
	without_naps();
	golden("no-naps", (struct summary_style){.width = 80});
	writes_only();
	golden("writes-only", (struct summary_style){.width = 80});
	short_run();
	golden("short", (struct summary_style){.width = 80});
	many_hits(false, SAMPLE_MS(5034));
	golden("many-hits", (struct summary_style){.width = 80});
	many_hits(false, SAMPLE_MS(3488)); /* of which 87201 % are known */
	golden("nearly-all", (struct summary_style){.width = 80});
	many_hits(false, SAMPLE_MS(3150)); /* 921 % */
	golden("most", (struct summary_style){.width = 80});
	many_hits(true, SAMPLE_MS(5034)); /* it did use CPU time */
	golden("many-hits-attached", (struct summary_style){.width = 80});
	empty();
	golden("empty", (struct summary_style){.width = 80});
	return tap_done();
}
