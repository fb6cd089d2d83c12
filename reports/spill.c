#include "reports/spill.h"

#include <stdlib.h>
#include <string.h>

#include "reports/array.h"

/* A sorted piece of the file, or of memory. */
struct spill_run {
	uint64_t pos;  /* in the file, of what is not in the window yet */
	uint64_t left; /* items there */
	uint8_t *item; /* in memory: not owned */
	size_t at, nr; /* of these; at < nr as long as it is on the heap */
};

void spill_init(struct spill *s, size_t item_bytes, size_t max_bytes,
		int (*compare)(const void *, const void *, void *ctx),
		void *ctx)
{
	size_t nr = max_bytes / item_bytes;
	*s = (struct spill){
		.compare = compare,
		.ctx = ctx,
		.item_bytes = item_bytes,
		.max_items = nr ? nr : 1,
	};
}

void spill_deinit(struct spill *s)
{
	if (s->nr_runs)
		outfile_close(&s->file);
	free(s->item);
	free(s->run);
	free(s->heap);
	free(s->window);
	*s = (struct spill){0};
}

/* -------------------------------------------------------------- writing --- */

static void sort(struct spill *s)
{
	if (s->nr)
		qsort_r(s->item, s->nr, s->item_bytes, s->compare, s->ctx);
}

/* What is in memory into the file. False: it stays, and so does all else. */
static bool write_run(struct spill *s)
{
	bool is_first = !s->nr_runs;
	if (s->must_stay || !ARRAY_ROOM(s->run, s->nr_runs, s->cap_runs))
		return false;
	if (is_first && !outfile_open_unnamed(&s->file)) {
		s->must_stay = true;
		return false;
	}
	sort(s);
	uint64_t pos = s->file.size;
	if (outfile_append(&s->file, s->item, s->nr * s->item_bytes)) {
		if (is_first)
			outfile_close(&s->file);
		s->must_stay = true;
		return false;
	}
	s->run[s->nr_runs++] = (struct spill_run){.pos = pos, .left = s->nr};
	s->nr = 0;
	return true;
}

static bool grow(struct spill *s)
{
	void *item = s->item;
	bool done = array_grow(&item, &s->cap, s->item_bytes);
	s->item = item;
	return done;
}

int spill_add(struct spill *s, const void *item)
{
	if (s->nr >= s->max_items)
		write_run(s);
	if (s->nr >= s->cap && !grow(s))
		return SMCO_NOMEM;
	memcpy(s->item + s->nr++ * s->item_bytes, item, s->item_bytes);
	return SMCO_OK;
}

/* -------------------------------------------------------------- merging --- */

/* The next piece of a run; none is left: run->nr is 0. */
static int refill(struct spill *s, struct spill_run *run)
{
	size_t nr = run->left < s->window_items ? (size_t)run->left
						: s->window_items;
	if (!outfile_read(&s->file, run->pos, run->item, nr * s->item_bytes))
		return SMCO_SYS;
	run->pos += nr * s->item_bytes;
	run->left -= nr;
	run->at = 0;
	run->nr = nr;
	return SMCO_OK;
}

static const void *first_of(const struct spill *s, uint32_t i)
{
	return s->run[i].item + s->run[i].at * s->item_bytes;
}

/* The top of the heap goes where it belongs. */
static void sift_down(struct spill *s, size_t at)
{
	uint32_t moving = s->heap[at];
	for (size_t child; (child = 2 * at + 1) < s->nr_heap; at = child) {
		if (child + 1 < s->nr_heap &&
		    s->compare(first_of(s, s->heap[child + 1]),
			       first_of(s, s->heap[child]), s->ctx) < 0)
			child++;
		if (s->compare(first_of(s, moving), first_of(s, s->heap[child]),
			       s->ctx) <= 0)
			break;
		s->heap[at] = s->heap[child];
	}
	s->heap[at] = moving;
}

/* All runs of the file, and what had to stay in memory as one more. */
static int begin_merge(struct spill *s)
{
	size_t in_file = s->nr_runs;
	size_t each = s->max_items / 4 / in_file;
	s->window_items = each ? each : 1;
	s->heap = calloc(in_file + 1, sizeof(*s->heap));
	s->window =
		reallocarray(NULL, in_file * s->window_items, s->item_bytes);
	if (!s->heap || !s->window ||
	    (s->nr && !ARRAY_ROOM(s->run, s->nr_runs, s->cap_runs)))
		return SMCO_NOMEM;
	for (size_t i = 0; i < in_file; i++) {
		s->run[i].item =
			s->window + i * s->window_items * s->item_bytes;
		int rc = refill(s, &s->run[i]);
		if (rc)
			return rc;
	}
	if (s->nr)
		s->run[s->nr_runs++] =
			(struct spill_run){.item = s->item, .nr = s->nr};
	s->nr_heap = s->nr_runs;
	for (size_t i = 0; i < s->nr_heap; i++)
		s->heap[i] = (uint32_t)i;
	for (size_t i = s->nr_heap / 2; i-- > 0;)
		sift_down(s, i);
	return SMCO_OK;
}

int spill_sort(struct spill *s)
{
	if (s->nr_runs && s->nr && write_run(s)) {
		free(s->item);
		s->item = NULL;
		s->cap = 0;
	}
	sort(s);
	return s->nr_runs ? begin_merge(s) : SMCO_OK;
}

int spill_next(struct spill *s, void *item)
{
	if (!s->nr_runs) {
		if (s->next >= s->nr)
			return 0;
		memcpy(item, s->item + s->next++ * s->item_bytes,
		       s->item_bytes);
		return 1;
	}
	if (!s->nr_heap)
		return 0;
	struct spill_run *run = &s->run[s->heap[0]];
	memcpy(item, first_of(s, s->heap[0]), s->item_bytes);
	if (++run->at >= run->nr) {
		int rc = refill(s, run);
		if (rc)
			return rc;
	}
	if (run->at >= run->nr)
		s->heap[0] = s->heap[--s->nr_heap];
	if (s->nr_heap)
		sift_down(s, 0);
	return 1;
}
