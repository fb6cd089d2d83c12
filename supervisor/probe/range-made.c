/*
 * Stubs that were made ahead of time (range-make.c) come into a process. All
 * that depends on where the module really is are the return addresses of
 * displaced calls, and what is known of places in it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "supervisor/probe/range-live.h"

static size_t windows_bytes(const struct live_function *f)
{
	return f->nr_windows * sizeof(*f->window);
}

static size_t spans_bytes(const struct live_function *f)
{
	return f->nr_spans * sizeof(*f->span);
}

bool range_copy_function(struct live_function *to,
			 const struct live_function *from)
{
	*to = *from;
	to->pooled = false;
	to->window = malloc(windows_bytes(from));
	to->span = malloc(spans_bytes(from));
	to->steps->nr_users++;
	if (!to->window || !to->span)
		return false;
	memcpy(to->window, from->window, windows_bytes(from));
	memcpy(to->span, from->span, spans_bytes(from));
	return true;
}

void range_use_made(struct ranges *r)
{
	const struct ranges *made = r->plan->made;
	if (!made || made->data_off != r->data_off ||
	    made->base != r->base - r->bias)
		return;
	r->made = made;
	r->code_used = made->code_used;
}

static uint32_t end_of(const struct live_function *f)
{
	return (f->code_off + f->code_len + RANGE_STUB_ALIGN - 1) &
	       ~(RANGE_STUB_ALIGN - 1);
}

/* The first address of the module in what was made that is not before @off. */
static size_t first_back(const struct ranges *made, uint32_t off)
{
	size_t a = 0, b = made->nr_back;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (made->back[mid] < off)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

/* In pieces: pages that nobody has used take long, in a stop. */
#define PIECE_BYTES (16u << 10)

/* Of the stubs that were made, those in [@lo, @hi). */
static int write_made(struct ranges *r, uint32_t lo, uint32_t hi,
		      struct smco_err *err)
{
	const struct ranges *made = r->made;
	uint8_t code[PIECE_BYTES];
	int ret = 0;
	for (uint32_t off = lo, end; off < hi && ret == 0; off = end) {
		size_t a = first_back(made, off);
		end = hi - off > PIECE_BYTES ? off + PIECE_BYTES : hi;
		memcpy(code, made->code + off, end - off);
		for (; a < made->nr_back && made->back[a] < end; a++) {
			uint8_t *at = code + (made->back[a] - off);
			uint64_t back;
			if (end - made->back[a] < sizeof(back)) {
				end = made->back[a]; /* not cut in two */
				break;
			}
			memcpy(&back, at, sizeof(back));
			back += r->bias;
			memcpy(at, &back, sizeof(back));
		}
		ret = tmem_write(r->p, r->base + off, code, end - off);
	}
	return ret ? smco_fail(err, ret, 0, "cannot write the stubs") : 0;
}

/* The one of @function that was made and is not in @r yet; or NULL. */
static const struct live_function *to_place(const struct ranges *r,
					    uint32_t function)
{
	return function < r->plan->v->nr_functions &&
			       !r->function[function].window &&
			       r->made->function[function].window &&
			       !range_has_others(r,
						 &r->made->function[function])
		       ? &r->made->function[function]
		       : NULL;
}

/* Of many functions at first, copies have memory of their own. */
#define POOL_FROM_BYTES (16u << 10)

static void make_pool(struct ranges *r, const uint32_t *functions, size_t nr)
{
	size_t bytes = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct live_function *f = to_place(r, functions[i]);
		bytes += f ? windows_bytes(f) + spans_bytes(f) : 0;
	}
	if (r->pool || bytes < POOL_FROM_BYTES)
		return;
	/* All pages at once: one by one they take longer. */
	void *pool = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (pool == MAP_FAILED)
		return;
	r->pool = pool;
	r->pool_bytes = bytes;
}

static void *from_pool(struct ranges *r, const void *data, size_t bytes)
{
	void *to = r->pool + r->pool_used;
	memcpy(to, data, bytes);
	r->pool_used += bytes;
	return to;
}

static bool copy_pooled(struct ranges *r, struct live_function *to,
			const struct live_function *from)
{
	if (windows_bytes(from) + spans_bytes(from) >
	    r->pool_bytes - r->pool_used)
		return false;
	*to = *from;
	to->pooled = true;
	to->window = from_pool(r, from->window, windows_bytes(from));
	to->span = from_pool(r, from->span, spans_bytes(from));
	to->steps->nr_users++;
	return true;
}

static int place(struct ranges *r, uint32_t function, struct smco_err *err)
{
	const struct live_function *from = to_place(r, function);
	struct live_function *to = &r->function[function];
	if (!from) /* named twice */
		return 0;
	if (!copy_pooled(r, to, from) && !range_copy_function(to, from)) {
		range_unprepare(to);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	for (size_t i = 0; i < to->nr_windows; i++) {
		struct live_window *w = &to->window[i];
		w->addr += r->bias;
		w->relay += w->relay ? r->bias : 0;
	}
	range_is_prepared(r, function);
	return 0;
}

int range_place_made(struct ranges *r, const uint32_t *functions, size_t nr,
		     struct smco_err *err)
{
	int ret = 0;
	if (!r->made)
		return 0;
	range_empty_cells(r);
	make_pool(r, functions, nr);
	for (size_t i = 0, k; i < nr && ret == 0; i = k) {
		const struct live_function *f = to_place(r, functions[i]);
		uint32_t lo = f ? f->code_off : 0, hi = f ? end_of(f) : 0;
		const struct live_function *last = f;
		for (k = i + 1; k < nr && last; k++) {
			/* Those without a window have no stubs. */
			if (functions[k] < r->plan->v->nr_functions &&
			    !r->made->function[functions[k]].window)
				continue;
			f = to_place(r, functions[k]);
			if (!f || f->code_off != hi)
				break;
			last = f;
			hi = end_of(f);
		}
		if (!last)
			continue;
		ret = write_made(r, lo, last->code_off + last->code_len, err);
		for (size_t n = i; n < k && ret == 0; n++)
			ret = place(r, functions[n], err);
	}
	return ret;
}
