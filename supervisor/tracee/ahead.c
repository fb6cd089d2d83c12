/* Memory that is read before it is asked for, as much of it will be. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/tracee/internal.h"

struct tahead {
	size_t nr;
	uint8_t **bytes; /* of each stretch, in one allocation */
	struct tstretch stretch[];
};

static struct tahead *ahead_alloc(size_t nr, size_t nr_bytes)
{
	struct tahead *a = malloc(sizeof(*a) + nr * sizeof(*a->stretch));
	if (!a)
		return NULL;
	a->nr = 0;
	a->bytes = malloc(nr * sizeof(*a->bytes) + nr_bytes);
	if (!a->bytes) {
		free(a);
		return NULL;
	}
	return a;
}

void tmem_read_ahead(struct tproc *p, const struct tstretch *stretch, size_t nr)
{
	size_t nr_bytes = 0;
	tmem_forget_ahead(p);
	for (size_t i = 0; i < nr; i++)
		nr_bytes += stretch[i].len;
	struct tahead *a = nr ? ahead_alloc(nr, nr_bytes) : NULL;
	if (!a)
		return;
	uint8_t *to = (uint8_t *)(a->bytes + nr);
	for (size_t i = 0; i < nr; i++) {
		if (tmem_read(p, stretch[i].addr, to, stretch[i].len))
			continue;
		a->stretch[a->nr] = stretch[i];
		a->bytes[a->nr++] = to;
		to += stretch[i].len;
	}
	p->ahead = a;
}

void tmem_forget_ahead(struct tproc *p)
{
	if (!p->ahead)
		return;
	free(p->ahead->bytes);
	free(p->ahead);
	p->ahead = NULL;
}

/* The first that ends behind @addr; .nr: none does. */
static size_t first_behind(const struct tahead *a, taddr_t addr)
{
	size_t lo = 0, hi = a->nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct tstretch *s = &a->stretch[mid];
		if (s->addr + s->len > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool ahead_read(const struct tproc *p, taddr_t addr, void *buf, size_t len)
{
	const struct tahead *a = p->ahead;
	size_t i = a ? first_behind(a, addr) : 0;
	if (!a || i == a->nr || addr < a->stretch[i].addr ||
	    len > a->stretch[i].len - (addr - a->stretch[i].addr))
		return false;
	memcpy(buf, a->bytes[i] + (addr - a->stretch[i].addr), len);
	return true;
}

void ahead_wrote(struct tproc *p, taddr_t addr, const void *buf, size_t len)
{
	struct tahead *a = p->ahead;
	if (!a)
		return;
	for (size_t i = first_behind(a, addr);
	     i < a->nr && a->stretch[i].addr < addr + len; i++) {
		const struct tstretch *s = &a->stretch[i];
		taddr_t from = addr > s->addr ? addr : s->addr;
		taddr_t end = addr + len < s->addr + s->len ? addr + len
							    : s->addr + s->len;
		memcpy(a->bytes[i] + (from - s->addr),
		       (const uint8_t *)buf + (from - addr), end - from);
	}
}
