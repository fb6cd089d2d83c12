#include "reports/top-naps.h"

#include <stdlib.h>

/* Is nap @a to go before nap @b? Of equals the earlier one stays. */
static bool is_less(const struct top_nap *a, const struct top_nap *b)
{
	return a->weight < b->weight ||
	       (a->weight <= b->weight && a->index > b->index);
}

/* The lightest is on top of the heap; put the top where it belongs. */
static void sift_down(struct top_nap *heap, size_t nr)
{
	struct top_nap moving = heap[0];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < nr; at = child) {
		if (child + 1 < nr && is_less(&heap[child + 1], &heap[child]))
			child++;
		if (!is_less(&heap[child], &moving))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moving;
}

static void sift_up(struct top_nap *heap, size_t at)
{
	struct top_nap moving = heap[at];
	for (size_t parent; at; at = parent) {
		parent = (at - 1) / 2;
		if (!is_less(&moving, &heap[parent]))
			break;
		heap[at] = heap[parent];
	}
	heap[at] = moving;
}

static int compare_index(const void *va, const void *vb)
{
	const struct top_nap *a = va, *b = vb;
	return a->index < b->index ? -1 : a->index > b->index;
}

int top_naps(const struct summary *s, size_t max, struct top_naps *ret)
{
	struct shelf_window naps = {.shelf = &s->naps};
	const struct model_nap *m;
	size_t nr = 0;
	*ret = (struct top_naps){.nr = s->naps.nr};
	if (!max || max >= s->naps.nr)
		return SMCO_OK;
	ret->nr = 0;
	struct top_nap *heap = calloc(max, sizeof(*heap));
	if (!heap)
		return SMCO_NOMEM;
	for (uint64_t i = 0; i < s->naps.nr && (m = shelf_at(&naps, i)); i++) {
		struct top_nap new = {i, (double)m->nap.size *
						 (double)m->nap.length_ns};
		if (nr < max) {
			heap[nr] = new;
			sift_up(heap, nr++);
		} else if (is_less(&heap[0], &new)) {
			heap[0] = new;
			sift_down(heap, nr);
		}
	}
	bool failed = naps.failed;
	shelf_window_close(&naps);
	if (failed) {
		free(heap);
		return SMCO_SYS;
	}
	qsort(heap, nr, sizeof(*heap), compare_index);
	*ret = (struct top_naps){heap, nr};
	return SMCO_OK;
}

void top_naps_free(struct top_naps *top)
{
	free(top->nap);
	*top = (struct top_naps){0};
}
