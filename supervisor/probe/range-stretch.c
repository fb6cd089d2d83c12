/* The text that jumps go into or out of in one stop, read at once. */
#include "supervisor/probe/range-live.h"

#include <stdlib.h>

#include "reports/array.h"

/* As far apart, no page is between them that none of them is on. */
#define APART_BYTES 4096

struct stretches {
	struct tstretch *of;
	size_t nr, cap;
};

static bool add_spans(struct stretches *ret, const struct live_function *f)
{
	for (size_t i = 0; i < f->nr_spans; i++) {
		const struct live_span *s = &f->span[i];
		if (!range_span_changes(f, s))
			continue;
		if (!ARRAY_ROOM(ret->of, ret->nr, ret->cap))
			return false;
		ret->of[ret->nr++] = (struct tstretch){live_span_start(f, s),
						       live_span_len(f, s)};
	}
	return true;
}

static int by_addr(const void *pa, const void *pb)
{
	const struct tstretch *a = pa, *b = pb;
	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

/* Those that are near each other are one. */
static void merge(struct stretches *s)
{
	size_t nr = 0;
	qsort(s->of, s->nr, sizeof(*s->of), by_addr);
	for (size_t i = 1; i < s->nr; i++) {
		struct tstretch *last = &s->of[nr], next = s->of[i];
		taddr_t end = last->addr + last->len;
		if (next.addr >= end + APART_BYTES)
			s->of[++nr] = next;
		else if (next.addr + next.len > end)
			last->len = next.addr + next.len - last->addr;
	}
	s->nr = s->nr ? nr + 1 : 0;
}

void range_read_ahead(struct ranges *r, const uint32_t *functions, size_t nr)
{
	struct stretches s = {0};
	bool ok = true;
	for (size_t i = 0; i < nr && ok; i++)
		ok = add_spans(&s, &r->function[functions[i]]);
	if (ok && s.nr) {
		merge(&s);
		tmem_read_ahead(r->p, s.of, s.nr);
	}
	free(s.of);
}
