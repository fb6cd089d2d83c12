#include "reports/diff-run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/command.h"
#include "reports/model.h"
#include "reports/names.h"

#define RUN	 (1u << DIFF_RUN)
#define SITE	 (1u << DIFF_SITE)
#define PHASE	 (1u << DIFF_PHASE)
#define COUNTER	 (1u << DIFF_COUNTER)
#define MISTAKE	 (1u << DIFF_MISTAKE)
#define VARIABLE (1u << DIFF_VARIABLE)

const struct diff_metric_info diff_metric[DIFF_NR_METRICS] = {
	[DIFF_BYTE_SECONDS] = {"nap.bytes_seconds", "unused", UNIT_BYTE_SECONDS,
			       RUN | SITE, true, false, 4096},
	[DIFF_UNUSED] = {"nap.unused_bytes", "unused at the end", UNIT_BYTES,
			 RUN | SITE, true, false, 4096},
	[DIFF_LONGEST] = {"nap.longest", "longest nap", UNIT_NS, RUN | SITE,
			  true, false, 1e6},
	[DIFF_ALLOCS] = {"alloc.count", "allocations", UNIT_COUNT, RUN | SITE,
			 true, false, 1},
	[DIFF_ALLOC_BYTES] = {"alloc.bytes", "bytes allocated", UNIT_BYTES,
			      RUN | SITE, true, false, 1},
	/* One point: what a quiet machine tells apart. */
	[DIFF_OVERHEAD] = {"overhead", "overhead", UNIT_PPB, RUN, false, false,
			   1e7},
	[DIFF_DURATION] = {"duration", "duration", UNIT_NS, RUN, false, true,
			   1e6},
	[DIFF_PHASE_MEAN] = {"phase.mean", "each", UNIT_NS, PHASE, false, false,
			     1},
	[DIFF_PHASE_COUNT] = {"phase.count", "times", UNIT_COUNT, PHASE, true,
			      false, 1},
	[DIFF_PHASE_LONGEST] = {"phase.longest", "the longest", UNIT_NS, PHASE,
				false, true, 1},
	[DIFF_COUNT] = {"counter.count", "count", UNIT_COUNT, COUNTER, false,
			false, 1},
	[DIFF_IS_MISTAKE] = {"variable.mistake", "may be a mistake", UNIT_COUNT,
			     MISTAKE, true, false, 1},
	[DIFF_RANGE] = {"variable.range", "range", UNIT_COUNT, VARIABLE, false,
			false, 1},
	[DIFF_SMALLEST] = {"variable.smallest", "smallest", UNIT_NUMBER,
			   VARIABLE, false, true, 1},
	[DIFF_LARGEST] = {"variable.largest", "largest", UNIT_NUMBER, VARIABLE,
			  false, true, 1},
};

bool diff_metric_is_of_blocks(enum diff_metric metric)
{
	return diff_metric[metric].kinds & SITE;
}

const char *diff_kind_name(enum diff_kind kind)
{
	static const char *const name[DIFF_NR_KINDS] = {
		[DIFF_RUN] = "runs",	     [DIFF_SITE] = "sites",
		[DIFF_PHASE] = "phases",     [DIFF_COUNTER] = "counters",
		[DIFF_MISTAKE] = "mistakes", [DIFF_VARIABLE] = "variables",
	};
	return name[kind];
}

/* Deeper frames say nothing more about who allocates. */
#define MAX_FRAMES 256

void diff_run_free(struct diff_run *run)
{
	for (size_t i = 0; i < run->nr_items; i++) {
		free(run->item[i].frames);
		free(run->item[i].shown);
	}
	free(run->item);
	free(run->declared);
	run->item = NULL;
	run->declared = NULL;
	run->nr_declared = 0;
	free(run->words);
	run->words = NULL;
	run->nr_items = run->cap_items = 0;
}

/* The first word of @command, its quotes taken off; at most @size. */
static size_t first_word(const char *command, char *buf, size_t size)
{
	size_t n = 0;
	char quote = '\0';
	for (const char *p = command; *p && n + 1 < size; p++) {
		if (quote && *p == quote)
			quote = '\0';
		else if (!quote && (*p == '\'' || *p == '"'))
			quote = *p;
		else if (!quote && *p == '\\' && p[1])
			buf[n++] = *++p;
		else if (!quote && *p == ' ')
			break;
		else
			buf[n++] = *p;
	}
	buf[n] = '\0';
	return n;
}

const char *diff_run_program(struct diff_pool *pool, const char *command)
{
	char word[1024];
	first_word(command + strspn(command, " "), word, sizeof(word));
	return diff_pool_file(pool, word);
}

/* ---------------------------------------------------------------- items --- */

static struct diff_item *add_item(struct diff_run *run, enum diff_kind kind)
{
	if (!ARRAY_ROOM(run->item, run->nr_items, run->cap_items))
		return NULL;
	struct diff_item *item = &run->item[run->nr_items++];
	*item = (struct diff_item){.kind = kind, .name = diff_pool_empty};
	for (size_t i = 0; i < DIFF_NR_METRICS; i++)
		item->value[i] = NAN;
	return item;
}

static void take_frame(struct diff_pool *pool, const struct trace_frame *f,
		       struct diff_frame *ret, struct trace_frame *shown)
{
	ret->function = diff_pool_function(pool, f->function);
	ret->stem = diff_pool_stem(pool, ret->function);
	ret->file = diff_pool_file(pool, f->file);
	ret->module = diff_pool_module(pool, f->module);
	ret->build = diff_pool_text(pool, f->build_id);
	ret->has_line = f->line != 0;
	ret->pos = f->line ? f->line : f->offset;
	*shown = *f;
	shown->function = diff_pool_text(pool, f->function);
	shown->file = diff_pool_text(pool, f->file);
	shown->module = diff_pool_text(pool, f->module);
	shown->build_id = ret->build;
}

static bool take_frames(struct diff_pool *pool, const struct trace_frame *f,
			size_t nr, struct diff_item *item)
{
	nr = names_worth_showing(f, nr);
	if (nr > MAX_FRAMES)
		nr = MAX_FRAMES;
	if (!nr)
		return true;
	item->frames = calloc(nr, sizeof(*item->frames));
	item->shown = calloc(nr, sizeof(*item->shown));
	if (!item->frames || !item->shown)
		return false;
	item->nr_frames = nr;
	for (size_t i = 0; i < nr; i++)
		take_frame(pool, &f[i], &item->frames[i], &item->shown[i]);
	return true;
}

static void take_sum(struct diff_item *item, const struct nap_sum *sum)
{
	item->value[DIFF_BYTE_SECONDS] = sum->byte_seconds;
	item->error[DIFF_BYTE_SECONDS] = sum->error_byte_seconds;
	item->value[DIFF_UNUSED] = (double)sum->unused_bytes;
	item->value[DIFF_LONGEST] = (double)sum->longest_ns;
	item->error[DIFF_LONGEST] = (double)sum->longest_error_ns;
	item->chance[DIFF_BYTE_SECONDS] = sum->brief_byte_seconds;
	item->chance[DIFF_UNUSED] = (double)sum->brief_unused_bytes;
	/* All of them are brief? Then the longest is. */
	if (sum->brief_byte_seconds >= sum->byte_seconds)
		item->chance[DIFF_LONGEST] = (double)sum->longest_ns;
}

static void take_totals(struct diff_item *item, const struct ev_site *t)
{
	item->value[DIFF_ALLOCS] = (double)t->nr_allocs;
	item->value[DIFF_ALLOC_BYTES] = (double)t->bytes;
	item->nr_allocs = t->nr_allocs;
	item->nr_watched = t->nr_watched;
}

/* Where there are functions' names and no lines, sites were put together by
 * the names (names_same_frame): @f has the offset of any one of them. */
static uint64_t place_of(const struct diff_frame *f)
{
	return f->has_line || !*f->function ? f->pos : 0;
}

/* What names alone tell apart, the same build and module at hand: the frames
 * of one run. */
static bool same_place(const struct diff_frame *a, const struct diff_frame *b)
{
	return a->function == b->function && a->file == b->file &&
	       place_of(a) == place_of(b) && a->has_line == b->has_line &&
	       a->module == b->module && a->build == b->build;
}

bool diff_item_begins(const struct diff_item *item,
		      const struct diff_item *whole)
{
	if (item->nr_frames > whole->nr_frames)
		return false;
	for (size_t i = 0; i < item->nr_frames; i++)
		if (!same_place(&item->frames[i], &whole->frames[i]))
			return false;
	return true;
}

uint64_t diff_frame_hash(uint64_t seed, const struct diff_frame *f)
{
	uint64_t place = place_of(f);
	seed = hindex_hash(seed, &f->function, sizeof(f->function));
	return hindex_hash(seed, &place, sizeof(place));
}

static void join(struct diff_item *to, struct diff_item *from)
{
	for (size_t i = 0; i < DIFF_NR_METRICS; i++) {
		if (i == DIFF_LONGEST) {
			if (from->value[i] <= to->value[i])
				continue;
			to->value[i] = from->value[i];
			to->error[i] = from->error[i];
			to->chance[i] = from->chance[i];
		} else {
			to->value[i] += from->value[i];
			to->error[i] += from->error[i];
			to->chance[i] += from->chance[i];
		}
	}
	to->nr_allocs += from->nr_allocs;
	to->nr_watched += from->nr_watched;
	free(from->frames);
	free(from->shown);
	*from = (struct diff_item){0};
}

/* -------------------------------------------------------------- joining --- */

struct item_key {
	const struct diff_item *items, *item;
};

static bool same_stack(const void *ctx, uint32_t value)
{
	const struct item_key *k = ctx;
	const struct diff_item *other = &k->items[value];
	return other->nr_frames == k->item->nr_frames &&
	       diff_item_begins(k->item, other);
}

/* The one longer stack that begins like @item; NULL if there are several. A
 * stack that could not be read to its end is counted there. */
static struct diff_item *whole_of(struct diff_run *run, struct diff_item *item)
{
	struct diff_item *found = NULL;
	for (size_t i = 1; i < run->nr_items; i++) {
		struct diff_item *other = &run->item[i];
		if (other->nr_frames <= item->nr_frames ||
		    !diff_item_begins(item, other))
			continue;
		if (found)
			return NULL;
		found = other;
	}
	return found;
}

/* More than this is not worth the search for the few stacks that were cut. */
#define MAX_CUT 2048

/* Sites that are the same by what names leave of them become one, and stacks
 * that were cut join the one they were cut from. */
static int join_items(struct diff_run *run)
{
	struct hindex index = {0};
	int rc = SMCO_OK;
	size_t nr = 1;
	for (size_t i = 1; i < run->nr_items && !rc; i++) {
		struct diff_item *item = &run->item[i];
		struct item_key key = {run->item, item};
		uint64_t hash = 0;
		uint32_t found;
		for (size_t k = 0; k < item->nr_frames; k++)
			hash = diff_frame_hash(hash, &item->frames[k]);
		if (hindex_find(&index, hash, same_stack, &key, &found)) {
			join(&run->item[found], item);
			continue;
		}
		if (!hindex_add(&index, hash, (uint32_t)nr))
			rc = SMCO_NOMEM;
		if (nr != i) {
			run->item[nr] = *item;
			*item = (struct diff_item){0};
		}
		nr++;
	}
	hindex_free(&index);
	run->nr_items = nr;
	if (rc || nr > MAX_CUT)
		return rc;
	nr = 1;
	for (size_t i = 1; i < run->nr_items; i++) {
		struct diff_item *item = &run->item[i], *whole = NULL;
		if (item->nr_frames)
			whole = whole_of(run, item);
		if (whole)
			join(whole, item);
	}
	for (size_t i = 1; i < run->nr_items; i++)
		if (run->item[i].name) /* not joined to another */
			run->item[nr++] = run->item[i];
	run->nr_items = nr;
	return SMCO_OK;
}

/* -------------------------------------------------------------- loading --- */

static int take_sites(const struct summary *s, struct diff_pool *pool,
		      struct diff_run *run)
{
	struct model_sites sites;
	struct ev_site all = {0};
	int rc = model_sites(s, 0, &sites);
	for (size_t i = 0; i < sites.nr && !rc; i++) {
		const struct model_site *m = &sites.site[i];
		struct diff_item *item = add_item(run, DIFF_SITE);
		if (!item || !take_frames(pool, m->stack->frames,
					  m->stack->nr_frames, item)) {
			rc = SMCO_NOMEM;
			break;
		}
		take_sum(item, &m->sum);
		take_totals(item, &m->totals);
		all.nr_allocs += m->totals.nr_allocs;
		all.bytes += m->totals.bytes;
		all.nr_watched += m->totals.nr_watched;
	}
	model_sites_free(&sites);
	take_totals(&run->item[0], &all);
	return rc ? rc : join_items(run);
}

static int take_phases(const struct summary *s, struct diff_pool *pool,
		       struct diff_run *run)
{
	for (size_t i = 0; i < s->phases.nr; i++) {
		const struct model_phase *p = &s->phases.phase[i];
		struct diff_item *item = add_item(run, DIFF_PHASE);
		if (!item)
			return SMCO_NOMEM;
		item->name = diff_pool_text(pool, p->name);
		item->value[DIFF_PHASE_COUNT] = (double)p->sum.count;
		if (!p->sum.nr_seen)
			continue;
		item->value[DIFF_PHASE_MEAN] = phase_mean_ns(p);
		item->value[DIFF_PHASE_LONGEST] = (double)p->sum.longest_ns;
	}
	return SMCO_OK;
}

/* Not the program's doing. */
static bool is_the_machines(enum counts_role role)
{
	return role == ROLE_SWITCHES || role == ROLE_MIGRATIONS ||
	       role == ROLE_MAJOR_FAULTS;
}

/* Of each event what it came to, as if counted all the time. */
static int take_counters(const struct summary *s, struct diff_pool *pool,
			 struct diff_run *run)
{
	const struct counts *c = s->file[0].counts;
	for (size_t i = 0; c && i < c->nr_events; i++) {
		const struct counts_event *e = &c->event[i];
		char name[256];
		struct diff_item *item = add_item(run, DIFF_COUNTER);
		if (!item)
			return SMCO_NOMEM;
		snprintf(name, sizeof(name), "%.200s%s%.40s%s", e->name,
			 *e->unit ? " (" : "", e->unit, *e->unit ? ")" : "");
		item->name = diff_pool_text(pool, name);
		item->value[DIFF_COUNT] = c->total[i].scaled * e->scale;
		item->is_ns = !strcmp(e->unit, "ns");
		item->is_time = e->role == ROLE_TSC || e->role == ROLE_CYCLES ||
				e->role == ROLE_TASK_CLOCK;
		if (is_the_machines(e->role))
			item->chance[DIFF_COUNT] = item->value[DIFF_COUNT];
	}
	return SMCO_OK;
}

#define VARIABLE_NAME_MAX 300

/* "main::i (a.c)"; "#2" and so on for others of that name there. */
static void variable_name(struct diff_pool *pool, const struct model_range *r,
			  unsigned rank, char name[VARIABLE_NAME_MAX])
{
	char number[16] = "";
	if (rank > 1)
		snprintf(number, sizeof(number), " #%u", rank);
	snprintf(name, VARIABLE_NAME_MAX, "%.200s%s (%.60s)", r->decl->function,
		 number, diff_pool_file(pool, r->decl->file));
}

/* What looks like a mistake about @r; NULL: nothing. That a value is always the
 * same depends on how often it was seen, and is left out. */
static const char *mistake_text(struct diff_pool *pool,
				const struct model_range *r)
{
	const struct model_subscript *s = r->subscript;
	char text[RANGE_WORDS + 128], words[RANGE_WORDS];
	if (r->finding == FINDING_NONE || r->finding == FINDING_CONSTANT)
		return NULL;
	if (s)
		snprintf(text, sizeof(text),
			 "subscript of %s from %" PRId64 " to %" PRId64,
			 subscript_array_words(s, words), s->smallest,
			 s->largest);
	else
		snprintf(text, sizeof(text), "%s%s (%.0Lf to %.0Lf)",
			 finding_text(r->finding), range_odd_words(r, words),
			 range_number(r, r->smallest),
			 range_number(r, r->largest));
	return diff_pool_text(pool, text);
}

/* For longer in each process than it takes to plant what a program begins with,
 * in which it stands. */
static bool is_seen_partly(const struct model_range *r)
{
	return r->alive_ns > r->watched_ns &&
	       r->alive_ns - r->watched_ns >
		       r->nr_processes * 10 * NSEC_PER_MSEC;
}

static int take_variable(struct diff_run *run, struct diff_pool *pool,
			 const struct model_range *r, const char *name)
{
	struct diff_item *item = add_item(run, DIFF_VARIABLE);
	if (!item)
		return SMCO_NOMEM;
	long double smallest = range_number(r, r->smallest);
	long double largest = range_number(r, r->largest);
	item->name = name;
	item->value[DIFF_RANGE] = (double)(largest - smallest);
	item->value[DIFF_SMALLEST] = (double)smallest;
	item->value[DIFF_LARGEST] = (double)largest;
	item->nr_allocs = r->alive_ns;
	item->nr_watched = r->watched_ns;
	item->is_seen_partly = is_seen_partly(r);
	item = add_item(run, DIFF_MISTAKE);
	if (!item)
		return SMCO_NOMEM;
	item->name = name;
	item->about = mistake_text(pool, r);
	item->value[DIFF_IS_MISTAKE] = item->about != NULL;
	item->nr_allocs = r->alive_ns;
	item->nr_watched = r->watched_ns;
	item->is_seen_partly = is_seen_partly(r);
	return SMCO_OK;
}

static int compare_hashes(const void *va, const void *vb)
{
	uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;
	return a < b ? -1 : a > b;
}

static uint64_t name_hash(const char *name)
{
	return hindex_hash(0, name, strlen(name));
}

bool diff_run_declares(const struct diff_run *run, const char *name)
{
	uint64_t hash = name_hash(name);
	return run->nr_declared &&
	       bsearch(&hash, run->declared, run->nr_declared, sizeof(hash),
		       compare_hashes);
}

static int take_variables(const struct summary *s, struct diff_pool *pool,
			  struct diff_run *run)
{
	char name[VARIABLE_NAME_MAX];
	size_t nr;
	unsigned rank = 1;
	const struct model_range **range =
		model_ranges_sorted(&s->ranges, true, &nr);
	run->declared = calloc(nr + 1, sizeof(*run->declared));
	int rc = range && run->declared ? SMCO_OK : SMCO_NOMEM;
	for (size_t i = 0; i < nr && !rc; i++) {
		const struct model_range *r = range[i];
		bool again = i &&
			     !strcmp(r->decl->function,
				     range[i - 1]->decl->function) &&
			     !strcmp(r->decl->file, range[i - 1]->decl->file);
		rank = again ? rank + 1 : 1;
		variable_name(pool, r, rank, name);
		run->declared[run->nr_declared++] = name_hash(name);
		/* What is only looked at has whatever was there then. */
		if (r->has_value && r->flags & RANGE_SENSED)
			rc = take_variable(run, pool, r,
					   diff_pool_text(pool, name));
	}
	if (run->nr_declared)
		qsort(run->declared, run->nr_declared, sizeof(*run->declared),
		      compare_hashes);
	free(range);
	return rc;
}

/* Share of the known blocks that were being watched, over the run. */
static double watched_share(const struct summary *s)
{
	double known = 0, armed = 0;
	for (size_t i = 0; i < s->nr_ledger; i++) {
		const struct ev_ledger *l = &s->ledger[i].ledger;
		known += (double)l->nr_known;
		armed += (double)l->nr_armed;
	}
	return known > 0 ? fmin(armed / known, 1) : NAN;
}

static void take_facts(const struct summary *s, struct diff_pool *pool,
		       struct diff_run *run)
{
	struct trace_reader *r = s->reader;
	const char *command = trace_meta(r, "command");
	const char *mechanism = trace_meta(r, "mechanism");
	if (!command && s->nr_processes)
		command = model_command(s, &s->process[0]);
	run->command = diff_pool_text(pool, command ? command : "");
	_cleanup_free_ char *shown = command_shown(r);
	run->shown = shown ? diff_pool_text(pool, shown) : run->command;
	run->words = command_words(r);
	run->program = run->words && *run->words[0]
			       ? diff_pool_file(pool, run->words[0])
			       : diff_run_program(pool, run->command);
	run->mechanism = diff_pool_text(pool, mechanism ? mechanism : "");
	run->start_real_ns = trace_start_real_ns(r);
	run->duration_ns = s->duration_ns;
	run->nap_ns = model_meta_u64(s, "nap_ns", 0);
	run->min_size = model_meta_u64(s, "min_size", 0);
	run->watched = watched_share(s);
	run->nr_damaged = trace_nr_damaged(r);
	run->nr_lost = trace_nr_lost(r);
	run->is_truncated = trace_is_truncated(r);
	run->lacks_turns = s->coverage[COVER_NEVER_ARMED].nr_objects > 0;
	run->has_naps = model_has_monitor(s, "nap");
}

static int take_summary(const struct summary *s, struct diff_pool *pool,
			struct diff_run *run)
{
	struct diff_item *whole = add_item(run, DIFF_RUN);
	if (!whole)
		return SMCO_NOMEM;
	take_facts(s, pool, run);
	take_sum(whole, &s->sum);
	whole->value[DIFF_DURATION] = (double)s->duration_ns;
	if (s->nr_ledger) {
		const struct ev_ledger *l = &s->ledger[s->nr_ledger - 1].ledger;
		int64_t ppb = model_overhead_ppb(l, l->spent_ns);
		whole->value[DIFF_OVERHEAD] = ppb < 0 ? NAN : (double)ppb;
	}
	int rc = take_sites(s, pool, run);
	if (!rc)
		rc = take_phases(s, pool, run);
	if (!rc)
		rc = take_counters(s, pool, run);
	if (!rc)
		rc = take_variables(s, pool, run);
	return rc || pool->failed ? SMCO_NOMEM : SMCO_OK;
}

int diff_run_read(struct trace_reader *reader, uint64_t ahead_bytes,
		  struct diff_pool *pool, struct diff_run *ret,
		  struct smco_err *err)
{
	struct summary *s;
	*ret = (struct diff_run){.path = ""};
	const struct select sums = {.only_sums = true,
				    .ahead_bytes = ahead_bytes};
	struct summary_input input = {.reader = reader};
	int rc = summary_load_files(&input, 1, &sums, &s, err);
	if (rc)
		return rc;
	rc = s->nr_records ? take_summary(s, pool, ret) : SMCO_EMPTY;
	summary_free(s);
	if (rc == SMCO_OK)
		return SMCO_OK;
	diff_run_free(ret);
	return smco_fail(err, rc, 0,
			 rc == SMCO_EMPTY
				 ? "an empty trace: nothing was recorded"
				 : "the trace does not fit into memory");
}
