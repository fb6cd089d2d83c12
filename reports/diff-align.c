#include "reports/diff-align.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

#define NONE UINT32_MAX

/* ----------------------------------------------------- lines of a function ---
 */

/* A match counts most, then that lines moved as far as those before, then
 * that they did not move far. */
#define SCORE_MATCH  (INT64_C(4) << 32)
#define SCORE_STEADY (INT64_C(3) << 32)
#define FAR	     1000
#define MOST_CELLS   (UINT64_C(1) << 20)

struct cell {
	int64_t score; /* of the best way that ends in this match; 0 = none */
	uint32_t from; /* the match before it */
	uint32_t best; /* best match among those before and here */
};

struct shift_slot { /* the best match that moved lines so far */
	int64_t shift;
	uint32_t cell;
};

struct table {
	struct cell *cell; /* [nr_a][nr_b] */
	struct shift_slot *slot;
	size_t mask, nr_b;
};

static struct shift_slot *slot_of(struct table *t, int64_t shift)
{
	uint64_t h = (uint64_t)shift * 0x9e3779b97f4a7c15u;
	size_t i = (size_t)(h >> 32) & t->mask;
	while (t->slot[i].cell != NONE && t->slot[i].shift != shift)
		i = (i + 1) & t->mask;
	return &t->slot[i];
}

static int64_t shift_between(const struct diff_line *a,
			     const struct diff_line *b)
{
	return (int64_t)(b->pos - a->pos);
}

static int64_t distance(int64_t shift, int64_t prior)
{
	uint64_t d = shift > prior ? (uint64_t)shift - (uint64_t)prior
				   : (uint64_t)prior - (uint64_t)shift;
	return d < FAR ? (int64_t)d : FAR;
}

/* The best cell in the rectangle that ends before row @i and column @j. */
static uint32_t best_before(const struct table *t, size_t i, size_t j)
{
	return i && j ? t->cell[(i - 1) * t->nr_b + j - 1].best : NONE;
}

static void fill_cell(struct table *t, size_t i, size_t j, int64_t shift,
		      int64_t prior)
{
	uint32_t at = (uint32_t)(i * t->nr_b + j);
	struct cell *c = &t->cell[at];
	struct shift_slot *slot = slot_of(t, shift);
	uint32_t before = best_before(t, i, j);
	int64_t other = before == NONE ? 0 : t->cell[before].score;
	int64_t steady =
		slot->cell == NONE ? INT64_MIN : t->cell[slot->cell].score;
	if (shift == prior && steady < 0)
		steady = 0; /* as what stands above the function */
	c->from = before;
	c->score = other;
	if (steady >= 0 && steady + SCORE_STEADY >= other) {
		c->from = slot->cell;
		c->score = steady + SCORE_STEADY;
	}
	c->score += SCORE_MATCH - distance(shift, prior);
	if (slot->cell == NONE || c->score > t->cell[slot->cell].score)
		*slot = (struct shift_slot){shift, at};
}

/* Of two cells, the one with the better score. */
static uint32_t better(const struct table *t, uint32_t x, uint32_t y)
{
	if (x == NONE || y == NONE)
		return x == NONE ? y : x;
	return t->cell[y].score > t->cell[x].score ? y : x;
}

static uint32_t fill(struct table *t, const struct diff_line *a, size_t nr_a,
		     const struct diff_line *b, int64_t prior)
{
	size_t nr_b = t->nr_b;
	for (size_t i = 0; i < nr_a; i++)
		for (size_t j = 0; j < nr_b; j++) {
			uint32_t best = NONE, at = (uint32_t)(i * nr_b + j);
			if (a[i].call == b[j].call) {
				fill_cell(t, i, j, shift_between(&a[i], &b[j]),
					  prior);
				best = at;
			}
			if (i)
				best = better(t, best, t->cell[at - nr_b].best);
			if (j)
				best = better(t, best, t->cell[at - 1].best);
			t->cell[at].best = best;
		}
	return t->cell[nr_a * nr_b - 1].best;
}

static void match_by_prior(const struct diff_line *a, size_t nr_a,
			   const struct diff_line *b, size_t nr_b,
			   int64_t prior, uint32_t *match)
{
	for (size_t i = 0, j = 0; i < nr_a; i++) {
		uint64_t want = a[i].pos + (uint64_t)prior;
		while (j < nr_b && b[j].pos < want)
			j++;
		for (size_t k = j; k < nr_b && b[k].pos == want; k++)
			if (b[k].call == a[i].call)
				match[i] = (uint32_t)k;
	}
}

int diff_align_lines(const struct diff_line *a, size_t nr_a,
		     const struct diff_line *b, size_t nr_b, int64_t prior,
		     uint32_t *match)
{
	struct table t = {.nr_b = nr_b};
	for (size_t i = 0; i < nr_a; i++)
		match[i] = NONE;
	if (!nr_a || !nr_b)
		return SMCO_OK;
	if (nr_a > MOST_CELLS / nr_b) {
		match_by_prior(a, nr_a, b, nr_b, prior, match);
		return SMCO_OK;
	}
	size_t slots = 2;
	while (slots < 2 * nr_a * nr_b)
		slots *= 2;
	t.mask = slots - 1;
	t.cell = calloc(nr_a * nr_b, sizeof(*t.cell));
	t.slot = malloc(slots * sizeof(*t.slot));
	if (!t.cell || !t.slot) {
		free(t.cell);
		free(t.slot);
		return SMCO_NOMEM;
	}
	for (size_t i = 0; i < slots; i++)
		t.slot[i] = (struct shift_slot){0, NONE};
	uint32_t at = fill(&t, a, nr_a, b, prior);
	for (; at != NONE; at = t.cell[at].from)
		match[at / nr_b] = (uint32_t)(at % nr_b);
	free(t.cell);
	free(t.slot);
	return SMCO_OK;
}

/* --------------------------------------------------- frames to functions ---
 */

/* One frame of one item. */
struct ref {
	const struct diff_frame *f;
	const char *call;
	uint32_t *place; /* where its place goes */
	bool in_b;
};

struct refs {
	struct ref *ref;
	size_t nr, cap;
};

static int compare_text(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a, b);
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* What must be equal for two frames to be of one function. */
static int compare_function(const struct diff_frame *a,
			    const struct diff_frame *b)
{
	int c = compare_text(a->file, b->file);
	if (!c)
		c = compare_text(a->function, b->function);
	if (!c && !*a->function)
		c = compare_text(a->module, b->module);
	return c ? c : (int)a->has_line - (int)b->has_line;
}

/* By function, then side, then what one entry of its list of lines is. */
static int compare_refs(const void *va, const void *vb)
{
	const struct ref *a = va, *b = vb;
	int c = compare_function(a->f, b->f);
	if (!c)
		c = (int)a->in_b - (int)b->in_b;
	if (!c)
		c = compare_u64(a->f->pos, b->f->pos);
	return c ? c : compare_text(a->call, b->call);
}

static bool collect(const struct diff_item *const *items, size_t nr, bool in_b,
		    struct diff_places *places, struct refs *refs)
{
	places->of = calloc(nr ? nr : 1, sizeof(*places->of));
	if (!places->of)
		return false;
	places->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		const struct diff_item *item = items[i];
		places->of[i] = calloc(item->nr_frames ? item->nr_frames : 1,
				       sizeof(**places->of));
		if (!places->of[i])
			return false;
		for (size_t k = 0; k < item->nr_frames; k++) {
			if (!ARRAY_ROOM(refs->ref, refs->nr, refs->cap))
				return false;
			refs->ref[refs->nr++] = (struct ref){
				.f = &item->frames[k],
				.call = k ? item->frames[k - 1].function
					  : diff_pool_empty,
				.place = &places->of[i][k],
				.in_b = in_b,
			};
		}
	}
	return true;
}

/* The different lines of refs [0, nr), which are one function on one side;
 * first[i] is the first ref of line i. */
static size_t lines_of(const struct ref *ref, size_t nr, struct diff_line *line,
		       size_t *first)
{
	size_t n = 0;
	for (size_t i = 0; i < nr; i++) {
		if (n && line[n - 1].pos == ref[i].f->pos &&
		    line[n - 1].call == ref[i].call)
			continue;
		first[n] = i;
		line[n++] = (struct diff_line){ref[i].f->pos, ref[i].call};
	}
	first[n] = nr;
	return n;
}

static bool one_build(const struct ref *ref, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (ref[i].f->build != ref[0].f->build)
			return false;
	return *ref[0].f->build != '\0';
}

static void match_equal(const struct diff_line *a, size_t nr_a,
			const struct diff_line *b, size_t nr_b, uint32_t *match)
{
	for (size_t i = 0; i < nr_a; i++)
		match[i] = NONE;
	match_by_prior(a, nr_a, b, nr_b, 0, match);
}

struct aligner {
	struct diff_line *line; /* of both sides */
	size_t *first;
	uint32_t *match;
	uint32_t next_place;
	const char *file; /* that of the last function */
	int64_t prior;	  /* how far its lines moved in the end */
};

static int align_function(struct aligner *al, struct ref *ref, size_t nr)
{
	size_t nr_ref_a = 0;
	while (nr_ref_a < nr && !ref[nr_ref_a].in_b)
		nr_ref_a++;
	if (!nr_ref_a || nr_ref_a == nr)
		return SMCO_OK; /* on one side only */
	struct ref *ref_b = ref + nr_ref_a;
	size_t nr_a = lines_of(ref, nr_ref_a, al->line, al->first);
	struct diff_line *b = al->line + nr_a;
	size_t *first_b = al->first + nr_a + 1;
	size_t nr_b = lines_of(ref_b, nr - nr_ref_a, b, first_b);
	int rc = SMCO_OK;
	if (al->file != ref->f->file || !ref->f->has_line)
		al->prior = 0;
	al->file = ref->f->file;
	if (one_build(ref, nr))
		match_equal(al->line, nr_a, b, nr_b, al->match);
	else
		rc = diff_align_lines(al->line, nr_a, b, nr_b, al->prior,
				      al->match);
	for (size_t i = 0; i < nr_a && !rc; i++) {
		uint32_t m = al->match[i];
		if (m == NONE)
			continue;
		uint32_t place = ++al->next_place;
		al->prior = shift_between(&al->line[i], &b[m]);
		for (size_t k = al->first[i]; k < al->first[i + 1]; k++)
			*ref[k].place = place;
		for (size_t k = first_b[m]; k < first_b[m + 1]; k++)
			*ref_b[k].place = place;
	}
	return rc;
}

/* A function: where it starts in the sorted refs, and its first line. */
struct span {
	size_t first, nr;
	const struct diff_frame *f;
};

static int compare_spans(const void *va, const void *vb)
{
	const struct span *a = va, *b = vb;
	int c = compare_text(a->f->file, b->f->file);
	if (!c)
		c = compare_u64(a->f->pos, b->f->pos);
	return c ? c : compare_u64(a->first, b->first);
}

/* In the order they stand in their files, since edits move all that follows. */
static int align_all(struct aligner *al, struct refs *refs)
{
	size_t nr = 0, i = 0;
	struct span *span = calloc(refs->nr, sizeof(*span));
	if (!span)
		return SMCO_NOMEM;
	qsort(refs->ref, refs->nr, sizeof(*refs->ref), compare_refs);
	while (i < refs->nr) {
		size_t end = i + 1;
		while (end < refs->nr &&
		       !compare_function(refs->ref[i].f, refs->ref[end].f))
			end++;
		span[nr++] = (struct span){i, end - i, refs->ref[i].f};
		i = end;
	}
	qsort(span, nr, sizeof(*span), compare_spans);
	int rc = SMCO_OK;
	for (i = 0; i < nr && !rc; i++)
		rc = align_function(al, refs->ref + span[i].first, span[i].nr);
	free(span);
	return rc;
}

int diff_align(const struct diff_item *const *a, size_t nr_a,
	       const struct diff_item *const *b, size_t nr_b,
	       struct diff_places *ret_a, struct diff_places *ret_b)
{
	struct refs refs = {0};
	struct aligner al = {0};
	int rc = SMCO_NOMEM;
	*ret_a = *ret_b = (struct diff_places){0};
	if (!collect(a, nr_a, false, ret_a, &refs) ||
	    !collect(b, nr_b, true, ret_b, &refs))
		goto out;
	al.line = calloc(refs.nr + 1, sizeof(*al.line));
	al.first = calloc(refs.nr + 2, sizeof(*al.first));
	al.match = calloc(refs.nr + 1, sizeof(*al.match));
	if (!al.line || !al.first || !al.match)
		goto out;
	rc = refs.nr ? align_all(&al, &refs) : SMCO_OK;
out:
	free(al.line);
	free(al.first);
	free(al.match);
	free(refs.ref);
	return rc;
}

void diff_places_free(struct diff_places *p)
{
	for (size_t i = 0; p->of && i < p->nr; i++)
		free(p->of[i]);
	free(p->of);
	*p = (struct diff_places){0};
}
