/* The JSON document, parsed back, says what the sample session was. */
#include "t/unit/tap.h"

#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "reports/summary.h"
#include "t/unit/scratch.h"
#include "t/unit/trace-sample.h"

static const char *path;

/* @how it is parsed: jansson's integers are signed. */
static json_t *load(size_t how)
{
	struct trace_reader *r = NULL;
	struct summary *s = NULL;
	char *text = NULL;
	size_t size;
	json_error_t error;
	check_int(trace_reader_open(path, &r, NULL), 0);
	check_int(summary_load(r, &s, NULL), 0);
	trace_reader_close(r);
	FILE *f = open_memstream(&text, &size);
	check_int(summary_print_json(s, f, NULL), 0);
	fclose(f);
	summary_free(s);
	json_t *doc =
		json_loadb(text, size, JSON_REJECT_DUPLICATES | how, &error);
	if (!check_msg(doc != NULL, "it is JSON"))
		printf("# %s, line %d\n", error.text, error.line);
	free(text);
	return doc;
}

/* Value at "a.b.0.c". */
static json_t *at(json_t *v, const char *where)
{
	char key[64];
	while (v && *where) {
		size_t n = strcspn(where, ".");
		snprintf(key, sizeof(key), "%.*s", (int)n, where);
		v = json_is_array(v) ? json_array_get(v, strtoul(key, NULL, 10))
				     : json_object_get(v, key);
		where += n + (where[n] == '.');
	}
	return v;
}
#define INT(where) json_integer_value(at(doc, where))
#define STR(where) json_string_value(at(doc, where))
#define LEN(where) json_array_size(at(doc, where))

static json_t *find(json_t *array, const char *key, json_int_t value)
{
	size_t i;
	json_t *v;
	json_array_foreach(array, i, v) if (json_integer_value(json_object_get(
						    v, key)) == value) return v;
	return NULL;
}

static void sites(json_t *doc)
{
	/* 1; 2 and 3 look alike; 4; unknown */
	check_int(LEN("sites"), 4);
	check_int(INT("sites.0.stacks.0"), 1);
	check_str(STR("sites.0.frames.0.function"), "cache_fill");
	check_str(STR("sites.0.frames.0.file"),
		  "/build/server-1.2/src/cache.c");
	check_int(INT("sites.0.frames.0.line"), 212);
	check_str(STR("sites.0.frames.0.build_id"), "c0ffee");
	check_str(STR("sites.0.frames.0.offset"), "0x1010");
	check_int(INT("sites.0.allocations"), 17);
	check_int(INT("sites.0.unused.naps"), 2);
	check_int(INT("sites.0.unused.blocks"), 1);
	check_int(INT("sites.0.unused.unused_bytes"), 64 << 20);
	check_int(INT("sites.0.unused.longest_ns"), SAMPLE_MS(39200));
	check_range(json_real_value(at(doc, "sites.0.unused.byte_seconds")),
		    59.2 * (64 << 20) - 1, 59.2 * (64 << 20) + 1);
	check_int(INT("sites.0.ended_by.read.stack"), 5);
	check_int(INT("sites.0.ended_by.read.naps"), 1);
	check_int(INT("sites.0.last_used_by.stack"), 6);
	check_int(INT("sites.0.last_used_by.naps"), 2);
	check_int(LEN("sites.1.stacks"), 2);
	check_int(INT("sites.1.allocations"), 14006);
	check_int(INT("sites.1.unused.never_accessed"), 12);
	check_str(STR("sites.1.ended_by.syscall.syscall"), "write");
	check_int(INT("sites.1.ended_by.syscall.seen_nearby"), 12);
	check(json_is_true(at(doc, "sites.1.frames.0.inlined")));
}

static void naps(json_t *doc)
{
	json_t *stale = NULL, *v;
	size_t i;
	check_int(LEN("naps"), 16);
	json_array_foreach(at(doc, "naps"), i,
			   v) if (json_integer_value(at(v, "start_ns")) ==
				  (json_int_t)SAMPLE_MS(22000)) stale = v;
	check(stale != NULL);
	check_int(json_integer_value(at(stale, "object")), 1);
	check_str(json_string_value(at(stale, "addr")), "0x7f0000000000");
	check_int(json_integer_value(at(stale, "size")), 64 << 20);
	check_int(json_integer_value(at(stale, "length_ns")), SAMPLE_MS(39200));
	check_int(json_integer_value(at(stale, "error_ns")), SAMPLE_MS(10));
	check_int(json_integer_value(at(stale, "pid")), 4711);
	check_int(json_integer_value(at(stale, "alloc_stack")), 1);
	check_str(json_string_value(at(stale, "ended")), "never");
	check(json_is_null(at(stale, "ended_stack")));
	check(json_is_null(at(stale, "syscall")));
	check(json_is_false(at(stale, "never_accessed")));
}

static void rest(json_t *doc)
{
	json_t *child = find(at(doc, "processes"), "pid", 4712);
	check_int(INT("schema"), 1);
	check_str(STR("run.command"), "./server --port 7000");
	check_int(INT("run.duration_ns"), SAMPLE_MS(61200));
	check(json_is_false(at(doc, "run.truncated")));
	check_str(STR("meta.mechanism"), "pagescan");
	check_int(INT("target_ppb"), 50000000);
	check_int(INT("overhead.overhead_ppb"), 48109966);
	check_int(INT("overhead.by_mechanism_ns.cpu"), SAMPLE_MS(800));
	check_int(LEN("ledger"), 2);
	check_int(INT("ledger.0.time_ns"), SAMPLE_MS(30000));
	check_int(INT("ledger.0.stops"), 7000);
	check_int(LEN("coverage"), 3);
	check_str(STR("coverage.1.why"), "never_armed");
	check_int(INT("coverage.1.bytes"), 200 << 20);
	check_int(LEN("processes"), 4);
	check_str(json_string_value(at(child, "command")), "./server: worker");
	check_int(json_integer_value(at(child, "signal")), 9);
	check(json_is_null(at(child, "exit_status")));
	check_int(json_integer_value(at(child, "unused.naps")), 14);
	check_int(INT("unused.naps"), 16);
	check_int(INT("unused.ended.syscall"), 12);
	check_int(INT("unused.ended.freed"), 2);
	/* Every stack that is referred to is there. */
	check_int(LEN("stacks"), 6);
	json_t *scan = find(at(doc, "stacks"), "id", 5);
	check_str(json_string_value(at(scan, "frames.0.function")),
		  "cache_scan");
}

/* What is not UTF-8, or a number that JSON readers could not hold. */
static void odd(void)
{
	struct trace_writer *w = NULL;
	trace_writer_create(path, 1, &w, NULL);
	trace_put_meta(w, "command", "\xff\"\\\t\xc3\xa9");
	trace_put_meta(w, "target_ppb", "9223372036854775807");
	struct ev_nap nap = {.size = UINT64_MAX, .length_ns = UINT64_MAX};
	SAMPLE_PUT(w, EV_NAP, 1, 1, nap);
	trace_writer_close(w, NULL);
	json_t *doc = load(JSON_DECODE_INT_AS_REAL);
	check_str(STR("run.command"), "\xef\xbf\xbd\"\\\t\xc3\xa9");
	check(json_is_null(at(doc, "target_ppb")));
	check(json_is_null(at(doc, "overhead")));
	check_range(json_real_value(at(doc, "naps.0.size")), 1.8e19, 1.9e19);
	json_decref(doc);
}

/* An output that cannot be written is an error, not a short document. */
static void full(void)
{
	struct trace_reader *r = NULL;
	struct summary *s = NULL;
	struct smco_err err = {0};
	FILE *f = fopen("/dev/full", "w");
	setvbuf(f, NULL, _IONBF, 0);
	check_int(trace_reader_open(path, &r, NULL), 0);
	check_int(summary_load(r, &s, NULL), 0);
	check_int(summary_print_json(s, f, &err), SMCO_SYS);
	fclose(f);
	summary_free(s);
	trace_reader_close(r);
}

int main(void)
{
	path = scratch_path("x.trace");
	check_int(sample_write(path, NULL), 0);
	json_t *doc = load(0);
	sites(doc);
	naps(doc);
	rest(doc);
	json_decref(doc);
	odd();
	full();
	return tap_done();
}
