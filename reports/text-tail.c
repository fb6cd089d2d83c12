/* The summary's last lines: processes, what was not seen, how it was seen. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reports/command.h"
#include "reports/names.h"
#include "reports/shortage.h"
#include "reports/text.h"
#include "reports/units.h"

#define PID_COL	 11
#define NAPS_COL 20

static int compare_processes(const void *va, const void *vb)
{
	const struct model_process *a = va, *b = vb;
	if (a->sum.byte_seconds != b->sum.byte_seconds)
		return a->sum.byte_seconds > b->sum.byte_seconds ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void process(const struct view *v, const struct model_process *p,
		    const char *label)
{
	char a[UNITS_MAX], b[UNITS_MAX], text[NAMES_MAX];
	struct line l;
	text_begin(v, &l, label);
	line_addf(&l, INK_BOLD, "%u", p->pid);
	line_pad(&l, NAPS_COL - 1);
	line_add(&l, INK_NONE, " ");
	if (p->sum.nr)
		line_addf(&l, INK_NONE, "%s in %s nap%s",
			  units_byte_seconds(p->sum.byte_seconds, v->page.ascii,
					     a),
			  units_count(p->sum.nr, b), plural(p->sum.nr));
	else
		line_add(&l, INK_NONE, "no naps");
	if (p->has_ended && p->exit_status) {
		line_add(&l, INK_NONE, ", ");
		line_add(&l, INK_WARN, names_exit(p->exit_status, text));
	}
	const char *command = model_command(v->s, p);
	_cleanup_free_ char *shown =
		command ? command_line_shown(command) : NULL;
	if (shown) {
		line_add(&l, INK_NONE, ": ");
		line_add(&l, INK_DIM, shown);
	}
	line_end(&l);
}

void text_processes(const struct view *v)
{
	const struct summary *s = v->s;
	size_t max = v->style->max_sites, nr = s->nr_processes, with_naps = 0;
	const char *label = "processes";
	char count[UNITS_MAX];
	if (nr < 2)
		return;
	struct model_process *sorted = calloc(nr, sizeof(*sorted));
	if (!sorted) {
		shortage_tell();
		return;
	}
	memcpy(sorted, s->process, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), compare_processes);
	fputc('\n', v->page.out);
	while (with_naps < nr && sorted[with_naps].sum.nr)
		with_naps++;
	for (size_t i = 0; i < with_naps && (!max || i < max); i++) {
		process(v, &sorted[i], label);
		label = "";
	}
	if (max && with_naps > max)
		text_paragraph(v, label, INK_DIM, "%s %s more (--top)", v->dots,
			       units_count(with_naps - max, count));
	if (nr > with_naps)
		text_paragraph(v, label, INK_DIM, "%s%s without naps",
			       units_count(nr - with_naps, count),
			       *label ? "" : " more");
	free(sorted);
}

/* ------------------------------------------------------------- coverage --- */

/* Blocks that are not in the list for this reason, though they might have been
 * in it; of others something else is missing. */
static bool is_reason(size_t why)
{
	return why != COVER_WATCHED && why != COVER_LOST &&
	       why != COVER_NO_STACK && why != COVER_SHORT_LIVED;
}

static uint64_t unwatched_bytes(const struct summary *s)
{
	uint64_t sum = 0;
	for (size_t i = COVER_BELOW_CUTOFF; i < COVER_NR; i++)
		if (is_reason(i))
			sum += s->coverage[i].bytes;
	return sum;
}

static void not_watched(const struct view *v, size_t why)
{
	const struct ev_coverage *c = &v->s->coverage[why];
	char a[UNITS_MAX], b[UNITS_MAX];
	if (!c->nr_objects && !c->bytes)
		return;
	text_paragraph(v, "", INK_NONE, "not %s block%s, %s: %s",
		       units_count(c->nr_objects, a), plural(c->nr_objects),
		       units_bytes(c->bytes, b), names_coverage(why));
}

static void watched(const struct view *v)
{
	const struct summary *s = v->s;
	const struct ev_coverage *c = &s->coverage[COVER_WATCHED];
	char a[UNITS_MAX], b[UNITS_MAX], share[UNITS_MAX + 32] = "";
	if (!s->has_coverage[COVER_WATCHED]) {
		text_paragraph(v, "coverage", INK_WARN,
			       model_is_truncated(s) || model_nr_damaged(s)
				       ? "not in the trace"
				       : "watched no block");
		return;
	}
	double all = (double)c->bytes + (double)unwatched_bytes(s);
	if (all > (double)c->bytes)
		snprintf(share, sizeof(share), ", %.3g %% of the bytes %s",
			 100 * (double)c->bytes / all,
			 s->has_coverage[COVER_SHORT_LIVED]
				 ? "that lived long enough"
				 : "known");
	text_paragraph(v, "coverage", INK_NONE, "watched %s block%s, %s%s",
		       units_count(c->nr_objects, a), plural(c->nr_objects),
		       units_bytes(c->bytes, b), share);
}

void text_coverage(const struct view *v)
{
	const struct summary *s = v->s;
	char a[UNITS_MAX], b[UNITS_MAX];
	uint64_t cutoff = model_meta_u64(s, "min_size", 0);
	uint64_t unwatched = model_meta_u64(s, "unwatched_processes", 0);
	uint64_t unfollowed = model_meta_u64(s, "unfollowed_processes", 0);
	uint64_t let_go = model_meta_u64(s, "let_go", 0);
	uint64_t let_go_ns = model_meta_u64(s, "let_go_ns", 0);
	uint64_t damaged = model_nr_damaged(s);
	uint64_t lost = model_nr_lost(s);
	uint64_t dropped = model_nr_dropped(s);
	if (model_has_monitor(s, "nap"))
		watched(v);
	for (size_t i = COVER_BELOW_CUTOFF; i < COVER_NR; i++)
		if (is_reason(i))
			not_watched(v, i);
	not_watched(v, COVER_SHORT_LIVED);
	if (unwatched)
		text_paragraph(v, "", INK_NONE,
			       "not %s process%s that ended, or %s left, "
			       "before the budget had room to start",
			       units_count(unwatched, a),
			       unwatched == 1 ? "" : "es",
			       unwatched == 1 ? "was" : "were");
	if (unfollowed)
		text_paragraph(v, "", INK_NONE,
			       "not %s process%s whose birth%s not followed, "
			       "for that alone would have cost more than the "
			       "budget",
			       units_count(unfollowed, a),
			       unfollowed == 1 ? "" : "es",
			       unfollowed == 1 ? " was" : "s were");
	if (let_go)
		text_paragraph(
			v, "", INK_NONE,
			"not for %s: a process was let go %s time%s, for "
			"its signals and its children's ends alone would "
			"have cost more than the budget",
			units_duration(let_go_ns, a), units_count(let_go, b),
			plural(let_go));
	if (cutoff)
		text_paragraph(v, "", INK_NONE,
			       "not blocks smaller than %s (--min-size)",
			       units_bytes(cutoff, a));
	const struct ev_coverage *no_stack = &s->coverage[COVER_NO_STACK];
	if (no_stack->nr_objects)
		text_paragraph(v, "", INK_NONE, "%s block%s, %s, %s",
			       units_count(no_stack->nr_objects, a),
			       plural(no_stack->nr_objects),
			       units_bytes(no_stack->bytes, b),
			       names_coverage(COVER_NO_STACK));
	if (s->coverage[COVER_LOST].nr_objects)
		text_paragraph(
			v, "", INK_WARN, "lost %s event%s",
			units_count(s->coverage[COVER_LOST].nr_objects, a),
			plural(s->coverage[COVER_LOST].nr_objects));
	if (dropped)
		text_paragraph(v, "", INK_WARN,
			       "%s record%s dropped: the disk was too slow",
			       units_count(dropped, a), plural(dropped));
	if (damaged)
		text_paragraph(v, "", INK_BAD,
			       "the trace is damaged: %s part%s skipped, %s "
			       "record%s lost",
			       units_count(damaged, a), plural(damaged),
			       units_count(lost, b), plural(lost));
	if (model_is_truncated(s))
		text_paragraph(v, "", INK_WARN,
			       "the trace has no end: smco-trace was killed, "
			       "the disk was full, or it still runs");
}

/* What is not seen from where we are: who reads another's memory. */
static const char pages_caveat[] =
	"a process that is not watched and reads such pages of another with "
	"process_vm_readv gets an error, unless it was let in with "
	"PR_SET_PTRACER";

static const char no_malloc[] =
	": the program has no malloc that could be found, as Go's have none; "
	"of such programs only what is mapped when they are attached to (-p) "
	"can be watched";

void text_mechanism(const struct view *v)
{
	const char *mechanism = trace_meta(v->s->reader, "mechanism");
	const char *why = trace_meta(v->s->reader, "mechanism_why");
	const char *missing = trace_meta(v->s->reader, "missing");
	const char *sensors = trace_meta(v->s->reader, "sensors");
	const char *refused = trace_meta(v->s->reader, "refused");
	struct line l;
	if (!mechanism)
		return;
	const char *what = names_mechanism(mechanism);
	text_begin(v, &l, "mechanism");
	line_words(&l, INK_NONE, mechanism);
	if (what) {
		line_add(&l, INK_NONE, ":");
		line_words(&l, INK_NONE, what);
	}
	line_end(&l);
	if (why && *why)
		text_paragraph(v, "", INK_NONE, "because %s", why);
	if (!strcmp(mechanism, "mprotect"))
		text_paragraph(v, "", INK_NONE, "%s", pages_caveat);
	if (refused && *refused)
		text_paragraph(v, "", INK_WARN, "%s", refused);
	if (sensors)
		text_paragraph(v, "", INK_NONE, "sensors in %s", sensors);
	else if (strcmp(mechanism, "none")) /* else nobody looked for any */
		text_paragraph(v, "", INK_WARN,
			       "no sensors in allocation functions%s",
			       missing && *missing ? "" : no_malloc);
	if (missing && *missing)
		text_paragraph(v, "", INK_WARN, "%s", missing);
}

/* -------------------------------------------------------------- session --- */

static void when_and_where(const struct view *v)
{
	struct trace_reader *r = v->s->reader;
	const char *host = trace_meta(r, "hostname");
	const char *kernel = trace_meta(r, "kernel");
	const char *version = trace_meta(r, "version");
	time_t t = (time_t)(trace_start_real_ns(r) / NSEC_PER_SEC);
	struct tm tm;
	char date[64];
	struct line l;
	if (!trace_start_real_ns(r) || !localtime_r(&t, &tm) ||
	    !strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S %z", &tm))
		return;
	text_begin(v, &l, "session");
	line_words(&l, INK_NONE, date);
	if (host) {
		line_item(&l, INK_NONE, " ", "on");
		line_item(&l, INK_NONE, " ", host);
	}
	if (kernel)
		line_item(&l, INK_NONE, ", ", kernel);
	if (version) {
		line_item(&l, INK_NONE, ", ", "smco-trace");
		line_item(&l, INK_NONE, " ", version);
	}
	line_end(&l);
}

static bool is_plain(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./,:+@%=";
	return *path && *path != '-' && !path[strspn(path, plain)];
}

void text_session(const struct view *v)
{
	char size[UNITS_MAX];
	struct page wide = v->page;
	struct line l;
	when_and_where(v);
	if (!v->trace_path)
		return;
	/* Never cut: it is there to be copied into a shell. */
	wide.width = 0;
	text_begin(v, &l, "trace");
	line_widen(&l, &wide);
	line_addf(&l, INK_NONE, "%s, to see it again: ",
		  units_bytes(model_file_bytes(v->s), size));
	line_add(&l, INK_BOLD, "smco-report ");
	if (is_plain(v->trace_path)) {
		line_add(&l, INK_BOLD, v->trace_path);
	} else {
		line_add(&l, INK_BOLD, *v->trace_path == '-' ? "-- '" : "'");
		for (const char *p = v->trace_path; *p;) {
			size_t n = strcspn(p, "'");
			line_addf(&l, INK_BOLD, "%.*s%s", (int)n, p,
				  p[n] ? "'\\''" : "");
			p += n + (p[n] == '\'');
		}
		line_add(&l, INK_BOLD, "'");
	}
	line_end(&l);
}
