#include "reports/top-naps.h"

#include <stdlib.h>

static double weight(const struct summary *s, uint32_t i)
{
	const struct ev_nap *n = &s->nap[i].nap;
	return (double)n->size * (double)n->length_ns;
}

/* Is nap @a to go before nap @b? Of equals the earlier one stays. */
static bool is_less(const struct summary *s, uint32_t a, uint32_t b)
{
	double wa = weight(s, a), wb = weight(s, b);
	return wa < wb || (wa <= wb && a > b);
}

/* The lightest is on top of the heap; put the top where it belongs. */
static void sift_down(const struct summary *s, uint32_t *heap, size_t nr)
{
	uint32_t moving = heap[0];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < nr; at = child) {
		if (child + 1 < nr && is_less(s, heap[child + 1], heap[child]))
			child++;
		if (!is_less(s, heap[child], moving))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moving;
}

static void sift_up(const struct summary *s, uint32_t *heap, size_t at)
{
	uint32_t moving = heap[at];
	for (size_t parent; at; at = parent) {
		parent = (at - 1) / 2;
		if (!is_less(s, moving, heap[parent]))
			break;
		heap[at] = heap[parent];
	}
	heap[at] = moving;
}

static int compare_index(const void *va, const void *vb)
{
	const uint32_t *a = va, *b = vb;
	return *a < *b ? -1 : *a > *b;
}

int top_naps(const struct summary *s, size_t max, struct top_naps *ret)
{
	size_t room = max && max < s->nr_naps ? max : s->nr_naps;
	uint32_t *heap = calloc(room + 1, sizeof(*heap));
	size_t nr = 0;
	*ret = (struct top_naps){0};
	if (!heap)
		return SMCO_NOMEM;
	for (size_t i = 0; i < s->nr_naps; i++) {
		if (nr < room) {
			heap[nr] = (uint32_t)i;
			if (room < s->nr_naps)
				sift_up(s, heap, nr);
			nr++;
		} else if (is_less(s, heap[0], (uint32_t)i)) {
			heap[0] = (uint32_t)i;
			sift_down(s, heap, nr);
		}
	}
	if (room < s->nr_naps)
		qsort(heap, nr, sizeof(*heap), compare_index);
	*ret = (struct top_naps){heap, nr};
	return SMCO_OK;
}

void top_naps_free(struct top_naps *top)
{
	free(top->index);
	*top = (struct top_naps){0};
}
