#include "supervisor/monitor/samples-late.h"

#include <stdlib.h>
#include <string.h>

/* @bytes of what @a points to go to *at, which is behind them then. */
static void move(struct ring_array *a, size_t bytes, uint8_t **at)
{
	if (bytes)
		memcpy(*at, a->data, bytes);
	a->data = *at;
	*at += bytes;
}

bool late_samples_add(struct late_samples *l, const struct ring_record *r,
		      uint64_t weight, uint64_t now_ns)
{
	const struct ring_sample *from = &r->sample;
	size_t chain = from->callchain.nr * 8, regs = from->user.value.nr * 8,
	       stack = from->stack.nr;
	if (l->nr == SAMPLES_LATE_MOST)
		return false;
	uint8_t *at = malloc(chain + regs + stack + 1);
	if (!at)
		return false;
	struct late_sample *s = &l->sample[l->nr++];
	*s = (struct late_sample){
		.record = *r,
		.weight = weight,
		.since_ns = now_ns,
		.bytes = at,
	};
	move(&s->record.sample.callchain, chain, &at);
	move(&s->record.sample.user.value, regs, &at);
	move(&s->record.sample.stack, stack, &at);
	return true;
}

void late_samples_each(struct late_samples *l,
		       bool (*fn)(void *ctx, const struct late_sample *s),
		       void *ctx)
{
	size_t left = 0;
	for (size_t i = 0; i < l->nr; i++)
		if (fn(ctx, &l->sample[i]))
			free(l->sample[i].bytes);
		else
			l->sample[left++] = l->sample[i];
	l->nr = left;
}

void late_samples_deinit(struct late_samples *l)
{
	for (size_t i = 0; i < l->nr; i++)
		free(l->sample[i].bytes);
	l->nr = 0;
}
