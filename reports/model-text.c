/* Stacks as one text each, made once. */
#include "reports/model.h"

#include <stdlib.h>

#include "reports/array.h"
#include "reports/section.h"

struct stack_text {
	uint32_t id;
	char *text; /* owned */
};

struct stack_texts {
	struct stack_text *entry;
	size_t nr, cap;
	struct hindex index;
};

struct stack_texts *model_texts_new(void)
{
	return calloc(1, sizeof(struct stack_texts));
}

void model_texts_free(struct stack_texts *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr; i++)
		free(t->entry[i].text);
	free(t->entry);
	hindex_free(&t->index);
	free(t);
}

struct text_key {
	const struct stack_texts *texts;
	uint32_t id;
};

static bool same_text(const void *ctx, uint32_t value)
{
	const struct text_key *k = ctx;
	return k->texts->entry[value].id == k->id;
}

const char *model_stack_text(const struct summary *s, uint32_t id)
{
	struct stack_texts *t = s->texts;
	struct text_key key = {t, id};
	struct bbuf b = {0};
	uint32_t found;
	size_t nr = 0;
	if (!id)
		return NULL;
	uint64_t hash = hindex_hash(0, &id, sizeof(id));
	if (hindex_find(&t->index, hash, same_text, &key, &found))
		return t->entry[found].text;
	const struct trace_frame *f = model_frames(s, id, &nr);
	if (!f)
		return NULL;
	section_stack(&b, f, nr);
	if (b.failed || !ARRAY_ROOM(t->entry, t->nr, t->cap) ||
	    !hindex_add(&t->index, hash, (uint32_t)t->nr)) {
		bbuf_free(&b);
		return NULL;
	}
	t->entry[t->nr++] = (struct stack_text){id, (char *)b.data};
	return (char *)b.data;
}
