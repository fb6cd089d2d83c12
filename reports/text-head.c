/* The summary's first lines: what ran, what watching it cost, what it wastes.
 */
#include <string.h>

#include "reports/command.h"
#include "reports/names.h"
#include "reports/text.h"
#include "reports/units.h"

static bool is_attached(const struct summary *s, size_t file)
{
	const struct model_process *p = model_root(s, file);
	return trace_meta(s->file[file].reader, "attached") ||
	       (p && p->first_why == 1);
}

/* How the run ended; the ink says how bad that is. */
static enum ink describe_end(const struct summary *s, size_t file, char *buf,
			     size_t size)
{
	const struct model_process *p = model_root(s, file);
	struct trace_reader *r = s->file[file].reader;
	const char *detached = trace_meta(r, "detached");
	char how[NAMES_MAX];
	if (p && p->has_ended) {
		snprintf(buf, size, "%s", names_exit(p->exit_status, how));
		return p->exit_status ? INK_WARN : INK_NONE;
	}
	if (detached && *detached && strcmp(detached, "1")) {
		snprintf(buf, size, "left %.200s", detached);
		return INK_NONE;
	}
	if (!detached && (trace_is_truncated(r) || trace_nr_damaged(r))) {
		snprintf(buf, size, "how it ended is not in the trace");
		return INK_WARN;
	}
	snprintf(buf, size, "left running");
	return INK_NONE;
}

/* How long a command ran: not while we got ready for it, which takes a tenth of
 * a second. For how long it was watched, where we came to it. */
static uint64_t time_of(const struct summary *s, size_t file)
{
	const struct model_process *p = model_root(s, file);
	uint64_t all_ns = s->file[file].duration_ns;
	bool is_known = p && !is_attached(s, file) && p->start_ns < all_ns;
	return is_known ? all_ns - p->start_ns : all_ns;
}

static void run(const struct view *v, size_t file)
{
	const struct summary *s = v->s;
	struct trace_reader *r = s->file[file].reader;
	char end[NAMES_MAX], time[UNITS_MAX], ran[NAMES_MAX];
	_cleanup_free_ char *command = command_shown(r);
	const char *pids = trace_meta(r, "attached");
	struct line l;
	enum ink ink = describe_end(s, file, end, sizeof(end));
	snprintf(ran, sizeof(ran), "%s %s,",
		 is_attached(s, file) ? "watched for" : "ran",
		 units_duration(time_of(s, file), time));

	/* The facts stay visible however long the command is. */
	unsigned tail = line_columns(ran) + line_columns(end) + 4;
	struct page narrow = v->page;
	if (narrow.width > tail + 20)
		narrow.width -= tail;
	else if (narrow.width > 1)
		narrow.width -= 1;
	line_begin(&l, &narrow, 0, "", INK_NONE, 0);
	if (s->nr_files > 1 && s->file[file].name) {
		line_add(&l, INK_NONE, s->file[file].name);
		line_add(&l, INK_NONE, ": ");
	}
	if (command && *command)
		line_add(&l, INK_BOLD, command);
	if (pids && *pids)
		line_addf(&l, INK_NONE, "%spid %s", command ? ", " : "", pids);
	else if (!command || !*command)
		line_add(&l, INK_NONE, "(command not in the trace)");
	line_widen(&l, &v->page);
	line_add(&l, INK_NONE, ":");
	line_words(&l, INK_NONE, ran);
	line_words(&l, ink, end);
	line_end(&l);
}

void text_head(const struct view *v)
{
	const struct summary *s = v->s;
	size_t max = v->style->max_sites, nr = s->nr_files;
	for (size_t i = 0; i < nr && (!max || i < max); i++)
		run(v, i);
	if (max && nr > max)
		text_paragraph(v, "", INK_DIM, "%s %zu more trace%s (--top)",
			       v->dots, nr - max, plural(nr - max));
}

/* ------------------------------------------------------------- overhead --- */

static void mechanisms(const struct view *v, const struct ev_ledger *last)
{
	char percent[UNITS_MAX], text[NAMES_MAX];
	bool any = false;
	struct line l;
	text_begin(v, &l, "");
	for (size_t i = 0; i < ARRAY_SIZE(last->mech_ns); i++) {
		units_percent(model_overhead_ppb(last, last->mech_ns[i]),
			      percent);
		if (!strcmp(percent, "0 %"))
			continue;
		snprintf(text, sizeof(text), "%s %s", names_mech(i), percent);
		line_item(&l, INK_NONE, ", ", text);
		any = true;
	}
	if (any)
		line_end(&l);
	else
		line_discard(&l);
}

/* What starting to watch a process costs is a share of nothing where that
 * process hardly ran. */
#define SHORT_NS (100 * NSEC_PER_MSEC)

static uint64_t short_ns(const struct view *v)
{
	return (v->s->nr_processes ? v->s->nr_processes : 1) * SHORT_NS;
}

static bool is_short(const struct view *v, const struct ev_ledger *last)
{
	return last->run_ns < last->spent_ns ||
	       last->run_ns - last->spent_ns < short_ns(v);
}

/*
 * Of what it ran nothing, or less, is left if what was spent is taken off, or
 * so little that what is spent is not known as exactly.
 */
static bool is_all(const struct view *v, const struct ev_ledger *last)
{
	return last->run_ns &&
	       (last->run_ns <= last->spent_ns ||
		last->run_ns - last->spent_ns < last->spent_ns / 10) &&
	       last->spent_ns >= short_ns(v);
}

static void short_run(const struct view *v, const struct ev_ledger *last)
{
	char ran[UNITS_MAX], cost[UNITS_MAX], most[UNITS_MAX], limit[64] = "";
	uint64_t target = model_meta_u64(v->s, "target_ppb", UINT64_MAX);
	if (target < INT64_MAX)
		snprintf(limit, sizeof(limit), " (at most %s wanted)",
			 units_percent((int64_t)target, most));
	units_duration(last->spent_ns, cost);
	/* Many hits, each of which took less than when it was measured. */
	if (is_all(v, last)) {
		text_paragraph(v, "overhead", INK_WARN,
			       "several times the program's own time%s: of the "
			       "%s that its threads ran, watching it took %s "
			       "or nearly all",
			       limit, units_duration(last->run_ns, ran), cost);
		return;
	}
	uint64_t own = last->run_ns > last->spent_ns
			       ? last->run_ns - last->spent_ns
			       : 0;
	text_paragraph(v, "overhead", INK_NONE,
		       "too short to judge%s: ran %s by itself, and watching "
		       "it cost %s, most of that once for each start of a "
		       "program",
		       limit, units_duration(own, ran), cost);
}

static void stops(const struct view *v, const struct ev_ledger *last)
{
	char number[UNITS_MAX], of[UNITS_MAX], time[UNITS_MAX];
	const char *what_for = trace_meta(v->s->reader, "longest_stop");
	uint64_t signals = model_meta_u64(v->s, "signal_stops", 0);
	/* Few need not be told: they are not what stops cost. */
	bool many = signals > last->nr_stops / 2;
	if (last->nr_stops)
		text_paragraph(v, "", INK_DIM,
			       "%s stop%s, %s%sthe longest %s%s%s",
			       units_count(last->nr_stops, number),
			       plural(last->nr_stops),
			       many ? units_count(signals, of) : "",
			       many ? " of them for signals of the program's "
				      "own, which nobody who traces it can "
				      "avoid, "
				    : "",
			       units_duration(last->longest_stop_ns, time),
			       what_for ? ", " : "", what_for ? what_for : "");
}

void text_overhead(const struct view *v)
{
	const struct summary *s = v->s;
	char number[UNITS_MAX];
	struct line l;
	if (!s->has_overhead) {
		text_paragraph(v, "overhead", INK_WARN,
			       "unknown: the trace has no account of it");
		return;
	}
	const struct ev_ledger *last = &s->overhead;
	if (is_all(v, last) ||
	    (last->run_ns && is_short(v, last) && !is_attached(s, 0))) {
		short_run(v, last);
		stops(v, last);
		return;
	}
	int64_t got = model_overhead_ppb(last, last->spent_ns);
	uint64_t meta = model_meta_u64(s, "target_ppb", UINT64_MAX);
	bool limited = meta < INT64_MAX;
	int64_t target = limited ? (int64_t)meta : 0;
	/* The promise: at most a point or a tenth above the target. */
	int64_t slack = target / 10 > 10000000 ? target / 10 : 10000000;
	bool over = limited && got > target + slack;

	text_begin(v, &l, "overhead");
	if (got < 0)
		line_add(&l, INK_NONE, "none: the program used no CPU time");
	else
		line_add(&l, over ? INK_BAD : INK_GOOD,
			 units_percent(got, number));
	if (limited) {
		line_item(&l, INK_NONE, got < 0 ? ", " : " ", "of at most");
		line_item(&l, INK_NONE, " ", units_percent(target, number));
	}
	if (over)
		line_item(&l, INK_BAD, ", ", "above the target");
	if (got >= 0) {
		line_item(&l, INK_NONE, ", ", "worst 10 s window");
		line_item(&l, INK_NONE, " ",
			  units_percent(last->worst_window_ppb, number));
	}
	line_end(&l);
	mechanisms(v, last);
	stops(v, last);
}

/* --------------------------------------------------------------- unused --- */

static void nothing_unused(const struct view *v, uint64_t nap_ns)
{
	const struct ev_coverage *c = &v->s->coverage[COVER_WATCHED];
	char bytes[UNITS_MAX], count[UNITS_MAX], time[UNITS_MAX];
	if (!c->nr_objects) {
		text_paragraph(v, "unused", INK_WARN,
			       "unknown: no block was watched, see coverage");
		return;
	}
	text_paragraph(v, "unused", INK_GOOD,
		       "nothing: no watched block went without access for %s",
		       nap_ns ? units_duration(nap_ns, time) : "long");
	text_paragraph(v, "", INK_NONE, "%s block%s, %s, watched",
		       units_count(c->nr_objects, count), plural(c->nr_objects),
		       units_bytes(c->bytes, bytes));
}

/* What the sums below do not hold, because of the options. */
static void left_out(const struct view *v)
{
	const struct summary *s = v->s;
	char count[UNITS_MAX], bytes[UNITS_MAX];
	if (s->suppressed.nr)
		text_paragraph(v, "", INK_NONE,
			       "%s nap%s with %s suppressed (--suppressions)",
			       units_count(s->suppressed.nr, count),
			       plural(s->suppressed.nr),
			       units_byte_seconds(s->suppressed.byte_seconds,
						  v->page.ascii, bytes));
	if (select_any_nap(&s->select))
		text_paragraph(v, "", INK_NONE,
			       "%s other nap%s not selected; allocations, "
			       "coverage and overhead are those of the whole "
			       "run",
			       units_count(s->nr_left_out, count),
			       plural(s->nr_left_out));
}

void text_unused(const struct view *v, const struct model_sites *sites)
{
	const struct summary *s = v->s;
	const struct nap_sum *sum = &s->sum;
	char bytes[UNITS_MAX], count[UNITS_MAX], time[UNITS_MAX] = "";
	char places[UNITS_MAX];
	uint64_t nap_ns = model_meta_u64(s, "nap_ns", 0);
	uint64_t lasting = sum->nr_by_end[END_NEVER];
	size_t nr = 0;
	struct line l;
	if (!sum->nr && (s->nr_left_out || s->suppressed.nr))
		text_paragraph(v, "unused", INK_NONE, "nothing selected");
	else if (!sum->nr)
		nothing_unused(v, nap_ns);
	if (!sum->nr) {
		left_out(v);
		return;
	}
	while (nr < sites->nr && sites->site[nr].sum.nr)
		nr++;
	text_begin(v, &l, "unused");
	if (lasting) {
		line_add(&l, INK_BOLD, units_bytes(sum->unused_bytes, bytes));
		line_item(&l, INK_NONE, " ", "in");
		line_item(&l, INK_NONE, " ", units_count(lasting, count));
		line_words(&l, INK_NONE,
			   lasting == 1 ? "block still unused at the end"
					: "blocks still unused at the end");
	} else {
		line_words(&l, INK_NONE,
			   "nothing at the end: all of it was used again or "
			   "freed");
	}
	line_end(&l);
	if (nap_ns)
		units_duration(nap_ns, time);
	text_paragraph(
		v, "", INK_NONE, "%s in %s nap%s%s%s at %s allocation site%s",
		units_byte_seconds(sum->byte_seconds, v->page.ascii, bytes),
		units_count(sum->nr, count), plural(sum->nr),
		*time ? " of at least " : "", time, units_count(nr, places),
		plural(nr));
	if (sum->nr_writes_only)
		text_paragraph(v, "", INK_WARN,
			       "reads could not be seen: what is only read "
			       "counts as unused here");
	if (sum->nr_head_unseen) {
		units_count(sum->nr_head_unseen, count);
		text_paragraph(v, "", INK_WARN,
			       "in %s of these naps the block's beginning (16 "
			       "KiB, or a huge page) could not be watched: it "
			       "lies directly above a stack that was sampled",
			       count);
	}
	left_out(v);
}
