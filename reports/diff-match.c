#include "reports/diff-match.h"

#include <stdlib.h>
#include <string.h>

#include "reports/diff-align.h"

#define NONE UINT32_MAX

const char *diff_how_name(enum diff_how how)
{
	static const char *const name[MATCH_NR] = {
		[MATCH_NONE] = "none",		 [MATCH_EXACT] = "exact",
		[MATCH_MOVED] = "moved",	 [MATCH_CUT] = "cut",
		[MATCH_FUNCTIONS] = "functions", [MATCH_STEMS] = "stems",
		[MATCH_INLINED] = "inlined",	 [MATCH_CALLERS] = "callers",
	};
	return name[how];
}

struct list {
	const struct diff_item *const *item;
	size_t nr;
	struct diff_places places;
	uint32_t *mate; /* index in the other list; NONE = none yet */
	uint8_t *how;
	bool *ambiguous;
};

struct matcher {
	struct list a, b;
};

static void pair_up(struct matcher *m, uint32_t a, uint32_t b,
		    enum diff_how how, bool ambiguous)
{
	m->a.mate[a] = b;
	m->b.mate[b] = a;
	m->a.how[a] = (uint8_t)how;
	m->a.ambiguous[a] = m->b.ambiguous[b] = ambiguous;
}

/* Can the two frames not be one place? Either both are of one build and stand
 * at different lines, or one is known to be somewhere else now. */
static bool conflict(const struct matcher *m, uint32_t a, size_t fa, uint32_t b,
		     size_t fb)
{
	const struct diff_frame *x = &m->a.item[a]->frames[fa];
	const struct diff_frame *y = &m->b.item[b]->frames[fb];
	uint32_t pa = m->a.places.of[a][fa], pb = m->b.places.of[b][fb];
	if (*x->build && x->build == y->build)
		return x->pos != y->pos;
	return pa != pb;
}

static bool any_conflict(const struct matcher *m, uint32_t a, uint32_t b)
{
	for (size_t i = 0; i < m->a.item[a]->nr_frames; i++)
		if (conflict(m, a, i, b, i))
			return true;
	return false;
}

/* -------------------------------------------------- the same, frame by frame
 * --- */

/* What two items must have in common in one of the strict ways. */
struct key_way {
	enum diff_how how;
	bool (*same)(const struct matcher *m, uint32_t a, uint32_t b);
	/* What of a frame the hash takes. */
	const char *(*text)(const struct diff_frame *f);
};

static const char *function_of(const struct diff_frame *f)
{
	return *f->function ? f->function : f->module;
}

static const char *stem_of(const struct diff_frame *f)
{
	return *f->stem ? f->stem : f->module;
}

static bool same_by(const struct matcher *m, uint32_t a, uint32_t b,
		    const char *(*text)(const struct diff_frame *f), bool files)
{
	const struct diff_item *x = m->a.item[a], *y = m->b.item[b];
	if (x->kind != y->kind || x->name != y->name ||
	    x->nr_frames != y->nr_frames)
		return false;
	for (size_t i = 0; i < x->nr_frames; i++) {
		const struct diff_frame *f = &x->frames[i], *g = &y->frames[i];
		if (text(f) != text(g) || (files && f->file != g->file))
			return false;
	}
	return true;
}

static bool same_place(const struct matcher *m, uint32_t a, uint32_t b)
{
	if (!same_by(m, a, b, function_of, true))
		return false;
	for (size_t i = 0; i < m->a.item[a]->nr_frames; i++)
		if (!m->a.places.of[a][i] ||
		    m->a.places.of[a][i] != m->b.places.of[b][i])
			return false;
	return true;
}

static bool same_functions(const struct matcher *m, uint32_t a, uint32_t b)
{
	return same_by(m, a, b, function_of, true);
}

static bool same_stems(const struct matcher *m, uint32_t a, uint32_t b)
{
	return same_by(m, a, b, stem_of, false);
}

struct group { /* items of both sides with one key, not paired yet */
	uint64_t hash;
	uint32_t index;
	bool in_b;
};

static int compare_groups(const void *va, const void *vb)
{
	const struct group *a = va, *b = vb;
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	if (a->in_b != b->in_b)
		return a->in_b ? 1 : -1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t hash_item(const struct list *l, uint32_t i,
			  const struct key_way *way)
{
	const struct diff_item *item = l->item[i];
	uint64_t hash =
		hindex_hash(item->kind, &item->name, sizeof(item->name));
	for (size_t k = 0; k < item->nr_frames; k++) {
		const char *text = way->text(&item->frames[k]);
		hash = hindex_hash(hash, &text, sizeof(text));
		if (way->how == MATCH_EXACT)
			hash = hindex_hash(hash, &l->places.of[i][k],
					   sizeof(l->places.of[i][k]));
	}
	return hash;
}

static size_t add_left(const struct list *l, bool in_b,
		       const struct key_way *way, struct group *g)
{
	size_t nr = 0;
	for (uint32_t i = 0; i < l->nr; i++)
		if (l->mate[i] == NONE)
			g[nr++] = (struct group){hash_item(l, i, way), i, in_b};
	return nr;
}

/* Were the lines the same, too? */
static enum diff_how exact_or_moved(const struct matcher *m, uint32_t a,
				    uint32_t b)
{
	const struct diff_item *x = m->a.item[a], *y = m->b.item[b];
	for (size_t i = 0; i < x->nr_frames; i++)
		if (x->frames[i].has_line &&
		    x->frames[i].pos != y->frames[i].pos)
			return MATCH_MOVED;
	return MATCH_EXACT;
}

/* How many frames of the two are the same place. */
static size_t nr_places(const struct matcher *m, uint32_t a, uint32_t b)
{
	size_t nr = 0;
	for (size_t i = 0; i < m->a.item[a]->nr_frames; i++)
		nr += m->a.places.of[a][i] &&
		      m->a.places.of[a][i] == m->b.places.of[b][i];
	return nr;
}

/* Beyond this a group is too large to try everything with everything. */
#define MOST_TRIED 512

/* The first of @b (nr_b) not taken that fits @a best, and how many fit. */
static uint32_t best_in_group(const struct matcher *m, uint32_t a,
			      const struct group *b, size_t nr_b,
			      const struct key_way *way, size_t *fitting_ret)
{
	uint32_t best = NONE;
	size_t most = 0;
	*fitting_ret = 0;
	for (size_t i = 0, tried = 0; i < nr_b && tried < MOST_TRIED; i++) {
		uint32_t at = b[i].index;
		if (m->b.mate[at] != NONE)
			continue;
		tried++;
		if (!way->same(m, a, at) ||
		    (way->how != MATCH_EXACT && any_conflict(m, a, at)))
			continue;
		size_t places = nr_places(m, a, at);
		if (best == NONE || places > most) {
			best = at;
			most = places;
			*fitting_ret = 1;
		} else if (places == most) {
			++*fitting_ret;
		}
	}
	return best;
}

/* Which of the other unpaired ones of @a fit @b as well, or better? */
struct rivals {
	bool equal, better;
};

static struct rivals rivals_for(struct matcher *m, uint32_t a, uint32_t b,
				const struct group *g, size_t nr,
				const struct key_way *way)
{
	struct rivals r = {0};
	size_t places = nr_places(m, a, b);
	for (size_t i = 0, tried = 0; i < nr && tried < MOST_TRIED; i++) {
		uint32_t other = g[i].index;
		if (other == a || m->a.mate[other] != NONE)
			continue;
		tried++;
		if (!way->same(m, other, b) || any_conflict(m, other, b))
			continue;
		size_t n = nr_places(m, other, b);
		if (n == places)
			r.equal = m->a.ambiguous[other] = true;
		r.better |= n > places;
	}
	return r;
}

/* Those first that nobody else fits better. */
static void match_group(struct matcher *m, const struct group *g, size_t nr,
			const struct key_way *way)
{
	size_t nr_a = 0;
	while (nr_a < nr && !g[nr_a].in_b)
		nr_a++;
	for (size_t i = 0; i < 2 * nr_a; i++) {
		uint32_t a = g[i % nr_a].index;
		size_t fitting;
		if (m->a.mate[a] != NONE)
			continue;
		uint32_t b =
			best_in_group(m, a, g + nr_a, nr - nr_a, way, &fitting);
		if (b == NONE)
			continue;
		struct rivals r = rivals_for(m, a, b, g, nr_a, way);
		if (r.better && i < nr_a)
			continue;
		enum diff_how how = way->how == MATCH_EXACT
					    ? exact_or_moved(m, a, b)
					    : way->how;
		pair_up(m, a, b, how,
			fitting > 1 || r.equal || m->a.ambiguous[a]);
	}
}

static int match_by_key(struct matcher *m, const struct key_way *way)
{
	struct group *g = calloc(m->a.nr + m->b.nr + 1, sizeof(*g));
	if (!g)
		return SMCO_NOMEM;
	size_t nr = add_left(&m->a, false, way, g);
	nr += add_left(&m->b, true, way, g + nr);
	qsort(g, nr, sizeof(*g), compare_groups);
	for (size_t i = 0, end; i < nr; i = end) {
		for (end = i + 1; end < nr && g[end].hash == g[i].hash;)
			end++;
		match_group(m, g + i, end - i, way);
	}
	free(g);
	return SMCO_OK;
}

/* ------------------------------------------------- frames missing in between
 * --- */

/* Stacks of one build that differ are different. */
static bool one_build(const struct diff_item *x, const struct diff_item *y)
{
	return *x->frames[0].build && x->frames[0].build == y->frames[0].build;
}

/* Is one stack the beginning of the other, innermost first? It could not be
 * read to its end then. The number of frames in common, 0 if not. */
static size_t common_if_cut(const struct matcher *m, uint32_t a, uint32_t b)
{
	const struct diff_item *x = m->a.item[a], *y = m->b.item[b];
	size_t nr = x->nr_frames < y->nr_frames ? x->nr_frames : y->nr_frames;
	if (x->nr_frames == y->nr_frames)
		return 0;
	for (size_t i = 0; i < nr; i++)
		if (x->frames[i].function != y->frames[i].function ||
		    x->frames[i].file != y->frames[i].file ||
		    !m->a.places.of[a][i] ||
		    m->a.places.of[a][i] != m->b.places.of[b][i])
			return 0;
	return nr;
}

/* As conflict(), but where a frame is missing below, what it calls differs,
 * and one of the two need not have been laid against the other. */
static bool known_apart(const struct matcher *m, uint32_t a, size_t fa,
			uint32_t b, size_t fb)
{
	const struct diff_frame *x = &m->a.item[a]->frames[fa];
	bool one_build =
		*x->build && x->build == m->b.item[b]->frames[fb].build;
	return conflict(m, a, fa, b, fb) &&
	       (one_build || (m->a.places.of[a][fa] && m->b.places.of[b][fb]));
}

/* Is every frame of the shorter stack in the longer one, in order, and the
 * outermost the same? The number of frames in common, 0 if not. */
static size_t common_if_inlined(const struct matcher *m, uint32_t a, uint32_t b)
{
	const struct diff_item *x = m->a.item[a], *y = m->b.item[b];
	size_t i = x->nr_frames, j = y->nr_frames, common = 0;
	size_t shorter = i < j ? i : j, longer = i < j ? j : i;
	if (shorter == longer || shorter * 2 < longer || one_build(x, y) ||
	    stem_of(&x->frames[i - 1]) != stem_of(&y->frames[j - 1]))
		return 0;
	while (i && j) {
		if (stem_of(&x->frames[i - 1]) == stem_of(&y->frames[j - 1])) {
			if (known_apart(m, a, i - 1, b, j - 1))
				return 0;
			common++;
			i--;
			j--;
		} else if (x->nr_frames > y->nr_frames) {
			i--;
		} else {
			j--;
		}
	}
	return common == shorter ? common : 0;
}

/* Longest common subsequence of both stacks' stems, if their innermost frames
 * are one function of one file, and it makes up at least half of the longer
 * stack; 0 otherwise. */
static size_t common_if_callers(const struct matcher *m, uint32_t a, uint32_t b)
{
	enum { DEPTH = 64 };
	const struct diff_item *x = m->a.item[a], *y = m->b.item[b];
	const struct diff_frame *f = &x->frames[0], *g = &y->frames[0];
	size_t nx = x->nr_frames < DEPTH ? x->nr_frames : DEPTH;
	size_t ny = y->nr_frames < DEPTH ? y->nr_frames : DEPTH;
	uint16_t row[DEPTH + 1] = {0};
	if (!*f->function || f->function != g->function || f->file != g->file ||
	    one_build(x, y) || known_apart(m, a, 0, b, 0))
		return 0;
	for (size_t i = 0; i < nx; i++) {
		uint16_t diagonal = 0;
		for (size_t j = 0; j < ny; j++) {
			uint16_t above = row[j + 1];
			if (stem_of(&x->frames[i]) == stem_of(&y->frames[j]))
				row[j + 1] = (uint16_t)(diagonal + 1);
			else if (row[j] > above)
				row[j + 1] = row[j];
			diagonal = above;
		}
	}
	size_t longer =
		x->nr_frames > y->nr_frames ? x->nr_frames : y->nr_frames;
	return row[ny] * 2u >= longer ? row[ny] : 0;
}

typedef size_t common_fn(const struct matcher *m, uint32_t a, uint32_t b);

struct candidate {
	size_t common, nr; /* how many are as good */
	uint32_t best;
};

/* The one of @to most like item @i of @from. */
static struct candidate search(const struct matcher *m, uint32_t i, bool from_b,
			       common_fn *common)
{
	const struct list *to = from_b ? &m->a : &m->b;
	struct candidate c = {.best = NONE};
	for (uint32_t k = 0; k < to->nr; k++) {
		if (to->mate[k] != NONE || !to->item[k]->nr_frames)
			continue;
		size_t n = from_b ? common(m, k, i) : common(m, i, k);
		if (!n || n < c.common)
			continue;
		c.nr = n > c.common ? 1 : c.nr + 1;
		c.common = n;
		c.best = k;
	}
	return c;
}

static size_t nr_left(const struct list *l)
{
	size_t nr = 0;
	for (size_t i = 0; i < l->nr; i++)
		nr += l->mate[i] == NONE && l->item[i]->nr_frames;
	return nr;
}

#define MOST_PAIRS (UINT64_C(1) << 19)

/* Pairs of which each is the other's only best. */
static void match_loosely(struct matcher *m, common_fn *common,
			  enum diff_how how)
{
	size_t left_b = nr_left(&m->b);
	if (!left_b || nr_left(&m->a) > MOST_PAIRS / left_b)
		return;
	for (uint32_t a = 0; a < m->a.nr; a++) {
		if (m->a.mate[a] != NONE || !m->a.item[a]->nr_frames)
			continue;
		struct candidate c = search(m, a, false, common);
		if (c.best == NONE)
			continue;
		struct candidate back = search(m, c.best, true, common);
		if (c.nr == 1 && back.nr == 1 && back.best == a)
			pair_up(m, a, c.best, how, false);
		else
			m->a.ambiguous[a] = m->b.ambiguous[c.best] = true;
	}
}

/* ------------------------------------------------------------------ both ---
 */

static bool list_init(struct list *l, const struct diff_item *const *item,
		      size_t nr)
{
	size_t some = nr ? nr : 1;
	*l = (struct list){.item = item, .nr = nr};
	l->mate = malloc(some * sizeof(*l->mate));
	l->how = calloc(some, sizeof(*l->how));
	l->ambiguous = calloc(some, sizeof(*l->ambiguous));
	for (size_t i = 0; l->mate && i < nr; i++)
		l->mate[i] = NONE;
	return l->mate && l->how && l->ambiguous;
}

static void list_deinit(struct list *l)
{
	diff_places_free(&l->places);
	free(l->mate);
	free(l->how);
	free(l->ambiguous);
}

static int write_pairs(const struct matcher *m, struct diff_pairs *ret)
{
	size_t nr = 0;
	ret->pair = calloc(m->a.nr + m->b.nr + 1, sizeof(*ret->pair));
	if (!ret->pair)
		return SMCO_NOMEM;
	for (uint32_t a = 0; a < m->a.nr; a++)
		ret->pair[nr++] = (struct diff_pair){a, m->a.mate[a],
						     (enum diff_how)m->a.how[a],
						     m->a.ambiguous[a]};
	for (uint32_t b = 0; b < m->b.nr; b++)
		if (m->b.mate[b] == NONE)
			ret->pair[nr++] = (struct diff_pair){
				NONE, b, MATCH_NONE, m->b.ambiguous[b]};
	ret->nr = nr;
	return SMCO_OK;
}

int diff_match(const struct diff_item *const *a, size_t nr_a,
	       const struct diff_item *const *b, size_t nr_b,
	       struct diff_pairs *ret)
{
	static const struct key_way way[] = {
		{MATCH_EXACT, same_place, function_of},
		{MATCH_FUNCTIONS, same_functions, function_of},
		{MATCH_STEMS, same_stems, stem_of},
	};
	struct matcher m;
	int rc = SMCO_NOMEM;
	*ret = (struct diff_pairs){0};
	bool ok = list_init(&m.a, a, nr_a);
	if (list_init(&m.b, b, nr_b) && ok)
		rc = diff_align(a, nr_a, b, nr_b, &m.a.places, &m.b.places);
	for (size_t i = 0; i < ARRAY_SIZE(way) && !rc; i++) {
		rc = match_by_key(&m, &way[i]);
		if (!rc && way[i].how == MATCH_EXACT)
			match_loosely(&m, common_if_cut, MATCH_CUT);
	}
	if (!rc) {
		match_loosely(&m, common_if_inlined, MATCH_INLINED);
		match_loosely(&m, common_if_callers, MATCH_CALLERS);
		rc = write_pairs(&m, ret);
	}
	list_deinit(&m.a);
	list_deinit(&m.b);
	return rc;
}
