/* The summary for a person: what they need first, stands first. */
#include "reports/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reports/line.h"
#include "reports/model.h"
#include "reports/names.h"
#include "reports/units.h"

#define LABEL_COL 11 /* where texts behind a label start */
#define SITE_COL  4  /* where texts of a site start */
#define PART_COL  14 /* where stacks of a site start */

struct view {
	const struct summary *s;
	const struct summary_style *style;
	struct page page;
	const char *trace_path;
	const char *arrow; /* before a caller */
};

static void begin(const struct view *v, struct line *l, const char *label)
{
	line_begin(l, &v->page, 0, label, INK_BOLD, LABEL_COL);
}

static void blank(const struct view *v)
{
	fputc('\n', v->page.out);
}

/* A whole paragraph behind @label. */
static void paragraph(const struct view *v, const char *label, enum ink ink,
		      const char *text)
{
	struct line l;
	begin(v, &l, label);
	line_words(&l, ink, text);
	line_end(&l);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* ----------------------------------------------------------------- head --- */

static const struct model_process *root(const struct summary *s)
{
	return s->nr_processes ? &s->process[0] : NULL;
}

static bool is_attached(const struct summary *s)
{
	const struct model_process *p = root(s);
	return trace_meta(s->reader, "attached") || (p && p->first_why == 1);
}

/* How the run ended; *ink_ret says how bad that is. */
static void describe_end(const struct view *v, char *buf, size_t size,
			 enum ink *ink_ret)
{
	const struct summary *s = v->s;
	const struct model_process *p = root(s);
	const char *detached = trace_meta(s->reader, "detached");
	char how[NAMES_MAX];
	*ink_ret = INK_NONE;
	if (p && p->has_ended) {
		names_exit(p->exit_status, how);
		snprintf(buf, size, "%s", how);
		if (p->exit_status)
			*ink_ret = INK_WARN;
	} else if (detached) {
		snprintf(buf, size, "left %.200s", detached);
	} else if (trace_is_truncated(s->reader)) {
		snprintf(buf, size, "still running, or the trace is cut short");
		*ink_ret = INK_WARN;
	} else {
		snprintf(buf, size, "left");
	}
}

static void print_head(const struct view *v)
{
	const struct summary *s = v->s;
	struct line l;
	enum ink ink;
	char end[NAMES_MAX], time[UNITS_MAX], text[2 * NAMES_MAX];
	const char *command = trace_meta(s->reader, "command");
	const char *pids = trace_meta(s->reader, "attached");
	describe_end(v, end, sizeof(end), &ink);
	units_duration(s->duration_ns, time);

	/* The facts must stay visible however long the command is. */
	snprintf(text, sizeof(text), "%s %s, %s",
		 is_attached(s) ? "watched for" : "ran", time, end);
	unsigned tail = line_columns(text) + 2;
	struct page page = v->page;
	if (page.width && page.width > tail + 20)
		page.width -= tail;
	line_begin(&l, &page, 0, "", INK_NONE, 0);
	line_add(&l, INK_BOLD, command && *command ? command : "(unknown)");
	if (pids && *pids)
		line_addf(&l, INK_NONE, " (pid %s)", pids);
	l.page = &v->page;
	l.full = false;
	line_addf(&l, INK_NONE, ": %s %s, ",
		  is_attached(s) ? "watched for" : "ran", time);
	line_add(&l, ink, end);
	line_end(&l);
}

/* ------------------------------------------------------------- overhead --- */

static void print_mechanisms(const struct view *v, const struct ev_ledger *last)
{
	struct line l;
	bool any = false;
	begin(v, &l, "");
	for (size_t i = 0; i < ARRAY_SIZE(last->mech_ns); i++) {
		char percent[UNITS_MAX], text[NAMES_MAX];
		if (!last->mech_ns[i])
			continue;
		units_percent(model_overhead_ppb(last, last->mech_ns[i]),
			      percent);
		snprintf(text, sizeof(text), "%s %s", names_mech(i), percent);
		line_item(&l, INK_NONE, ", ", text);
		any = true;
	}
	if (!any)
		line_add(&l, INK_DIM, "nothing was charged to the program");
	line_end(&l);
}

static void print_overhead(const struct view *v)
{
	const struct summary *s = v->s;
	if (!s->nr_ledger) {
		paragraph(v, "overhead", INK_WARN,
			  "unknown: the trace has no account of it");
		return;
	}
	const struct ev_ledger *last = &s->ledger[s->nr_ledger - 1].ledger;
	int64_t got = model_overhead_ppb(last, last->spent_ns);
	uint64_t meta = model_meta_u64(s, "target_ppb", UINT64_MAX);
	bool unlimited = meta >= INT64_MAX;
	int64_t target = unlimited ? 0 : (int64_t)meta;
	char number[UNITS_MAX], count[UNITS_MAX];
	struct line l;

	begin(v, &l, "overhead");
	/* The promise: at most a point or a tenth above the target. */
	int64_t slack = target / 10 > 10000000 ? target / 10 : 10000000;
	bool over = !unlimited && got > target + slack;
	if (got < 0)
		line_add(&l, INK_NONE,
			 "none measured: the program did not run");
	else
		line_add(&l, over ? INK_BAD : INK_GOOD,
			 units_percent(got, number));
	if (!unlimited) {
		line_item(&l, INK_NONE, " ", "of at most");
		line_item(&l, INK_NONE, " ", units_percent(target, number));
	}
	if (over)
		line_item(&l, INK_BAD, ", ", "above the target");
	line_item(&l, INK_NONE, ", ", "worst 10 s");
	line_item(&l, INK_NONE, " ",
		  units_percent(last->worst_window_ppb, number));
	line_end(&l);
	print_mechanisms(v, last);
	if (!last->nr_stops)
		return;
	begin(v, &l, "");
	line_addf(&l, INK_DIM, "%s stop%s, the longest %s",
		  units_count(last->nr_stops, count), plural(last->nr_stops),
		  units_duration(last->longest_stop_ns, number));
	line_end(&l);
}

/* ---------------------------------------------------------------- naps --- */

static void print_unused(const struct view *v, const struct model_sites *sites)
{
	const struct nap_sum *sum = &v->s->sum;
	char bytes[UNITS_MAX], count[UNITS_MAX], time[UNITS_MAX];
	char text[NAMES_MAX];
	uint64_t nap_ns = model_meta_u64(v->s, "nap_ns", 0);
	struct line l;
	size_t nr = 0;
	while (nr < sites->nr && sites->site[nr].sum.nr)
		nr++;

	begin(v, &l, "unused");
	if (!sum->nr) {
		const struct ev_coverage *c = &v->s->coverage[COVER_WATCHED];
		snprintf(text, sizeof(text),
			 "nothing: no block went without access for %s",
			 nap_ns ? units_duration(nap_ns, time) : "long");
		line_words(&l, INK_GOOD, text);
		line_end(&l);
		begin(v, &l, "");
		if (c->nr_objects)
			snprintf(text, sizeof(text),
				 "%s block%s of %s were watched, see coverage",
				 units_count(c->nr_objects, count),
				 plural(c->nr_objects),
				 units_bytes(c->bytes, bytes));
		else
			snprintf(
				text, sizeof(text),
				"but nothing was watched either, see coverage");
		line_words(&l, c->nr_objects ? INK_NONE : INK_WARN, text);
		line_end(&l);
		return;
	}
	uint64_t lasting = sum->nr_by_end[END_NEVER];
	if (lasting) {
		line_add(&l, INK_BOLD, units_bytes(sum->unused_bytes, bytes));
		line_item(&l, INK_NONE, " ", "in");
		snprintf(text, sizeof(text),
			 "%s block%s still unused at the end",
			 units_count(lasting, count), plural(lasting));
		line_item(&l, INK_NONE, " ", text);
	} else {
		line_words(&l, INK_NONE,
			   "nothing at the end, all of it was "
			   "used again or freed");
	}
	line_end(&l);
	begin(v, &l, "");
	line_add(&l, INK_NONE,
		 units_byte_seconds(sum->byte_seconds, v->page.ascii, bytes));
	snprintf(text, sizeof(text), "in %s nap%s", units_count(sum->nr, count),
		 plural(sum->nr));
	line_item(&l, INK_NONE, " ", text);
	if (nap_ns) {
		snprintf(text, sizeof(text), "of at least %s",
			 units_duration(nap_ns, time));
		line_item(&l, INK_NONE, " ", text);
	}
	snprintf(text, sizeof(text), "at %s allocation site%s",
		 units_count(nr, count), plural(nr));
	line_item(&l, INK_NONE, " ", text);
	line_end(&l);
}

static void print_site_head(const struct view *v, size_t rank,
			    const struct model_site *site)
{
	const struct nap_sum *sum = &site->sum;
	char a[UNITS_MAX], b[UNITS_MAX], text[NAMES_MAX];
	double all = v->s->sum.byte_seconds;
	struct line l;
	snprintf(text, sizeof(text), "%zu", rank);
	line_begin(&l, &v->page, 0, text, INK_BOLD, SITE_COL);
	line_add(&l, INK_BOLD,
		 units_byte_seconds(sum->byte_seconds, v->page.ascii, a));
	if (all > 0) {
		snprintf(text, sizeof(text), "(%.0f %%)",
			 100 * sum->byte_seconds / all);
		line_item(&l, INK_DIM, " ", text);
	}
	if (site->totals.nr_allocs) {
		snprintf(text, sizeof(text), "%s allocation%s of %s",
			 units_count(site->totals.nr_allocs, a),
			 plural(site->totals.nr_allocs),
			 units_bytes(site->totals.bytes, b));
		line_item(&l, INK_NONE, ", ", text);
	}
	snprintf(text, sizeof(text), "%s nap%s of %s block%s",
		 units_count(sum->nr, a), plural(sum->nr),
		 units_count(sum->nr_objects, b), plural(sum->nr_objects));
	line_item(&l, INK_NONE, ", ", text);
	snprintf(text, sizeof(text), "longest %s",
		 units_duration(sum->longest_ns, a));
	line_item(&l, INK_NONE, ", ", text);
	if (sum->nr_never_accessed == sum->nr)
		line_item(&l, INK_BAD, ", ", "never accessed");
	else if (sum->nr_never_accessed) {
		snprintf(text, sizeof(text), "%s never accessed",
			 units_count(sum->nr_never_accessed, a));
		line_item(&l, INK_WARN, ", ", text);
	}
	line_end(&l);
}

/* Longest function name to show in full. */
static size_t name_columns(const struct view *v)
{
	return v->page.width ? v->page.width / 2 : 200;
}

static void begin_part(const struct view *v, struct line *l, const char *label)
{
	line_begin(l, &v->page, SITE_COL, label, INK_DIM, PART_COL);
}

static void print_stack(const struct view *v, const struct model_site *site)
{
	const struct model_stack *stack = site->stack;
	char name[NAMES_MAX], place[NAMES_MAX];
	size_t nr = stack->nr_frames;
	unsigned widest = 0;
	struct line l;
	if (v->style->max_frames && nr > v->style->max_frames)
		nr = v->style->max_frames;
	if (!nr) {
		begin_part(v, &l, "allocated");
		line_words(&l, INK_DIM,
			   stack->id ? "stack not in the trace"
				     : "before the attach, or where no stack "
				       "could be read");
		line_end(&l);
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		unsigned n = line_columns(names_function(
			&stack->frames[i], name_columns(v), name));
		if (n > widest)
			widest = n;
	}
	if (widest > name_columns(v))
		widest = (unsigned)name_columns(v);
	for (size_t i = 0; i < nr; i++) {
		const struct trace_frame *f = &stack->frames[i];
		begin_part(v, &l, i ? "" : "allocated");
		line_add(&l, INK_NAME,
			 names_function(f, name_columns(v), name));
		names_place(f, place);
		if (*place) {
			line_pad(&l, PART_COL + widest + 2);
			line_add(&l, INK_NONE, place);
			line_add(&l, INK_DIM, f->inlined ? " (inlined)" : "");
		}
		line_end(&l);
	}
	if (nr == stack->nr_frames && !site->cut_alike)
		return;
	begin_part(v, &l, "");
	if (site->cut_alike)
		line_addf(&l, INK_DIM, "%s from %zu different stacks",
			  v->page.ascii ? "..." : "\u2026", site->nr_stacks);
	else
		line_addf(&l, INK_DIM, "%s %zu more",
			  v->page.ascii ? "..." : "\u2026",
			  stack->nr_frames - nr);
	line_end(&l);
}

/* "function place <- caller <- caller", as many as fit. */
static void add_chain(const struct view *v, struct line *l, uint32_t id)
{
	size_t nr = 0;
	const struct trace_frame *f =
		id ? trace_stack(v->s->reader, id, &nr) : NULL;
	char name[NAMES_MAX], place[NAMES_MAX], text[2 * NAMES_MAX];
	if (v->style->max_frames && nr > v->style->max_frames)
		nr = v->style->max_frames;
	for (size_t i = 0; f && i < nr; i++) {
		names_function(&f[i], name_columns(v) / 2, name);
		names_place(&f[i], place);
		unsigned n = line_columns(name) + line_columns(place) +
			     (i ? line_columns(v->arrow) : 0) + 1;
		if (i && n > line_left(l))
			return;
		line_add(l, INK_DIM, i ? v->arrow : "");
		line_add(l, INK_NAME, name);
		snprintf(text, sizeof(text), " %s", place);
		line_add(l, INK_NONE, *place ? text : "");
	}
}

static void print_ends(const struct view *v, const struct nap_sum *sum)
{
	static const char *const what[END_NR] = {
		[END_READ] = "by a read",
		[END_WRITE] = "by a write",
		[END_SYSCALL] = "by a system call",
		[END_ACCESS] = "by an access",
		[END_FREED] = "when freed",
		[END_NEVER] = "not at all",
	};
	char count[UNITS_MAX], text[NAMES_MAX];
	size_t kinds = 0;
	struct line l;
	for (size_t i = 0; i < END_NR; i++)
		kinds += sum->nr_by_end[i] > 0;
	begin_part(v, &l, "ended");
	for (size_t i = 0; i < END_NR; i++) {
		if (!sum->nr_by_end[i])
			continue;
		if (kinds == 1)
			snprintf(text, sizeof(text), "%s%s", what[i],
				 sum->nr > 1 ? ", every one" : "");
		else
			snprintf(text, sizeof(text), "%s %s",
				 units_count(sum->nr_by_end[i], count),
				 what[i]);
		line_item(&l, INK_NONE, ", ", text);
	}
	line_end(&l);
}

static void print_culprits(const struct view *v, const struct model_site *site)
{
	struct model_culprit ended, last;
	char name[NAMES_MAX];
	struct line l;
	model_culprits(v->s, site, &ended, &last);
	if (last.stack) {
		begin_part(v, &l, "last used");
		line_add(&l, INK_NONE, "by ");
		add_chain(v, &l, last.stack);
		line_end(&l);
	}
	print_ends(v, &site->sum);
	if (!ended.nr)
		return;
	begin_part(v, &l, ended.end == END_FREED ? "freed by" : "by");
	if (ended.end == END_SYSCALL && ended.syscall >= 0)
		line_addf(&l, INK_BOLD, "%s()",
			  names_syscall(ended.syscall, name));
	else if (ended.end == END_READ || ended.end == END_WRITE)
		line_add(&l, INK_NONE,
			 ended.end == END_READ ? "a read in" : "a write in");
	if (ended.end != END_ACCESS && ended.end != END_FREED && ended.stack)
		line_add(&l, INK_NONE, ended.end == END_SYSCALL ? " in " : " ");
	if (ended.nr_nearby)
		line_add(&l, INK_WARN, "(seen running nearby) ");
	add_chain(v, &l, ended.stack);
	line_end(&l);
}

static void print_sites(const struct view *v, const struct model_sites *sites)
{
	size_t max = v->style->max_sites, i = 0, rest = 0;
	double left = 0;
	struct line l;
	for (; i < sites->nr && sites->site[i].sum.nr; i++) {
		if (max && i >= max) {
			rest++;
			left += sites->site[i].sum.byte_seconds;
			continue;
		}
		blank(v);
		print_site_head(v, i + 1, &sites->site[i]);
		print_stack(v, &sites->site[i]);
		print_culprits(v, &sites->site[i]);
	}
	if (rest) {
		char bytes[UNITS_MAX];
		blank(v);
		line_begin(&l, &v->page, SITE_COL, "", INK_NONE, SITE_COL);
		line_addf(&l, INK_DIM, "%s and %zu more site%s with %s (--top)",
			  v->page.ascii ? "..." : "\u2026", rest, plural(rest),
			  units_byte_seconds(left, v->page.ascii, bytes));
		line_end(&l);
	}
}

/* ------------------------------------------------------------ processes --- */

static void print_processes(const struct view *v)
{
	const struct summary *s = v->s;
	char key[40], text[NAMES_MAX], a[UNITS_MAX], b[UNITS_MAX];
	if (s->nr_processes < 2)
		return;
	blank(v);
	for (size_t i = 0; i < s->nr_processes; i++) {
		const struct model_process *p = &s->process[i];
		struct line l;
		begin(v, &l, i ? "" : "processes");
		line_addf(&l, INK_BOLD, "%u", p->pid);
		line_pad(&l, LABEL_COL + 9);
		snprintf(key, sizeof(key), "pid.%u.command", p->pid);
		const char *command = trace_meta(s->reader, key);
		if (!command && !i)
			command = trace_meta(s->reader, "command");
		if (p->sum.nr)
			snprintf(text, sizeof(text), "%s in %s nap%s",
				 units_byte_seconds(p->sum.byte_seconds,
						    v->page.ascii, a),
				 units_count(p->sum.nr, b), plural(p->sum.nr));
		else
			snprintf(text, sizeof(text), "no naps");
		line_add(&l, INK_NONE, text);
		if (p->has_ended && p->exit_status) {
			line_add(&l, INK_NONE, ", ");
			line_add(&l, INK_WARN,
				 names_exit(p->exit_status, text));
		}
		line_pad(&l, l.col + 2);
		line_add(&l, INK_DIM, command ? command : "");
		line_end(&l);
	}
}

/* ------------------------------------------------------------- coverage --- */

static void print_coverage(const struct view *v)
{
	const struct summary *s = v->s;
	char a[UNITS_MAX], b[UNITS_MAX], text[NAMES_MAX];
	uint64_t cutoff = model_meta_u64(s, "min_size", 0);
	uint64_t damaged = trace_nr_damaged(s->reader);
	uint64_t lost = trace_nr_lost(s->reader);
	struct line l;
	const struct ev_coverage *c = &s->coverage[COVER_WATCHED];
	snprintf(text, sizeof(text), "%s block%s of %s watched",
		 units_count(c->nr_objects, a), plural(c->nr_objects),
		 units_bytes(c->bytes, b));
	paragraph(v, "coverage", INK_NONE,
		  s->has_coverage[COVER_WATCHED] ? text : "not recorded");
	for (size_t i = COVER_NOT_ADMITTED; i < COVER_NR; i++) {
		c = &s->coverage[i];
		if (!c->nr_objects && !c->bytes)
			continue;
		begin(v, &l, "");
		if (i == COVER_LOST)
			snprintf(text, sizeof(text), "%s event%s lost",
				 units_count(c->nr_objects, a),
				 plural(c->nr_objects));
		else
			snprintf(text, sizeof(text), "not: %s of %s, %s",
				 units_count(c->nr_objects, a),
				 units_bytes(c->bytes, b), names_coverage(i));
		line_words(&l, i == COVER_LOST ? INK_WARN : INK_NONE, text);
		line_end(&l);
	}
	if (cutoff) {
		snprintf(text, sizeof(text),
			 "not: blocks smaller than %s (--min-size)",
			 units_bytes(cutoff, a));
		paragraph(v, "", INK_NONE, text);
	}
	if (damaged) {
		snprintf(text, sizeof(text),
			 "the trace is damaged: %s part%s skipped, %s record%s "
			 "lost with them",
			 units_count(damaged, a), plural(damaged),
			 units_count(lost, b), plural(lost));
		paragraph(v, "", INK_BAD, text);
	}
	if (trace_is_truncated(s->reader))
		paragraph(v, "", INK_WARN,
			  "the trace has no end: smco-trace was killed, the "
			  "disk was full, or it still runs");
}

static void print_mechanism(const struct view *v)
{
	const char *mechanism = trace_meta(v->s->reader, "mechanism");
	const char *why = trace_meta(v->s->reader, "mechanism_why");
	const char *missing = trace_meta(v->s->reader, "missing");
	struct line l;
	if (!mechanism)
		return;
	begin(v, &l, "mechanism");
	line_add(&l, INK_NONE, mechanism);
	if (why && *why) {
		line_add(&l, INK_NONE, ":");
		line_words(&l, INK_NONE, why);
	}
	line_end(&l);
	if (missing && *missing)
		paragraph(v, "", INK_WARN, missing);
}

static void print_trace(const struct view *v)
{
	char size[UNITS_MAX];
	struct line l;
	if (!v->trace_path)
		return;
	begin(v, &l, "trace");
	line_add(&l, INK_NONE, v->trace_path);
	line_addf(&l, INK_DIM, " (%s)",
		  units_bytes(trace_file_bytes(v->s->reader), size));
	/* Whole on one line: it is there to be copied. */
	char text[NAMES_MAX * 2];
	snprintf(text, sizeof(text), "smco-report %s", v->trace_path);
	line_item(&l, INK_NONE, ", ", "look at it with");
	line_item(&l, INK_BOLD, " ", text);
	line_end(&l);
}

void summary_print(const struct summary *s, FILE *out, const char *trace_path,
		   const struct summary_style *style)
{
	struct view v = {
		.s = s,
		.style = style,
		.page = {out, style->width, style->color, style->ascii},
		.trace_path = trace_path,
		.arrow = style->ascii ? " <- " : " \u2190 ",
	};
	struct model_sites sites;
	if (model_sites(s, style->max_frames, &sites)) {
		fputs("out of memory\n", out);
		return;
	}
	print_head(&v);
	print_overhead(&v);
	print_unused(&v, &sites);
	print_sites(&v, &sites);
	print_processes(&v);
	blank(&v);
	print_coverage(&v);
	print_mechanism(&v);
	print_trace(&v);
	model_sites_free(&sites);
}
