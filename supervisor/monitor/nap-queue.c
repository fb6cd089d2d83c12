#include "supervisor/monitor/nap-private.h"

#include <stdlib.h>

bool nap_queue_add(struct nap_queue *q, struct block *b, uint64_t due_ns)
{
	if (q->nr == q->cap) {
		uint32_t cap = q->cap ? q->cap * 2 : 256;
		struct nap_queue_entry *e = realloc(q->entry, cap * sizeof(*e));
		if (!e)
			return false;
		q->entry = e;
		q->cap = cap;
	}
	b->queue_pos = q->nr;
	q->entry[q->nr++] = (struct nap_queue_entry){due_ns, b};
	return true;
}

void nap_queue_remove(struct nap_queue *q, struct block *b)
{
	if (b->queue_pos == UINT32_MAX)
		return;
	struct nap_queue_entry *hole = &q->entry[b->queue_pos];
	*hole = q->entry[--q->nr];
	hole->block->queue_pos = b->queue_pos;
	b->queue_pos = UINT32_MAX;
}
