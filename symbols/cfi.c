#include "symbols/cfi.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/cficompile.h"
#include "symbols/ehframe.h"
#include "symbols/ehhdr.h"

#define MAX_FDES (8u << 20)
/* FDEs before the one that begins last in which an address may be. */
#define MAX_BACK 4

struct cfi_table {
	/* Which FDEs there are, by start: the linker's table of them, or, where
	 * it made none, all of them. */
	bool has_hdr;
	struct ehhdr hdr;
	struct ehframe_section section;
	struct ehframe e;
	size_t nr_fdes;
	struct cfi_rows *rows; /* by FDE */
	struct cfi_compiler compiler;
	bool is_complete;     /* atomic: nothing changes any more */
	pthread_mutex_t lock; /* until then, all of this */
};

/* --- what there is --- */

static bool open_hdr(struct ehhdr *ret, Elf *elf, int fd)
{
	if (!ehhdr_open(ret, elf, fd))
		return false;
	if (ret->nr && ret->nr <= MAX_FDES)
		return true;
	ehhdr_close(ret);
	return false;
}

uint64_t cfi_work_bytes(Elf *elf, int fd)
{
	struct ehhdr hdr;
	if (!open_hdr(&hdr, elf, fd))
		return ehframe_bytes(elf, fd);
	ehhdr_close(&hdr);
	return 0;
}

static bool find_fdes(struct cfi_table *t, Elf *elf, int fd)
{
	if (!ehframe_open(&t->section, elf, fd))
		return false;
	t->has_hdr = !t->section.is_debug_frame && open_hdr(&t->hdr, elf, fd);
	if (!t->has_hdr && !ehframe_parse(&t->e, &t->section))
		return false;
	t->nr_fdes = t->has_hdr ? t->hdr.nr : t->e.nr_fdes;
	t->rows = calloc(t->nr_fdes + 1, sizeof(*t->rows));
	return t->nr_fdes && t->rows;
}

struct cfi_table *cfi_create(Elf *elf, int fd)
{
	struct cfi_table *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	if (cfi_compiler_init(&t->compiler, &t->section) &&
	    find_fdes(t, elf, fd))
		return t;
	cfi_destroy(t);
	return NULL;
}

void cfi_destroy(struct cfi_table *t)
{
	if (!t)
		return;
	cfi_compiler_deinit(&t->compiler);
	ehframe_deinit(&t->e);
	ehframe_section_deinit(&t->section);
	ehhdr_close(&t->hdr);
	free(t->rows);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* --- FDEs --- */

/* False if there is no FDE @i. */
static bool start_of(struct cfi_table *t, size_t i, uint64_t *ret)
{
	uint64_t fde;
	if (t->has_hdr)
		return ehhdr_entry(&t->hdr, i, ret, &fde);
	if (i >= t->e.nr_fdes)
		return false;
	*ret = t->e.fdes[i].start;
	return true;
}

static bool read_fde(struct cfi_table *t, size_t i, struct ehframe_fde *ret)
{
	uint64_t start, at;
	if (!t->has_hdr) {
		*ret = t->e.fdes[i];
		return true;
	}
	/* It says itself for which code it is. */
	return ehhdr_entry(&t->hdr, i, &start, &at) &&
	       ehframe_fde_at(&t->e, &t->section, at, ret) &&
	       ret->start == start;
}

/* The last one that begins at or before @addr; false if there is none. */
static bool find_fde(struct cfi_table *t, uint64_t addr, size_t *ret)
{
	size_t lo = 0, nr = t->nr_fdes;
	uint64_t start;
	while (nr) {
		size_t half = nr / 2;
		if (!start_of(t, lo + half, &start))
			return false;
		if (start <= addr) {
			lo += half + 1;
			nr -= half + 1;
		} else {
			nr = half;
		}
	}
	*ret = lo - 1;
	return lo > 0;
}

/* The rows of FDE @i; NULL if it is no good. */
static const struct cfi_rows *rows_of(struct cfi_table *t, size_t i)
{
	struct ehframe_fde fde;
	struct cfi_rows *r = &t->rows[i];
	if (!r->nr &&
	    (!read_fde(t, i, &fde) ||
	     !cfi_compile(&t->compiler, &t->e.cies[fde.cie], &fde, r)))
		return NULL;
	return r;
}

/* --- addresses --- */

/* The last row at or before @rel, of @r's; the first one is. */
static size_t find_row(const uint32_t *pc, const struct cfi_rows *r,
		       uint64_t rel)
{
	size_t lo = r->first, nr = r->nr;
	while (nr > 1) {
		size_t half = nr / 2;
		if (pc[lo + half] <= rel)
			lo += half;
		nr -= half;
	}
	return lo;
}

static const struct cfi_rule *find(struct cfi_table *t, uint64_t addr,
				   uint64_t *next_ret)
{
	const struct cfi_compiler *c = &t->compiler;
	size_t i = 0;
	uint64_t start;
	*next_ret = UINT64_MAX;
	bool found = find_fde(t, addr, &i);
	if (start_of(t, found ? i + 1 : 0, &start))
		*next_ret = start;
	for (size_t back = 0; found && back < MAX_BACK && back <= i; back++) {
		const struct cfi_rows *r = rows_of(t, i - back);
		if (!r || !start_of(t, i - back, &start) ||
		    addr - start >= r->len)
			continue;
		size_t row = find_row(c->pc, r, addr - start);
		uint64_t end = start + (row + 1 < (size_t)r->first + r->nr
						? c->pc[row + 1]
						: r->len);
		*next_ret = end < *next_ret ? end : *next_ret;
		return c->rule[row] ? cfi_pool_item(&c->rules, c->rule[row])
				    : NULL;
	}
	return NULL;
}

const struct cfi_rule *cfi_row(struct cfi_table *t, uint64_t addr,
			       uint64_t *next_ret)
{
	if (__atomic_load_n(&t->is_complete, __ATOMIC_ACQUIRE))
		return find(t, addr, next_ret);
	pthread_mutex_lock(&t->lock);
	const struct cfi_rule *r = find(t, addr, next_ret);
	pthread_mutex_unlock(&t->lock);
	return r;
}

const struct cfi_rule *cfi_lookup(struct cfi_table *t, uint64_t addr)
{
	uint64_t next;
	return cfi_row(t, addr, &next);
}

void cfi_complete(struct cfi_table *t)
{
	pthread_mutex_lock(&t->lock);
	if (!t->is_complete) {
		pieces_need(&t->section.bytes, 0, t->section.bytes.len);
		for (size_t i = 0; i < t->nr_fdes; i++)
			rows_of(t, i);
		__atomic_store_n(&t->is_complete, true, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&t->lock);
}

const struct cfi_full *cfi_full(const struct cfi_table *t,
				const struct cfi_rule *r)
{
	return cfi_pool_item(&t->compiler.fulls, r->full);
}

struct cursor cfi_expression(const struct cfi_table *t, int64_t at)
{
	const struct pieces *b = &t->section.bytes;
	struct cursor c = {b->data, b->data, true};
	if (at < 0 || (uint64_t)at >= b->len)
		return c;
	c = (struct cursor){b->data + at, b->data + b->len, false};
	return cursor_take(&c, cursor_uleb(&c));
}
