/*
 * The page of smco-report --html: that nothing a trace says gets out of its
 * data, and that the data say what --json does. `u-html PARTS NAPS PATH` writes
 * the session to PATH, for the shell tests.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "reports/asleep.h"
#include "reports/html.h"
#include "reports/model.h"
#include "reports/top-naps.h"
#include "t/unit/html-sample.h"
#include "t/unit/scratch.h"
#include "t/unit/tap.h"
#include "t/unit/terse-read.h"

#define NAPS 200

static const char *path;

static struct summary *load(size_t nr_files, size_t nr_buckets)
{
	struct summary_input input[2] = {{.name = "x"}, {.name = "y"}};
	struct select select = {.nr_buckets = nr_buckets, .phase_sums = true};
	struct summary *s = NULL;
	for (size_t i = 0; i < nr_files; i++)
		check_int(trace_reader_open(path, &input[i].reader, NULL), 0);
	check_int(summary_load_files(input, nr_files, &select, &s, NULL), 0);
	for (size_t i = 0; i < nr_files; i++)
		trace_reader_close(input[i].reader);
	return s;
}

static size_t count(const char *text, const char *what)
{
	size_t nr = 0;
	for (; (text = strcasestr(text, what)) != NULL; text++)
		nr++;
	return nr;
}

static char *page_of(const struct summary *s)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	check_int(html_print(s, f, NULL), 0);
	fclose(f);
	check_int(strlen(text), size);
	return text;
}

/* The page's data, strips apart; NULL if they are not JSON. */
static json_t *data_of(const char *page)
{
	json_t *report = terse_read(page);
	json_t *strips = json_incref(json_object_get(report, "strips"));
	if (!strips || json_object_del(report, "strips"))
		return NULL;
	return json_pack("{s:o,s:o}", "report", report, "strips", strips);
}

static json_t *document_of(const struct summary *s,
			   const struct summary_limits *limits)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	if (limits)
		check_int(summary_print_json_some(s, limits, f, NULL), 0);
	else
		check_int(summary_print_json(s, f, NULL), 0);
	fclose(f);
	json_t *v = json_loadb(text, size, 0, NULL);
	free(text);
	return v;
}

static void check_markup(void)
{
	struct summary *s = load(1, HTML_BUCKETS);
	char *page = page_of(s);
	check(!strncmp(page, "<!DOCTYPE html>\n", 16));
	check_int(count(page, "<script"), count(page, "id=\"data-") + 1);
	check_int(count(page, "</script"), count(page, "<script"));
	check_int(count(page, "<!--"), 0);
	check_int(count(page, "<img"), 0);
	check_int(count(page, "http"), 1); /* http-equiv */
	check_int(count(page, "default-src 'none'"), 1);
	check_int(count(page, "sha256-"), 2);
	check_int(count(page, "unsafe"), 0);
	check_int(count(page, "</body></html>"), 1);
	check(count(page, "\\u003c/script>") > 2);
	free(page);
	summary_free(s);
}

/* What the page has is what --json has. */
static void check_same(void)
{
	struct summary *fine = load(1, HTML_BUCKETS), *s = load(1, 0);
	char *page = page_of(fine);
	json_t *data = data_of(page), *want = document_of(s, NULL), *v;
	json_t *report = json_object_get(data, "report");
	const char *key;
	check(report && want);
	json_object_foreach(want, key, v)
	{
		json_t *have = json_object_get(report, key);
		if (!strcmp(key, "counters")) {
			json_object_del(json_array_get(v, 0), "series");
			json_object_del(json_array_get(have, 0), "series");
		}
		if (!json_equal(v, have))
			printf("# %s differs\n", key);
		check(json_equal(v, have));
	}
	check_int(json_object_size(report), json_object_size(want) + 1);
	check_int(json_array_size(json_object_get(want, "naps")), NAPS);
	json_object_foreach(json_object_get(report, "left_out"), key, v)
		check_int(json_integer_value(v), 0);
	json_decref(data);
	json_decref(want);
	free(page);
	summary_free(fine);
	summary_free(s);
}

static double real_at(json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static double sum_of(json_t *array)
{
	double sum = 0;
	for (size_t i = 0; i < json_array_size(array); i++)
		sum += json_number_value(json_array_get(array, i));
	return sum;
}

/* Buckets of counters add up to their counts. */
static void check_series(json_t *report)
{
	json_t *c = json_array_get(json_object_get(report, "counters"), 0);
	json_t *series = json_object_get(c, "series");
	json_t *lines = json_object_get(series, "scaled");
	check_int(json_array_size(lines), 5);
	check(json_array_size(json_array_get(lines, 0)) > 2000);
	for (size_t i = 0; i < json_array_size(lines); i++) {
		json_t *n = json_array_get(json_object_get(c, "counts"), i);
		double want = real_at(n, "scaled");
		double have = sum_of(json_array_get(lines, i));
		check(want > 0 && fabs(have - want) < want * 1e-6);
	}
}

/* Bytes over time add up to byte seconds, of a site and of all. */
static void check_asleep(json_t *report, json_t *strip, size_t nr_files)
{
	json_t *sites = json_object_get(report, "sites");
	json_t *lists = json_object_get(strip, "sites");
	double bucket_s = real_at(strip, "bucket_ns") / 1e9, all = 0;
	check_int(json_array_size(lists), json_array_size(sites));
	check_int(json_array_size(sites), 5);
	for (size_t i = 0; i < json_array_size(sites); i++) {
		json_t *site = json_array_get(sites, i);
		json_t *unused = json_object_get(site, "unused");
		json_t *own = json_array_get(lists, i);
		json_t *sums = json_array_get(own, 0);
		json_t *asleep = json_array_get(own, 1);
		double nr = (double)nr_files;
		double want = real_at(unused, "byte_seconds") / nr;
		double have =
			sum_of(json_object_get(asleep, "bytes")) * bucket_s;
		check(fabs(have - want) < want * 1e-4);
		check(fabs(real_at(sums, "byte_seconds") - want) < 1);
		check(fabs(real_at(sums, "naps") -
			   real_at(unused, "naps") / nr) < 0.1);
		check(fabs(real_at(sums, "allocations") -
			   real_at(site, "allocations") / nr) < 0.1);
		all += have;
	}
	double total = sum_of(json_object_get(json_object_get(strip, "asleep"),
					      "bytes")) *
		       bucket_s;
	check(fabs(total - all) < all * 1e-4);
}

static void check_strips(size_t nr_files)
{
	struct summary *s = load(nr_files, HTML_BUCKETS);
	char *page = page_of(s);
	json_t *data = data_of(page), *report = json_object_get(data, "report");
	json_t *strips = json_object_get(data, "strips");
	check_int(json_array_size(strips), nr_files);
	check_series(report);
	for (size_t i = 0; i < nr_files; i++)
		check_asleep(report, json_array_get(strips, i), nr_files);
	json_decref(data);
	free(page);
	summary_free(s);
}

static bool has_stack(json_t *doc, json_t *id)
{
	json_t *stacks = json_object_get(doc, "stacks"), *v;
	size_t i;
	if (json_is_null(id))
		return true;
	json_array_foreach(
		stacks, i,
		v) if (json_equal(json_object_get(v, "id"), id)) return true;
	return false;
}

/* Of three threads in phases two; their pieces are fewer, not their sums. */
static void check_phase_limits(json_t *doc, json_t *all)
{
	json_t *out = json_object_get(doc, "left_out");
	size_t nr_tracks = 0, i, k, n;
	json_t *phase, *track, *piece;
	check_int((long)real_at(out, "phase_threads"), 1);
	json_array_foreach(json_object_get(doc, "phases"), i, phase)
	{
		json_t *whole =
			json_array_get(json_object_get(all, "phases"), i);
		json_t *when = json_object_get(phase, "when");
		check(json_equal(json_object_get(phase, "files"),
				 json_object_get(whole, "files")));
		json_array_foreach(when, k, track)
		{
			json_t *pieces = json_object_get(track, "pieces");
			json_t *before = json_object_get(
				json_array_get(json_object_get(whole, "when"),
					       k),
				"pieces");
			double sums[2] = {0};
			json_array_foreach(pieces, n, piece) sums[0] +=
				json_number_value(json_array_get(piece, 2));
			json_array_foreach(before, n, piece) sums[1] +=
				json_number_value(json_array_get(piece, 2));
			check(json_array_size(pieces) <= 8);
			check(json_array_size(before) > 8);
			check(fabs(sums[0] - sums[1]) < 10);
			nr_tracks++;
		}
	}
	check_int(nr_tracks, 2);
}

static void check_limits(void)
{
	struct summary *s = load(1, 0);
	struct summary_limits limits = {.sites = 2,
					.naps = 7,
					.threads = 1,
					.pieces = 16,
					.ledger = 10};
	json_t *doc = document_of(s, &limits), *v, *all = document_of(s, NULL);
	json_t *out = json_object_get(doc, "left_out");
	json_t *ledger = json_object_get(doc, "ledger");
	size_t i;
	check_int(json_array_size(json_object_get(doc, "sites")), 2);
	check_int((long)real_at(out, "sites"), 3);
	check_int((long)real_at(out, "naps"), NAPS - 7);
	check_int((long)real_at(out, "threads"), 1);
	check_int((long)real_at(out, "ranges"), 0);
	check_phase_limits(doc, all);
	check_int((long)real_at(out, "ledger") + (long)json_array_size(ledger),
		  60);
	check(json_array_size(ledger) <= 11);
	check(json_equal(json_array_get(ledger, json_array_size(ledger) - 1),
			 json_array_get(json_object_get(all, "ledger"), 59)));
	double least = INFINITY;
	json_array_foreach(json_object_get(doc, "naps"), i, v)
	{
		least = fmin(least,
			     real_at(v, "size") * real_at(v, "length_ns"));
		check(has_stack(doc, json_object_get(v, "alloc_stack")));
		check(has_stack(doc, json_object_get(v, "ended_stack")));
	}
	check_int(i, 7);
	size_t nr_larger = 0;
	json_array_foreach(json_object_get(all, "naps"), i, v) nr_larger +=
		real_at(v, "size") * real_at(v, "length_ns") > least;
	check(nr_larger < 7);
	json_decref(doc);
	json_decref(all);
	summary_free(s);
}

/* Against adding up nanosecond by nanosecond, in small. */
static void check_buckets(void)
{
	enum { LENGTH = 1000 };
	double want[LENGTH] = {0}, got[LENGTH];
	struct asleep a;
	uint32_t seed = 1;
	check_int(asleep_init(&a, LENGTH - 1, 37), 0);
	check(a.nr <= 37 && a.nr * a.bucket_ns >= LENGTH - 1);
	for (int i = 0; i < 500; i++) {
		seed = seed * 1103515245 + 12345;
		uint64_t start = (seed >> 8) % 1100;
		uint64_t length = (seed >> 18) % 300;
		asleep_add(&a, start, length, i);
		for (uint64_t t = start; t < start + length; t++)
			if (t < a.nr * a.bucket_ns)
				want[t / a.bucket_ns] +=
					(double)i / (double)a.bucket_ns;
	}
	asleep_read(&a, got);
	bool same = true;
	for (size_t i = 0; i < a.nr; i++)
		same &= fabs(want[i] - got[i]) < 1e-6;
	check(same);
	asleep_clear(&a);
	asleep_add(&a, 5, UINT64_MAX, 1); /* hostile */
	asleep_add(&a, UINT64_MAX - 1, UINT64_MAX, 1);
	asleep_read(&a, got);
	check(fabs(got[a.nr - 1] - 1) < 1e-9);
	asleep_deinit(&a);
}

static void check_top(void)
{
	struct summary *s = load(1, 0);
	struct top_naps top;
	for (size_t max = 0; max < 2 * NAPS; max += 23) {
		check_int(top_naps(s, max, &top), 0);
		check_int(top.nr, max && max < NAPS ? max : NAPS);
		bool rising = true;
		for (size_t i = 1; i < top.nr; i++)
			rising &=
				top_naps_at(&top, i) > top_naps_at(&top, i - 1);
		check(rising);
		top_naps_free(&top);
	}
	summary_free(s);
}

static void check_full_disk(void)
{
	struct summary *s = load(1, 0);
	struct smco_err err = {0};
	FILE *f = fopen("/dev/full", "w");
	check_int(html_print(s, f, &err), SMCO_SYS);
	fclose(f);
	summary_free(s);
}

int main(int argc, char **argv)
{
	if (argc == 4)
		return html_sample_write(argv[3],
					 (unsigned)strtoul(argv[1], NULL, 0),
					 (unsigned)strtoul(argv[2], NULL, 0))
			       ? 1
			       : 0;
	path = scratch_path("run.trace");
	check_int(html_sample_write(path, 15 + HTML_PHASES, NAPS), 0);
	check_markup();
	check_same();
	check_strips(1);
	check_strips(2);
	check_limits();
	check_top();
	check_buckets();
	check_full_disk();
	return tap_done();
}
