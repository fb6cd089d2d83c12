#include "reports/phase-when.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

#define MAX_TRACKS 16384
#define MAX_PIECES 8192	      /* of a track */
#define ALL_PIECES (1u << 20) /* of all tracks, about */
#define LEAST_ROOM 64
#define LATEST_NS  (UINT64_MAX / 4) /* hostile times must not wrap */

static int by_time(const void *va, const void *vb)
{
	const struct when_piece *a = va, *b = vb;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	/* The longer one first: it has the other within. */
	return a->to_ns > b->to_ns ? -1 : a->to_ns < b->to_ns;
}

static uint64_t length_of(const struct when_piece *p)
{
	return p->to_ns - p->from_ns;
}

/* As much as there is room for: how much that was. */
static uint64_t add_in(struct when_piece *p, uint64_t in_ns)
{
	uint64_t left = length_of(p) - p->in_ns;
	in_ns = in_ns < left ? in_ns : left;
	p->in_ns += in_ns;
	return in_ns;
}

/*
 * @p begins within the last of @done pieces, or in one before it: what is over
 * others goes into them, and what is left behind the last becomes of @p. Of one
 * that was in the phase all the time, nothing counts where another was, too; of
 * another it was at another time.
 */
static void lay_over(struct when_piece *done, size_t nr, struct when_piece *p)
{
	size_t i = nr - 1;
	while (i && done[i].from_ns > p->from_ns)
		i--;
	bool is_whole = p->in_ns == length_of(p);
	done[i].nr += p->nr;
	p->nr = 0;
	for (; i < nr && p->from_ns < p->to_ns; i++) {
		uint64_t to =
			p->to_ns < done[i].to_ns ? p->to_ns : done[i].to_ns;
		if (to <= p->from_ns)
			continue;
		double part = (double)(to - p->from_ns) / (double)length_of(p);
		uint64_t in_ns = (uint64_t)((double)p->in_ns * part + 0.5);
		if (in_ns > p->in_ns || to == p->to_ns)
			in_ns = p->in_ns;
		uint64_t added = add_in(&done[i], in_ns);
		p->in_ns -= is_whole ? in_ns : added;
		p->from_ns = to;
	}
	if (p->in_ns > length_of(p))
		p->in_ns = length_of(p);
}

/* In order, none over another. */
static void flatten(struct when_track *t)
{
	size_t nr = 0;
	if (t->nr > t->nr_sorted)
		qsort(t->piece, t->nr, sizeof(*t->piece), by_time);
	for (size_t i = 0; i < t->nr; i++) {
		struct when_piece p = t->piece[i];
		if (nr && p.from_ns < t->piece[nr - 1].to_ns)
			lay_over(t->piece, nr, &p);
		if (p.from_ns < p.to_ns)
			t->piece[nr++] = p;
	}
	t->nr = t->nr_sorted = nr;
}

/* Neighbours that are together no longer than the grain become one. */
static void join(struct when_track *t)
{
	size_t nr = 0;
	for (size_t i = 0; i < t->nr; i++) {
		const struct when_piece *p = &t->piece[i];
		struct when_piece *last = nr ? &t->piece[nr - 1] : NULL;
		if (!last || p->to_ns - last->from_ns > t->grain_ns) {
			t->piece[nr++] = *p;
			continue;
		}
		last->to_ns = p->to_ns;
		last->in_ns += p->in_ns;
		last->nr += p->nr;
	}
	t->nr = t->nr_sorted = nr;
}

void when_sort(struct when_track *t, size_t max)
{
	flatten(t);
	if (max && t->nr > max && t->grain_ns)
		join(t); /* those that are new */
	while (max && t->nr > max) {
		uint64_t all = t->piece[t->nr - 1].to_ns - t->piece[0].from_ns;
		t->grain_ns = t->grain_ns ? t->grain_ns * 2 : all / t->nr + 1;
		join(t);
	}
}

int when_add(struct when_track *t, const struct when_piece *piece,
	     size_t max_pieces)
{
	if (t->nr >= max_pieces)
		when_sort(t, max_pieces / 2);
	if (!ARRAY_ROOM(t->piece, t->nr, t->cap))
		return SMCO_NOMEM;
	t->piece[t->nr++] = *piece;
	return SMCO_OK;
}

/* --- tracks --- */

struct track_key {
	const struct model_when *m;
	uint32_t id[4]; /* file, phase, pid, tid */
};

static bool same_track(const void *ctx, uint32_t value)
{
	const struct track_key *k = ctx;
	const struct when_track *t = &k->m->track[value];
	return t->file == k->id[0] && t->phase == k->id[1] &&
	       t->pid == k->id[2] && t->tid == k->id[3];
}

/* NULL in *ret: there are too many. SMCO_NOMEM. */
static int track_of(struct model_when *m, uint32_t file, uint32_t phase,
		    uint32_t pid, uint32_t tid, struct when_track **ret)
{
	struct track_key key = {m, {file, phase, pid, tid}};
	uint64_t hash = hindex_hash(0, key.id, sizeof(key.id));
	uint32_t at;
	*ret = NULL;
	if (!hindex_find(&m->index, hash, same_track, &key, &at)) {
		if (m->nr == MAX_TRACKS) {
			m->nr_untracked++;
			return SMCO_OK;
		}
		if (!ARRAY_ROOM(m->track, m->nr, m->cap) ||
		    !hindex_add(&m->index, hash, (uint32_t)m->nr))
			return SMCO_NOMEM;
		at = (uint32_t)m->nr++;
		m->track[at] = (struct when_track){
			.file = file,
			.phase = phase,
			.pid = pid,
			.tid = tid,
		};
	}
	*ret = &m->track[at];
	return SMCO_OK;
}

int model_when_add(struct model_when *m, uint32_t file, uint32_t phase,
		   uint32_t pid, uint32_t tid, const struct when_piece *piece)
{
	struct when_track *t;
	int rc = track_of(m, file, phase, pid, tid, &t);
	if (rc || !t)
		return rc;
	size_t max = ALL_PIECES / m->nr;
	max = max < LEAST_ROOM ? LEAST_ROOM : max;
	return when_add(t, piece, max < MAX_PIECES ? max : MAX_PIECES);
}

int model_when_add_late(struct model_when *m, uint32_t file, uint32_t phase,
			uint32_t pid, uint32_t tid,
			const struct when_piece *piece)
{
	struct when_track *t;
	int rc = track_of(m, file, phase, pid, tid, &t);
	if (rc || !t)
		return rc;
	if (!t->late.to_ns || t->late.from_ns > piece->from_ns)
		t->late.from_ns = piece->from_ns;
	if (t->late.to_ns < piece->to_ns)
		t->late.to_ns = piece->to_ns;
	t->late.in_ns += piece->in_ns;
	return SMCO_OK;
}

bool when_clip(struct when_piece *p, uint64_t end_ns, uint64_t length_ns,
	       uint64_t from_ns, uint64_t to_ns)
{
	if (end_ns > LATEST_NS)
		end_ns = LATEST_NS;
	p->from_ns = length_ns < end_ns ? end_ns - length_ns : 0;
	p->to_ns = end_ns > p->from_ns ? end_ns : p->from_ns + 1;
	if (p->in_ns > length_of(p))
		p->in_ns = length_of(p);
	double whole = (double)length_of(p);
	/* It counts where it began. */
	if (p->from_ns < from_ns || (to_ns && p->from_ns >= to_ns))
		p->nr = 0;
	if (p->from_ns < from_ns)
		p->from_ns = from_ns;
	if (to_ns && p->to_ns > to_ns)
		p->to_ns = to_ns;
	if (p->from_ns >= p->to_ns)
		return false;
	p->in_ns = (uint64_t)((double)p->in_ns * (double)length_of(p) / whole);
	if (p->in_ns > length_of(p))
		p->in_ns = length_of(p);
	return true;
}

/* A piece for each hole from @from_ns to @to_ns. */
static int fill_holes(struct when_track *t, uint64_t from_ns, uint64_t to_ns)
{
	size_t nr = t->nr;
	for (size_t i = 0; i <= nr && from_ns < to_ns; i++) {
		uint64_t until_ns = i < nr ? t->piece[i].from_ns : to_ns;
		struct when_piece hole = {from_ns, until_ns, 0, 0};
		if (hole.to_ns > to_ns)
			hole.to_ns = to_ns;
		if (i < nr && t->piece[i].to_ns > from_ns)
			from_ns = t->piece[i].to_ns;
		if (hole.from_ns >= hole.to_ns)
			continue;
		if (!ARRAY_ROOM(t->piece, t->nr, t->cap))
			return SMCO_NOMEM;
		t->piece[t->nr++] = hole;
	}
	when_sort(t, 0);
	return SMCO_OK;
}

int when_fill(struct when_track *t, const struct when_piece *late)
{
	double room = 0, share;
	int rc = fill_holes(t, late->from_ns, late->to_ns);
	if (rc)
		return rc;
	for (size_t i = 0; i < t->nr; i++)
		room += (double)(length_of(&t->piece[i]) - t->piece[i].in_ns);
	share = room > (double)late->in_ns ? (double)late->in_ns / room : 1;
	for (size_t i = 0; i < t->nr; i++) {
		struct when_piece *p = &t->piece[i];
		p->in_ns +=
			(uint64_t)((double)(length_of(p) - p->in_ns) * share);
	}
	return SMCO_OK;
}

int model_when_finish(struct model_when *m)
{
	int rc = SMCO_OK;
	for (size_t i = 0; i < m->nr && !rc; i++) {
		struct when_track *t = &m->track[i];
		when_sort(t, 0);
		if (t->late.to_ns)
			rc = when_fill(t, &t->late);
	}
	return rc;
}

void model_when_free(struct model_when *m)
{
	for (size_t i = 0; i < m->nr; i++)
		free(m->track[i].piece);
	free(m->track);
	hindex_free(&m->index);
}

/* --- asking --- */

static bool is_first_behind(const struct when_track *t, size_t i,
			    uint64_t time_ns)
{
	return (!i || t->piece[i - 1].to_ns <= time_ns) &&
	       (i == t->nr || t->piece[i].to_ns > time_ns);
}

/* The first piece that ends behind @time_ns, or nr. */
static size_t first_behind(const struct when_track *t, uint64_t time_ns,
			   size_t *hint)
{
	size_t low = 0, high = t->nr;
	for (size_t i = *hint; i <= t->nr && i <= *hint + 1; i++)
		if (is_first_behind(t, i, time_ns))
			return *hint = i;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->piece[middle].to_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return *hint = low;
}

double when_in_ns(const struct when_track *t, uint64_t from_ns, uint64_t to_ns,
		  size_t *hint)
{
	double sum = 0;
	for (size_t i = first_behind(t, from_ns, hint);
	     i < t->nr && t->piece[i].from_ns < to_ns; i++) {
		const struct when_piece *p = &t->piece[i];
		uint64_t from = p->from_ns > from_ns ? p->from_ns : from_ns;
		uint64_t to = p->to_ns < to_ns ? p->to_ns : to_ns;
		sum += (double)p->in_ns * (double)(to - from) /
		       (double)length_of(p);
	}
	return sum;
}

double when_share(const struct when_track *t, uint64_t time_ns, size_t *hint)
{
	size_t i = first_behind(t, time_ns, hint);
	if (i == t->nr || t->piece[i].from_ns > time_ns)
		return 0;
	return (double)t->piece[i].in_ns / (double)length_of(&t->piece[i]);
}
