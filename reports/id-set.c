#include "reports/id-set.h"

#include <stdlib.h>

#include "reports/array.h"

static int compare(const void *va, const void *vb)
{
	const uint32_t *a = va, *b = vb;
	return *a < *b ? -1 : *a > *b;
}

void id_set_sort(struct id_set *s)
{
	size_t nr = 0;
	if (s->nr)
		qsort(s->id, s->nr, sizeof(*s->id), compare);
	for (size_t i = 0; i < s->nr; i++)
		if (!nr || s->id[nr - 1] != s->id[i])
			s->id[nr++] = s->id[i];
	s->nr = nr;
}

int id_set_add(struct id_set *s, uint32_t id)
{
	if (s->nr && s->id[s->nr - 1] == id)
		return SMCO_OK;
	if (s->nr == s->cap) {
		void *grown = s->id;
		id_set_sort(s);
		/* Or else it would soon have to be sorted again. */
		if (s->nr >= s->cap / 2 &&
		    !array_grow(&grown, &s->cap, sizeof(*s->id)))
			return SMCO_NOMEM;
		s->id = grown;
	}
	s->id[s->nr++] = id;
	return SMCO_OK;
}

void id_set_free(struct id_set *s)
{
	free(s->id);
	*s = (struct id_set){0};
}
