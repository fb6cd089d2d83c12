#include "reports/ranges.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

const char *finding_text(enum finding f)
{
	static const char *const texts[FINDING_NR] = {
		[FINDING_NONE] = "",
		[FINDING_SUBSCRIPT] = "a subscript outside its array",
		[FINDING_BOOL] = "a bool that was neither 0 nor 1",
		[FINDING_ENUM] = "a value that names no enumerator",
		[FINDING_NEGATIVE] = "negative, though called a size",
		[FINDING_WRAPPED] = "at both ends of its type: wrapped round?",
		[FINDING_LIMIT] = "within 1 % of its type's limit",
		[FINDING_CONSTANT] = "given a value often, always the same",
	};
	return f < FINDING_NR ? texts[f] : "";
}

const char *finding_name(enum finding f)
{
	static const char *const names[FINDING_NR] = {
		[FINDING_NONE] = "",
		[FINDING_SUBSCRIPT] = "subscript",
		[FINDING_BOOL] = "bool",
		[FINDING_ENUM] = "enum",
		[FINDING_NEGATIVE] = "negative",
		[FINDING_WRAPPED] = "wrapped",
		[FINDING_LIMIT] = "limit",
		[FINDING_CONSTANT] = "constant",
	};
	return f < FINDING_NR ? names[f] : "";
}

long double range_number(const struct model_range *r, int64_t bound)
{
	return r->var.flags & VARIABLE_SIGNED ? (long double)bound
					      : (long double)(uint64_t)bound;
}

int64_t range_watched_ppb(const struct model_range *r)
{
	if (!r->alive_ns || !(r->flags & (RANGE_SENSED | RANGE_WATCHPOINT |
					  RANGE_BREAKPOINT | RANGE_INITIAL)))
		return -1;
	if (r->watched_ns >= r->alive_ns)
		return 1000000000;
	return (int64_t)((long double)r->watched_ns * 1e9L /
			 (long double)r->alive_ns);
}

static bool are_initial(uint32_t flags)
{
	return flags & RANGE_INITIAL &&
	       !(flags & (RANGE_SENSED | RANGE_POLLED | RANGE_WATCHPOINT |
			  RANGE_BREAKPOINT));
}

bool range_is_initial(const struct model_range *r)
{
	return are_initial(r->flags);
}

const char *range_odd_words(const struct model_range *r, char *buf)
{
	buf[0] = 0;
	if (r->has_odd)
		snprintf(buf, RANGE_WORDS, ": %" PRId64, r->odd);
	return buf;
}

char *subscript_words(const struct model_range *r, char *buf)
{
	int64_t k = r->subscript->offset;
	int n = snprintf(buf, RANGE_WORDS - 24, "%s", r->decl->function);
	size_t len = n < RANGE_WORDS - 24 ? (size_t)n : RANGE_WORDS - 25;
	if (k)
		snprintf(buf + len, 24, " %c %" PRId64, k < 0 ? '-' : '+',
			 k < 0 ? -k : k);
	return buf;
}

char *subscript_array_words(const struct model_subscript *s, char *buf)
{
	const char *name = s->array->function;
	const char *at = strstr(name, "[]");
	int head = at ? (int)(at - name) : (int)strlen(name);
	snprintf(buf, RANGE_WORDS, "%.*s[%" PRIu64 "]%s",
		 head < 400 ? head : 400, name, s->elements, at ? at + 2 : "");
	return buf;
}

/* --- taking in --- */

struct decl_key {
	const struct model_ranges *rs;
	const struct trace_frame *decl;
	const char *type;
};

static uint64_t hash_decl(const struct trace_frame *decl, const char *type)
{
	uint64_t h = hindex_hash(0, decl->function, strlen(decl->function));
	h = hindex_hash(h, decl->file, strlen(decl->file));
	h = hindex_hash(h, type, strlen(type));
	return hindex_hash(h, &decl->line, sizeof(decl->line));
}

static bool same_decl(const void *ctx, uint32_t value)
{
	const struct decl_key *k = ctx;
	const struct model_range *r = &k->rs->range[value];
	return r->decl->line == k->decl->line &&
	       !strcmp(r->decl->function, k->decl->function) &&
	       !strcmp(r->decl->file, k->decl->file) &&
	       !strcmp(r->type, k->type);
}

struct subscript_key {
	const struct model_ranges *rs;
	const struct model_subscript *want;
};

static bool same_subscript(const void *ctx, uint32_t value)
{
	const struct subscript_key *k = ctx;
	const struct model_subscript *s = &k->rs->subscript[value];
	const struct model_subscript *w = k->want;
	return s->range == w->range && s->elements == w->elements &&
	       s->offset == w->offset && s->is_sure == w->is_sure &&
	       s->array->line == w->array->line &&
	       !strcmp(s->array->function, w->array->function) &&
	       !strcmp(s->array->file, w->array->file);
}

/* The variable that is declared there; UINT32_MAX when out of memory. */
static uint32_t range_of(struct model_ranges *rs,
			 const struct trace_frame *decl, const char *type)
{
	struct decl_key key = {rs, decl, type};
	uint64_t hash = hash_decl(decl, type);
	uint32_t found;
	if (hindex_find(&rs->decl_index, hash, same_decl, &key, &found))
		return found;
	if (!ARRAY_ROOM(rs->range, rs->nr, rs->cap) ||
	    !hindex_add(&rs->decl_index, hash, (uint32_t)rs->nr))
		return UINT32_MAX;
	rs->range[rs->nr] = (struct model_range){
		.decl = decl, .type = type, .unwatched = ""};
	return (uint32_t)rs->nr++;
}

/* Of the variable at @range in the array that is declared at @array: one, from
 * whatever place in the code. UINT32_MAX when out of memory. */
static uint32_t subscript_of(struct model_ranges *rs, uint32_t range,
			     const struct ev_variable *ev,
			     const struct trace_frame *array)
{
	const struct model_subscript want = {
		.range = range,
		.array = array,
		.elements = ev->elements,
		.offset = ev->offset,
		.is_sure = ev->flags & VARIABLE_SURE_ARRAY,
	};
	struct subscript_key key = {rs, &want};
	uint64_t h = hash_decl(array, "");
	uint32_t found;
	h = hindex_hash(h, &range, sizeof(range));
	if (hindex_find(&rs->subscript_index, h, same_subscript, &key, &found))
		return found;
	if (!ARRAY_ROOM(rs->subscript, rs->nr_subscripts, rs->cap_subscripts) ||
	    !hindex_add(&rs->subscript_index, h, (uint32_t)rs->nr_subscripts))
		return UINT32_MAX;
	rs->subscript[rs->nr_subscripts] = want;
	return (uint32_t)rs->nr_subscripts++;
}

struct id_key {
	const struct model_ranges *rs;
	uint32_t file, id, pid;
};

static uint64_t hash_id(uint32_t file, uint32_t id, uint32_t pid)
{
	const uint32_t all[3] = {file, id, pid};
	return hindex_hash(0, all, sizeof(all));
}

static bool same_id(const void *ctx, uint32_t value)
{
	const struct id_key *k = ctx;
	const struct range_id *have = &k->rs->id[value];
	return have->file == k->file && have->id == k->id;
}

static bool same_part(const void *ctx, uint32_t value)
{
	const struct id_key *k = ctx;
	const struct range_part *have = &k->rs->part[value];
	return have->file == k->file && have->id == k->id &&
	       have->ev.pid == k->pid;
}

int model_ranges_take_variable(struct model_ranges *rs,
			       struct trace_reader *reader, uint32_t file,
			       const struct record *r)
{
	static const struct trace_frame unknown = {
		.function = "", .file = "", .module = "", .build_id = ""};
	struct ev_variable ev;
	size_t nr = 0, nr_why = 0;
	struct id_key key = {rs, file, r->param, 0};
	uint32_t at, subscript = UINT32_MAX;
	memcpy(&ev, r->payload, sizeof(ev));
	if (hindex_find(&rs->id_index, hash_id(file, r->param, 0), same_id,
			&key, &at))
		return SMCO_OK;
	const struct trace_frame *f = trace_stack(reader, ev.decl, &nr);
	const struct trace_frame *why =
		ev.unwatched ? trace_stack(reader, ev.unwatched, &nr_why)
			     : NULL;
	at = range_of(rs, nr ? &f[0] : &unknown, nr > 1 ? f[1].function : "");
	if (at == UINT32_MAX || !ARRAY_ROOM(rs->id, rs->nr_ids, rs->cap_ids) ||
	    !hindex_add(&rs->id_index, hash_id(file, r->param, 0),
			(uint32_t)rs->nr_ids))
		return SMCO_NOMEM;
	if (ev.flags & VARIABLE_SUBSCRIPT) {
		subscript =
			subscript_of(rs, at, &ev, nr > 2 ? &f[2] : &unknown);
		if (subscript == UINT32_MAX)
			return SMCO_NOMEM;
	}
	rs->id[rs->nr_ids++] = (struct range_id){.file = file,
						 .id = r->param,
						 .range = at,
						 .subscript = subscript};
	if (subscript != UINT32_MAX)
		return SMCO_OK;
	rs->range[at].var = ev;
	if (why && nr_why)
		rs->range[at].unwatched = why->function;
	return SMCO_OK;
}

int model_ranges_take_range(struct model_ranges *rs, uint32_t file,
			    const struct record *r)
{
	struct ev_range ev;
	memcpy(&ev, r->payload, sizeof(ev));
	struct id_key key = {rs, file, r->param, ev.pid};
	uint64_t hash = hash_id(file, r->param, ev.pid);
	uint32_t at, id;
	if (hindex_find(&rs->part_index, hash, same_part, &key, &at)) {
		rs->part[at].ev = ev;
		return SMCO_OK;
	}
	/* Of a variable that was lost with its chunk nothing can be said. */
	if (!hindex_find(&rs->id_index, hash_id(file, r->param, 0), same_id,
			 &key, &id))
		return SMCO_OK;
	if (!ARRAY_ROOM(rs->part, rs->nr_parts, rs->cap_parts) ||
	    !hindex_add(&rs->part_index, hash, (uint32_t)rs->nr_parts))
		return SMCO_NOMEM;
	rs->part[rs->nr_parts++] =
		(struct range_part){.file = file,
				    .id = r->param,
				    .range = rs->id[id].range,
				    .subscript = rs->id[id].subscript,
				    .ev = ev};
	return SMCO_OK;
}

uint32_t model_ranges_of(const struct model_ranges *rs, uint32_t file,
			 uint32_t id)
{
	struct id_key key = {rs, file, id, 0};
	uint32_t at;
	if (!hindex_find(&rs->id_index, hash_id(file, id, 0), same_id, &key,
			 &at) ||
	    rs->id[at].subscript != UINT32_MAX)
		return UINT32_MAX;
	return rs->id[at].range;
}

/* --- what it means --- */

static bool less(const struct model_range *r, int64_t a, int64_t b)
{
	return r->var.flags & VARIABLE_SIGNED ? a < b
					      : (uint64_t)a < (uint64_t)b;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void join(struct model_range *r, const struct ev_range *ev)
{
	if (!r->has_value || less(r, ev->smallest, r->smallest))
		r->smallest = ev->smallest;
	if (!r->has_value || less(r, r->largest, ev->largest))
		r->largest = ev->largest;
	r->has_value = true;
	r->flags |= ev->flags;
	r->hits = add(r->hits, ev->hits);
	r->watched_ns = add(r->watched_ns, ev->watched_ns);
	r->alive_ns = add(r->alive_ns, ev->alive_ns);
	r->nr_processes++;
}

/* @value names no enumerator. */
static void offer_odd(struct model_range *r, int64_t value)
{
	if (value == r->smallest || value == r->largest ||
	    (r->has_odd && !less(r, value, r->odd)))
		return;
	r->odd = value;
	r->has_odd = true;
}

/* Behind all joins: another process' smallest may be between. */
static void join_odd(struct model_range *r, const struct ev_range *ev)
{
	if (are_initial(ev->flags)) /* which is in the source */
		return;
	if (ev->flags & RANGE_ODD_SMALLEST)
		offer_odd(r, ev->smallest);
	if (ev->flags & RANGE_ODD_LARGEST)
		offer_odd(r, ev->largest);
	if (ev->flags & RANGE_ODD_BETWEEN)
		offer_odd(r, ev->odd);
}

static void join_subscript(struct model_subscript *s, const struct ev_range *ev)
{
	if (!s->has_value || ev->smallest < s->smallest)
		s->smallest = ev->smallest;
	if (!s->has_value || ev->largest > s->largest)
		s->largest = ev->largest;
	s->has_value = true;
	s->watched_ns = add(s->watched_ns, ev->watched_ns);
	s->alive_ns = add(s->alive_ns, ev->alive_ns);
}

/* How far outside of its array; 0: inside, or it is not sure that the array is
 * meant. */
static uint64_t outside(const struct model_subscript *s)
{
	uint64_t below = s->smallest < 0 ? 0 - (uint64_t)s->smallest : 0;
	uint64_t above = s->largest >= 0 && (uint64_t)s->largest >= s->elements
				 ? (uint64_t)s->largest - s->elements + 1
				 : 0;
	bool none_inside =
		s->largest < 0 ||
		(s->smallest >= 0 && (uint64_t)s->smallest >= s->elements);
	if (!s->has_value || !s->elements || (none_inside && !s->is_sure))
		return 0;
	return below > above ? below : above;
}

/* The worst of a variable's. */
static void judge_subscript(struct model_ranges *rs,
			    const struct model_subscript *s)
{
	struct model_range *r = &rs->range[s->range];
	if (outside(s) && (!r->subscript || outside(s) > outside(r->subscript)))
		r->subscript = s;
}

/* Does its name say that it is a number of things or bytes? */
static bool is_called_size(const char *name)
{
	static const char *const words[] = {"size",  "len",    "length",
					    "count", "nbytes", "nitems"};
	const char *dot = strrchr(name, '.'), *colon = strrchr(name, ':');
	const char *last = dot > colon ? dot : colon;
	name = last ? last + 1 : name;
	size_t n = strlen(name);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t w = strlen(words[i]);
		/* "len" and "buf_len", not "silen". */
		if (n >= w && !strcmp(name + n - w, words[i]) &&
		    (n == w || name[n - w - 1] == '_'))
			return true;
	}
	return false;
}

/* Near the ends of its type? Bytes are there all the time. */
static enum finding limits(const struct model_range *r)
{
	unsigned bits = r->var.bits;
	if (r->var.class_ != VARIABLE_INT || bits < 16 || bits > 64)
		return FINDING_NONE;
	long double span = 1;
	for (unsigned i = 0; i < bits; i++)
		span *= 2;
	long double lo = 0, near = span / 100;
	if (r->var.flags & VARIABLE_SIGNED) {
		lo = -span / 2;
		near /= 2;
	}
	bool at_top = range_number(r, r->largest) >= lo + span - near;
	bool at_bottom = range_number(r, r->smallest) < lo + near;
	if (at_top && at_bottom)
		return FINDING_WRAPPED;
	if (at_top || (at_bottom && r->var.flags & VARIABLE_SIGNED))
		return FINDING_LIMIT;
	return FINDING_NONE;
}

/*
 * Never changed, although it was assigned a thousand times and nothing of that
 * was missed. Callers may well pass the same all the time, and of an array not
 * all elements need to have been seen.
 */
static bool is_constant(const struct model_range *r)
{
	return r->smallest == r->largest && r->flags & RANGE_SENSED &&
	       r->hits >= 1000 && range_watched_ppb(r) >= 990000000 &&
	       !(r->var.flags & (VARIABLE_PARAMETER | VARIABLE_ARRAY));
}

static enum finding judge(const struct model_range *r)
{
	if (r->subscript)
		return FINDING_SUBSCRIPT;
	/* What it begins with is in the source. */
	if (!r->has_value || range_is_initial(r))
		return FINDING_NONE;
	if (r->var.class_ == VARIABLE_BOOL &&
	    (r->smallest < 0 || r->largest > 1))
		return FINDING_BOOL;
	if (r->flags &
	    (RANGE_ODD_SMALLEST | RANGE_ODD_LARGEST | RANGE_ODD_BETWEEN))
		return FINDING_ENUM;
	/* -1 says that there is none, or that a call failed. */
	if (r->var.flags & VARIABLE_SIGNED && r->smallest < -1 &&
	    r->var.class_ == VARIABLE_INT && is_called_size(r->decl->function))
		return FINDING_NEGATIVE;
	enum finding f = limits(r);
	return f == FINDING_NONE && is_constant(r) ? FINDING_CONSTANT : f;
}

int range_compare_place(const struct trace_frame *a, const char *a_type,
			const struct trace_frame *b, const char *b_type)
{
	int c = strcmp(a->file, b->file);
	if (!c)
		c = strcmp(a->function, b->function);
	if (!c && a->line != b->line)
		c = a->line < b->line ? -1 : 1;
	return c ? c : strcmp(a_type, b_type);
}

int range_compare_decl(const struct model_range *a, const struct model_range *b)
{
	return range_compare_place(a->decl, a->type, b->decl, b->type);
}

static int by_decl(const void *a, const void *b)
{
	return range_compare_decl(*(const struct model_range *const *)a,
				  *(const struct model_range *const *)b);
}

const struct model_range **model_ranges_sorted(const struct model_ranges *rs,
					       bool all, size_t *nr_ret)
{
	const struct model_range **found = calloc(rs->nr + 1, sizeof(*found));
	*nr_ret = 0;
	if (!found)
		return NULL;
	for (size_t i = 0; i < rs->nr; i++)
		if (all || rs->range[i].has_value)
			found[(*nr_ret)++] = &rs->range[i];
	qsort(found, *nr_ret, sizeof(*found), by_decl);
	return found;
}

static int compare_ranges(const void *va, const void *vb)
{
	const struct model_range *a = va, *b = vb;
	unsigned ra = a->finding ? a->finding : FINDING_NR;
	unsigned rb = b->finding ? b->finding : FINDING_NR;
	if (ra != rb)
		return ra < rb ? -1 : 1;
	if (a->has_value != b->has_value)
		return a->has_value ? -1 : 1;
	return range_compare_decl(a, b);
}

void model_ranges_finish(struct model_ranges *rs)
{
	for (size_t i = 0; i < rs->nr_parts; i++) {
		const struct range_part *p = &rs->part[i];
		if (p->subscript == UINT32_MAX)
			join(&rs->range[p->range], &p->ev);
		else
			join_subscript(&rs->subscript[p->subscript], &p->ev);
	}
	for (size_t i = 0; i < rs->nr_parts; i++)
		if (rs->part[i].subscript == UINT32_MAX)
			join_odd(&rs->range[rs->part[i].range],
				 &rs->part[i].ev);
	for (size_t i = 0; i < rs->nr_subscripts; i++)
		judge_subscript(rs, &rs->subscript[i]);
	for (size_t i = 0; i < rs->nr; i++) {
		struct model_range *r = &rs->range[i];
		r->finding = judge(r);
		rs->nr_with_value += r->has_value;
		rs->nr_initial += range_is_initial(r);
		rs->nr_findings += r->finding != FINDING_NONE;
	}
	if (rs->nr)
		qsort(rs->range, rs->nr, sizeof(*rs->range), compare_ranges);
}

void model_ranges_free(struct model_ranges *rs)
{
	free(rs->range);
	free(rs->id);
	free(rs->part);
	free(rs->subscript);
	hindex_free(&rs->decl_index);
	hindex_free(&rs->subscript_index);
	hindex_free(&rs->id_index);
	hindex_free(&rs->part_index);
}
