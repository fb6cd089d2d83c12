#include "reports/tables.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"
#include "reports/disk.h"
#include "reports/shortage.h"

/*
 * A hostile file can claim, by compression, far more than its size. What all
 * tables may hold together; a real one is some MiB.
 */
#define TABLES_MAX_RAW (128u << 20)
/* And by frames that are read as many others: how many more all stacks may
 * have than they were defined with. The rest keep theirs. */
#define TABLES_MAX_SPREAD (4u << 20)

void tables_free(struct tables *t)
{
	bbuf_free(&t->text);
	free(t->string_at);
	free(t->string_runs.run);
	free(t->frame);
	free(t->frame_runs.run);
	free(t->ref);
	for (size_t i = 0; i < t->nr_stacks; i++)
		free(t->stack[i].named);
	free(t->stack);
	hindex_free(&t->stack_index);
	free(t->meta);
	hindex_free(&t->meta_index);
	*t = (struct tables){0};
}

/* ----------------------------------------------------------------- runs --- */

static int runs_begin(struct table_runs *runs, uint32_t first, uint32_t nr,
		      size_t at)
{
	if (!first || !nr || nr > UINT32_MAX - first || at > UINT32_MAX)
		return SMCO_FORMAT;
	if (runs->nr) {
		const struct table_run *last = &runs->run[runs->nr - 1];
		if (first < last->first + last->nr)
			return SMCO_FORMAT;
	}
	if (!ARRAY_ROOM(runs->run, runs->nr, runs->cap))
		return SMCO_NOMEM;
	/* Entries are added one by one as they prove readable. */
	runs->run[runs->nr++] = (struct table_run){first, 0, (uint32_t)at};
	return SMCO_OK;
}

/* Entry of @id, SIZE_MAX if it is unknown. */
static size_t runs_find(const struct table_runs *runs, uint32_t id)
{
	size_t lo = 0, hi = runs->nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct table_run *r = &runs->run[mid];
		if (id < r->first)
			hi = mid;
		else if (id - r->first >= r->nr)
			lo = mid + 1;
		else
			return r->at + (id - r->first);
	}
	return SIZE_MAX;
}

/* --------------------------------------------------------------- chunks --- */

static int take_text(struct tables *t, struct cursor *c, uint32_t *ret)
{
	uint64_t len;
	const uint8_t *bytes;
	if (!cursor_varint(c, &len) || len > STRING_MAX ||
	    !cursor_bytes(c, len, &bytes))
		return SMCO_FORMAT;
	*ret = (uint32_t)t->text.len;
	bbuf_put(&t->text, bytes, len);
	bbuf_put(&t->text, "", 1);
	return t->text.failed ? SMCO_NOMEM : SMCO_OK;
}

static int add_strings(struct tables *t, uint32_t nr, struct cursor *c)
{
	uint32_t first;
	if (!cursor_varint32(c, &first))
		return SMCO_FORMAT;
	int rc = runs_begin(&t->string_runs, first, nr, t->nr_strings);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t at;
		rc = take_text(t, c, &at);
		if (rc)
			return rc;
		if (!ARRAY_ROOM(t->string_at, t->nr_strings, t->cap_strings))
			return SMCO_NOMEM;
		t->string_at[t->nr_strings++] = at;
		t->string_runs.run[t->string_runs.nr - 1].nr++;
	}
	return SMCO_OK;
}

static int add_frames(struct tables *t, uint32_t nr, struct cursor *c)
{
	uint32_t first;
	if (!cursor_varint32(c, &first))
		return SMCO_FORMAT;
	int rc = runs_begin(&t->frame_runs, first, nr, t->nr_frames);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < nr; i++) {
		struct disk_frame f = {0};
		uint64_t line;
		if (!cursor_varint32(c, &f.function) ||
		    !cursor_varint32(c, &f.file) || !cursor_varint(c, &line) ||
		    line >> 1 > UINT32_MAX || !cursor_varint32(c, &f.module) ||
		    !cursor_varint32(c, &f.build_id) ||
		    !cursor_varint(c, &f.offset))
			return SMCO_FORMAT;
		f.line = (uint32_t)(line >> 1);
		f.inlined = line & 1;
		if (!ARRAY_ROOM(t->frame, t->nr_frames, t->cap_frames))
			return SMCO_NOMEM;
		t->frame[t->nr_frames++] = f;
		t->frame_runs.run[t->frame_runs.nr - 1].nr++;
	}
	return SMCO_OK;
}

static struct disk_frame *frame_at(const struct tables *t, uint32_t id)
{
	size_t i = runs_find(&t->frame_runs, id);
	return i < t->nr_frames ? &t->frame[i] : NULL;
}

static int add_names(struct tables *t, uint32_t nr, struct cursor *c)
{
	uint32_t id = 0, name = 0;
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t step, n;
		size_t at = t->nr_refs;
		if (!cursor_varint32(c, &step) || !cursor_varint32(c, &n) ||
		    !n || n > NAMES_MAX_FRAMES)
			return SMCO_FORMAT;
		id += (uint32_t)unzigzag(step);
		for (uint32_t j = 0; j < n; j++) {
			if (!cursor_varint32(c, &step))
				return SMCO_FORMAT;
			name += (uint32_t)unzigzag(step);
			if (!ARRAY_ROOM(t->ref, t->nr_refs, t->cap_refs))
				return SMCO_NOMEM;
			t->ref[t->nr_refs++] = name;
		}
		struct disk_frame *f = frame_at(t, id);
		if (f) {
			f->names_at = (uint32_t)at;
			f->nr_names = n;
		}
	}
	return SMCO_OK;
}

struct stack_key {
	const struct tables *t;
	uint32_t id;
};

static bool same_stack(const void *ctx, uint32_t value)
{
	const struct stack_key *k = ctx;
	return k->t->stack[value].id == k->id;
}

static struct disk_stack *find_stack(struct tables *t, uint32_t id)
{
	struct stack_key key = {t, id};
	uint32_t found;
	if (!hindex_find(&t->stack_index, hindex_hash(0, &id, sizeof(id)),
			 same_stack, &key, &found))
		return NULL;
	return &t->stack[found];
}

static int define_stack(struct tables *t, uint32_t id, size_t at, uint32_t nr)
{
	struct disk_stack *have = find_stack(t, id);
	if (!have) {
		if (!ARRAY_ROOM(t->stack, t->nr_stacks, t->cap_stacks))
			return SMCO_NOMEM;
		have = &t->stack[t->nr_stacks];
		*have = (struct disk_stack){.id = id};
		if (!hindex_add(&t->stack_index,
				hindex_hash(0, &id, sizeof(id)),
				(uint32_t)t->nr_stacks))
			return SMCO_NOMEM;
		t->nr_stacks++;
	}
	have->at = (uint32_t)at;
	have->nr = nr;
	return SMCO_OK;
}

static int add_stacks(struct tables *t, uint32_t nr, struct cursor *c)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t id, depth, code, frame = 0;
		if (!cursor_varint32(c, &id) || !cursor_varint32(c, &depth) ||
		    depth > STACK_MAX_FRAMES)
			return SMCO_FORMAT;
		size_t at = t->nr_refs;
		for (uint32_t j = 0; j < depth; j++) {
			if (!cursor_varint32(c, &code))
				return SMCO_FORMAT;
			frame += (uint32_t)unzigzag(code);
			if (!ARRAY_ROOM(t->ref, t->nr_refs, t->cap_refs))
				return SMCO_NOMEM;
			t->ref[t->nr_refs++] = frame;
		}
		int rc = define_stack(t, id, at, depth);
		if (rc)
			return rc;
	}
	return SMCO_OK;
}

static const char *text_at(const struct tables *t, uint32_t at)
{
	return (const char *)t->text.data + at;
}

struct meta_key {
	const struct tables *t;
	const char *key;
};

static bool same_meta(const void *ctx, uint32_t value)
{
	const struct meta_key *k = ctx;
	return !strcmp(text_at(k->t, k->t->meta[value].key), k->key);
}

static bool find_meta(const struct tables *t, const char *key, uint32_t *ret)
{
	struct meta_key k = {t, key};
	return hindex_find(&t->meta_index, hindex_hash(0, key, strlen(key)),
			   same_meta, &k, ret);
}

static int add_meta(struct tables *t, uint32_t nr, struct cursor *c)
{
	for (uint32_t i = 0; i < nr; i++) {
		struct meta_pair pair;
		uint32_t found;
		int rc = take_text(t, c, &pair.key);
		if (!rc)
			rc = take_text(t, c, &pair.value);
		if (rc)
			return rc;
		const char *key = text_at(t, pair.key);
		if (find_meta(t, key, &found)) {
			t->meta[found].value = pair.value;
			continue;
		}
		if (!ARRAY_ROOM(t->meta, t->nr_meta, t->cap_meta))
			return SMCO_NOMEM;
		t->meta[t->nr_meta] = pair;
		if (!hindex_add(&t->meta_index,
				hindex_hash(0, key, strlen(key)),
				(uint32_t)t->nr_meta))
			return SMCO_NOMEM;
		t->nr_meta++;
	}
	return SMCO_OK;
}

size_t tables_room(const struct tables *t)
{
	return TABLES_MAX_RAW - t->raw_bytes;
}

int tables_add(struct tables *t, unsigned type, uint32_t nr_items,
	       struct cursor *c)
{
	if (c->len > tables_room(t))
		return SMCO_FORMAT;
	t->raw_bytes += c->len;
	switch (type) {
	case CHUNK_META:
		return add_meta(t, nr_items, c);
	case CHUNK_STRINGS:
		return add_strings(t, nr_items, c);
	case CHUNK_FRAMES:
		return add_frames(t, nr_items, c);
	case CHUNK_STACKS:
		return add_stacks(t, nr_items, c);
	case CHUNK_NAMES:
		return add_names(t, nr_items, c);
	}
	return SMCO_FORMAT;
}

/* ---------------------------------------------------------------- names --- */

static const char *string(const struct tables *t, uint32_t id)
{
	size_t i = id ? runs_find(&t->string_runs, id) : SIZE_MAX;
	return i < t->nr_strings ? text_at(t, t->string_at[i]) : "";
}

static struct trace_frame named(const struct tables *t,
				const struct disk_frame *f)
{
	static const struct disk_frame unknown;
	if (!f)
		f = &unknown;
	return (struct trace_frame){
		.function = string(t, f->function),
		.file = string(t, f->file),
		.line = f->line,
		.module = string(t, f->module),
		.build_id = string(t, f->build_id),
		.offset = f->offset,
		.inlined = f->inlined,
	};
}

/* How many frames stack @s has as it is to be read, and those if @to is not
 * NULL. */
static uint32_t read_as(const struct tables *t, const struct disk_stack *s,
			bool spread, struct trace_frame *to)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < s->nr; i++) {
		const struct disk_frame *f = frame_at(t, t->ref[s->at + i]);
		bool is_others = spread && f && f->nr_names;
		uint32_t n = is_others ? f->nr_names : 1;
		for (uint32_t j = 0; j < n && nr < STACK_MAX_FRAMES; j++) {
			if (is_others && to)
				to[nr] = named(
					t,
					frame_at(t, t->ref[f->names_at + j]));
			else if (to)
				to[nr] = named(t, f);
			nr++;
		}
	}
	return nr;
}

static bool name_stack(struct tables *t, struct disk_stack *s)
{
	uint32_t nr = read_as(t, s, true, NULL);
	bool spread =
		nr <= s->nr || t->nr_spread + nr - s->nr <= TABLES_MAX_SPREAD;
	if (!spread)
		nr = s->nr;
	s->named = calloc(nr ? nr : 1, sizeof(*s->named));
	if (!s->named) {
		shortage_tell();
		return false;
	}
	s->nr_named = read_as(t, s, spread, s->named);
	t->nr_spread += nr - s->nr;
	return true;
}

const struct trace_frame *tables_stack(struct tables *t, uint32_t id,
				       size_t *nr_ret)
{
	struct disk_stack *s = find_stack(t, id);
	if (!s || (!s->named && !name_stack(t, s)))
		return NULL;
	*nr_ret = s->nr_named;
	return s->named;
}

const char *tables_meta(const struct tables *t, const char *key)
{
	uint32_t found;
	return find_meta(t, key, &found) ? text_at(t, t->meta[found].value)
					 : NULL;
}

bool tables_meta_at(const struct tables *t, size_t i, const char **key_ret,
		    const char **value_ret)
{
	if (i >= t->nr_meta)
		return false;
	*key_ret = text_at(t, t->meta[i].key);
	*value_ret = text_at(t, t->meta[i].value);
	return true;
}
