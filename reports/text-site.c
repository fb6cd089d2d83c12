/* One allocation site of the summary: what, where from, who uses it. */
#include <string.h>

#include "reports/names.h"
#include "reports/text-frames.h"
#include "reports/text.h"
#include "reports/units.h"

#define SITE_COL     4	/* where texts of a site start */
#define PART_COL     15 /* where its stacks start */
#define CHAIN_FRAMES 3	/* of who ended or used it; the rest is in JSON */

static void begin_part(const struct view *v, struct line *l, const char *label)
{
	line_begin(l, &v->page, SITE_COL, label, INK_DIM, PART_COL);
}

static void head(const struct view *v, size_t rank,
		 const struct model_site *site)
{
	const struct nap_sum *sum = &site->sum;
	char a[UNITS_MAX], text[NAMES_MAX];
	double all = v->s->sum.byte_seconds;
	struct line l;
	snprintf(text, sizeof(text), "%zu", rank);
	line_begin(&l, &v->page, 0, text, INK_BOLD, SITE_COL);
	line_add(&l, INK_BOLD,
		 units_byte_seconds(sum->byte_seconds, v->page.ascii, a));
	if (all > 0) {
		double share = 100 * sum->byte_seconds / all;
		snprintf(text, sizeof(text), "%s%.0f %%",
			 share < 0.5 ? "<" : "", share < 0.5 ? 1 : share);
		line_item(&l, INK_NONE, ", ", text);
	}
	if (sum->unused_bytes) {
		snprintf(text, sizeof(text), "%s unused at the end",
			 units_bytes(sum->unused_bytes, a));
		line_item(&l, INK_BOLD, ", ", text);
	}
	if (sum->nr_never_accessed == sum->nr) {
		line_item(&l, INK_BAD, ", ", "never accessed");
	} else if (sum->nr_never_accessed) {
		snprintf(text, sizeof(text), "%s never accessed",
			 units_count(sum->nr_never_accessed, a));
		line_item(&l, INK_WARN, ", ", text);
	}
	line_end(&l);
}

static void counts(const struct view *v, const struct model_site *site)
{
	const struct nap_sum *sum = &site->sum;
	char a[UNITS_MAX], b[UNITS_MAX], text[NAMES_MAX];
	struct line l;
	line_begin(&l, &v->page, SITE_COL, "", INK_NONE, SITE_COL);
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
	units_duration(sum->longest_ns, a);
	/* The error of a nap that was found late is all at its beginning; and
	 * one that three digits do not show is none to the reader. */
	if (sum->longest_error_ns > sum->longest_ns / 2)
		snprintf(text, sizeof(text), "longest %s, perhaps %s", a,
			 units_duration(sum->longest_ns + sum->longest_error_ns,
					b));
	else if (sum->longest_error_ns > sum->longest_ns / 100)
		snprintf(text, sizeof(text), "longest %s %s %s", a,
			 v->page.ascii ? "+-" : "\u00b1",
			 units_duration(sum->longest_error_ns, b));
	else
		snprintf(text, sizeof(text), "longest %s", a);
	line_item(&l, INK_NONE, ", ", text);
	line_end(&l);
}

static void no_stack(const struct view *v, const struct model_stack *stack)
{
	struct line l;
	begin_part(v, &l, "allocated");
	line_words(&l, INK_NONE,
		   stack->id ? "by a stack that is not in the trace"
			     : "before the attach, or where no stack could be "
			       "read");
	line_end(&l);
}

static void cut_stack(const struct view *v, const struct model_site *site,
		      size_t nr_cut)
{
	struct line l;
	begin_part(v, &l, "");
	if (site->cut_alike)
		line_addf(&l, INK_DIM, "%s from several callers (--frames)",
			  v->dots);
	else
		line_addf(&l, INK_DIM, "%s %zu more (--frames)", v->dots,
			  nr_cut);
	line_end(&l);
}

static void stack(const struct view *v, const struct model_site *site)
{
	const struct model_stack *stack = site->stack;
	size_t all = names_worth_showing(stack->frames, stack->nr_frames);
	size_t nr = all;
	if (!nr) {
		no_stack(v, stack);
		return;
	}
	if (v->style->max_frames && nr > v->style->max_frames)
		nr = v->style->max_frames;
	frames_print(&v->page,
		     &(struct frames_place){SITE_COL, PART_COL, "allocated"},
		     stack->frames, nr, NULL);
	if (nr < all)
		cut_stack(v, site, all - nr);
}

/* "function place <- caller <- caller", as many as fit on the line. */
static void chain(const struct view *v, struct line *l, uint32_t id)
{
	size_t nr = 0;
	const struct trace_frame *f = id ? model_frames(v->s, id, &nr) : NULL;
	char name[NAMES_MAX], place[NAMES_MAX];
	nr = names_worth_showing(f, nr);
	if (nr > CHAIN_FRAMES)
		nr = CHAIN_FRAMES;
	if (v->style->max_frames && nr > v->style->max_frames)
		nr = v->style->max_frames;
	for (size_t i = 0; f && i < nr; i++) {
		names_function(&f[i], frames_name_columns(&v->page), name);
		names_place(&f[i], place);
		unsigned n = line_columns(name) + line_columns(place) + 1;
		if (i && n + line_columns(v->arrow) > line_left(l))
			return;
		line_add(l, INK_DIM, i ? v->arrow : "");
		line_add(l, INK_NAME, name);
		line_add(l, INK_NONE, *place ? " " : "");
		line_add(l, INK_NONE, place);
	}
}

static void last_use(const struct view *v, const struct model_site *site)
{
	struct model_culprit c = model_last_used_by(v->s, site);
	struct line l;
	if (!c.stack)
		return;
	begin_part(v, &l, "last used");
	line_add(&l, INK_NONE, "in ");
	chain(v, &l, c.stack);
	line_end(&l);
}

static void ended(const struct view *v, const struct model_site *site,
		  enum nap_end end, const char *label)
{
	static const char *const how[END_NR] = {
		[END_READ] = "by a read",
		[END_WRITE] = "by a write",
		[END_SYSCALL] = "by ",
		[END_ACCESS] = "by an access",
		[END_FREED] = "when freed",
		[END_NEVER] = "not at all",
		[END_UNWATCHED] = "not while watched",
	};
	uint64_t nr = site->sum.nr_by_end[end];
	struct model_culprit c = model_ended_by(v->s, site, end);
	char buf[NAMES_MAX];
	struct line l;
	begin_part(v, &l, label);
	if (nr < site->sum.nr)
		line_addf(&l, INK_NONE, "%s ", units_count(nr, buf));
	line_add(&l, INK_NONE, how[end]);
	if (end == END_SYSCALL && c.syscall >= 0)
		line_addf(&l, INK_BOLD, "%s()", names_syscall(c.syscall, buf));
	else if (end == END_SYSCALL)
		line_add(&l, INK_NONE, "a system call");
	if (end != END_NEVER && c.nr) {
		const char *most = c.nr < nr ? "mostly " : "";
		if (c.nr_nearby)
			line_addf(&l, INK_NONE,
				  ", %sseen running nearby: ", most);
		else
			line_addf(&l, INK_NONE, "%s %sin ", *most ? "," : "",
				  most);
		if (!c.stack)
			line_add(&l, INK_NONE, "a place without a stack");
		chain(v, &l, c.stack);
	}
	line_end(&l);
}

static void site(const struct view *v, size_t rank, const struct model_site *m)
{
	const char *label = "ended";
	fputc('\n', v->page.out);
	head(v, rank, m);
	counts(v, m);
	stack(v, m);
	last_use(v, m);
	for (size_t i = 0; i < END_NR; i++) {
		if (!m->sum.nr_by_end[i])
			continue;
		ended(v, m, i, label);
		label = "";
	}
}

void text_sites(const struct view *v, const struct model_sites *sites)
{
	size_t max = v->style->max_sites, rest = 0;
	double left = 0;
	for (size_t i = 0; i < sites->nr && sites->site[i].sum.nr; i++) {
		if (max && i >= max) {
			rest++;
			left += sites->site[i].sum.byte_seconds;
			continue;
		}
		site(v, i + 1, &sites->site[i]);
	}
	if (rest) {
		char bytes[UNITS_MAX];
		struct line l;
		fputc('\n', v->page.out);
		line_begin(&l, &v->page, 0, v->dots, INK_DIM, SITE_COL);
		line_addf(&l, INK_DIM, "%zu more site%s with %s (--top)", rest,
			  plural(rest),
			  units_byte_seconds(left, v->page.ascii, bytes));
		line_end(&l);
	}
}
