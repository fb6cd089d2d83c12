/* Chunk headers, see heapwalk.h; glibc's malloc/malloc.c says how they are. */
#include "supervisor/probe/heapwalk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PREV_INUSE     1ULL
#define IS_MMAPPED     2ULL
#define NON_MAIN_ARENA 4ULL
#define SIZE_BITS      7ULL
#define MIN_CHUNK      0x20ULL
#define HEAP_MAX       (64ULL << 20) /* thread heaps lie at multiples of it */
#define ARENA_BYTES    0x898ULL	     /* struct malloc_state since 2.26 */
#define FIRST_SEARCH   0x1000ULL     /* how far the first chunk may be */
#define PROBE_CHUNKS   24
#define FOREIGN_PAGES  16 /* so many pages without a header: not malloc's */
#define WINDOW	       (64U << 10)

struct walk {
	struct tproc *p;
	uint64_t min_bytes;
	uint64_t cpu_end_ns;
	unsigned nr_reads;
	void (*fn)(void *ctx, const struct heap_block *b);
	void *ctx;
	bool late;
	taddr_t skip_start, skip_end;
	const taddr_t *sps; /* where stacks are, sorted */
	size_t nr_sps;
	taddr_t window; /* what buf holds */
	size_t window_len;
	uint8_t buf[WINDOW];
};

struct chunk {
	uint64_t prev_size;
	uint64_t head; /* size and flags */
};

static uint64_t chunk_size(const struct chunk *c)
{
	return c->head & ~SIZE_BITS;
}

/* Looked at now and then only: asking costs half a read. */
static bool out_of_time(struct walk *w)
{
	if (++w->nr_reads % 64 == 0 &&
	    smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) > w->cpu_end_ns)
		w->late = true;
	return w->late;
}

/* Headers are close together or far apart: read what the last step suggests. */
static bool read_chunk(struct walk *w, taddr_t at, struct chunk *ret)
{
	if (at < w->window || at + sizeof(*ret) > w->window + w->window_len) {
		bool near = at >= w->window &&
			    at - w->window < w->window_len + 1024;
		size_t len = near ? w->window_len * 4 : 512;
		if (len < 512)
			len = 512;
		if (len > WINDOW)
			len = WINDOW;
		if (out_of_time(w))
			return false;
		w->window = at;
		w->window_len = tmem_read_some(w->p, at, w->buf, len);
		if (w->window_len < sizeof(*ret))
			return false;
	}
	memcpy(ret, w->buf + (at - w->window), sizeof(*ret));
	return true;
}

static bool plausible(const struct chunk *c, taddr_t at, taddr_t end,
		      uint64_t arena_bit)
{
	uint64_t size = chunk_size(c);
	return size >= MIN_CHUNK && size % 16 == 0 && size <= end - at &&
	       !(c->head & IS_MMAPPED) &&
	       /* Free chunks of a thread's arena do not carry the bit. */
	       (c->head & NON_MAIN_ARENA) <= arena_bit;
}

/*
 * Walks [at, end). With @probe nothing is told, and only the beginning is
 * walked, to see whether chunks start at @at. True if every header was right.
 */
static bool walk_chunks(struct walk *w, taddr_t at, taddr_t end,
			uint64_t arena_bit, bool probe)
{
	struct chunk c, next;
	unsigned nr = 0;

	if (!read_chunk(w, at, &c))
		return false;
	while (plausible(&c, at, end, arena_bit)) {
		uint64_t size = chunk_size(&c);
		taddr_t next_at = at + size;
		if (next_at + sizeof(next) > end)
			return nr > 0; /* the top, not in use */
		if (probe && ++nr == PROBE_CHUNKS)
			return true;
		if (!read_chunk(w, next_at, &next))
			return false;
		if (!probe && (next.head & PREV_INUSE) &&
		    size - 8 >= w->min_bytes) {
			struct heap_block b = {.addr = at + 16,
					       .size = size - 8};
			w->fn(w->ctx, &b);
		}
		at = next_at;
		c = next;
		nr += !probe;
	}
	/* Fenceposts end a heap that could not grow any further. */
	return nr > 0 && chunk_size(&c) < MIN_CHUNK;
}

static void walk_heap(struct walk *w, taddr_t from, taddr_t likely, taddr_t end,
		      uint64_t arena_bit)
{
	taddr_t at = likely;
	taddr_t last = from + FIRST_SEARCH < end ? from + FIRST_SEARCH : end;
	if (!walk_chunks(w, at, end, arena_bit, true)) {
		for (at = from; at < last && !w->late; at += 16)
			if (walk_chunks(w, at, end, arena_bit, true))
				break;
		if (at >= last || w->late)
			return;
	}
	walk_chunks(w, at, end, arena_bit, false);
}

/* A thread arena's heap at @at; *end_ret is where it ends. */
static bool walk_thread_heap(struct walk *w, taddr_t at, taddr_t map_end,
			     taddr_t *end_ret)
{
	struct {
		uint64_t arena, prev, size, mprotect_size;
	} info;
	if (tmem_read(w->p, at, &info, sizeof(info)))
		return false;
	if (info.size < TPAGE_SIZE || info.size > HEAP_MAX ||
	    info.size % TPAGE_SIZE || info.mprotect_size < info.size ||
	    info.mprotect_size > HEAP_MAX || info.size > map_end - at ||
	    info.arena % 16 || info.prev % HEAP_MAX)
		return false;
	/* The first heap of an arena has the arena in it. */
	bool first = info.arena > at && info.arena < at + 128;
	if (!first && (info.prev == 0 || info.arena % HEAP_MAX > 128))
		return false;
	taddr_t likely =
		first ? (info.arena + ARENA_BYTES + 15) & ~15ULL : at + 0x30;
	*end_ret = at + info.size;
	walk_heap(w, at + 0x20, likely, at + info.size, NON_MAIN_ARENA);
	return true;
}

/*
 * A chunk with a mapping of its own that begins at page @at; its length, or
 * 0. memalign moves the header to the end of the first page and leaves the
 * old one behind.
 */
static uint64_t mmapped_chunk(struct walk *w, taddr_t at, taddr_t end)
{
	static const uint64_t offsets[] = {TPAGE_SIZE - 16, 0};
	uint8_t page[TPAGE_SIZE];
	if (out_of_time(w))
		return 0;
	if (tmem_read(w->p, at, page, sizeof(page)))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		struct chunk c;
		taddr_t c_at = at + offsets[i];
		memcpy(&c, page + offsets[i], sizeof(c));
		uint64_t size = chunk_size(&c);
		if ((c.head & SIZE_BITS) != IS_MMAPPED ||
		    c.prev_size != offsets[i] || size < MIN_CHUNK ||
		    size > end - c_at || (c_at + size) % TPAGE_SIZE)
			continue;
		if (size - 16 >= w->min_bytes) {
			struct heap_block b = {.addr = c_at + 16,
					       .size = size - 16,
					       .mmapped = true};
			w->fn(w->ctx, &b);
		}
		return offsets[i] + size;
	}
	return 0;
}

/* Adjacent mappings look like one: several heaps and chunks in a row. */
static void walk_anonymous(struct walk *w, const struct tmap *m)
{
	unsigned foreign = 0;
	taddr_t at = m->start, end;
	while (at < m->end && foreign < FOREIGN_PAGES && !w->late) {
		if (at % HEAP_MAX == 0 &&
		    walk_thread_heap(w, at, m->end, &end)) {
			at = end;
			foreign = 0;
			continue;
		}
		uint64_t len = mmapped_chunk(w, at, m->end);
		foreign = len ? 0 : foreign + 1;
		at += len ? len : TPAGE_SIZE;
	}
}

static int compare_addr(const void *a, const void *b)
{
	const taddr_t x = *(const taddr_t *)a, y = *(const taddr_t *)b;
	return x < y ? -1 : x > y;
}

/* Where the threads' stacks are, sorted; @nr of them. NULL: out of memory. */
static taddr_t *stack_pointers(struct tproc *p, size_t *nr)
{
	taddr_t *sps = calloc(tproc_nr_tasks(p) + 1, sizeof(*sps));
	struct user_regs_struct regs;
	*nr = 0;
	for (struct task *t = tproc_first_task(p); t && sps; t = task_next(t))
		if (!task_get_regs(t, &regs))
			sps[(*nr)++] = regs.rsp;
	if (sps)
		qsort(sps, *nr, sizeof(*sps), compare_addr);
	return sps;
}

/* A thousand threads' stacks are as many mappings that look like any other. */
static bool is_stack(const struct tmap *m, const taddr_t *sps, size_t nr)
{
	size_t lo = 0, hi = nr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (sps[mid] < m->start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < nr && sps[lo] < m->end;
}

static bool is_heap(const struct tmap *m)
{
	return !strcmp(m->path, "[heap]");
}

/* Where blocks may be. */
static bool is_walked(const struct walk *w, const struct tmap *m)
{
	if (is_heap(m))
		return true;
	return !m->path[0] && !m->inode && !m->shared &&
	       (m->prot & (PROT_READ | PROT_WRITE)) ==
		       (PROT_READ | PROT_WRITE) &&
	       (m->start >= w->skip_end || w->skip_start >= m->end) &&
	       !is_stack(m, w->sps, w->nr_sps);
}

/* Those of @maps that are there still, from the first one on, as far as there
 * is time to ask. False: one of them is not. */
static bool are_there(struct walk *w, const struct tmaps *maps, size_t *nr_ret)
{
	*nr_ret = maps->nr;
	for (size_t i = 0; i < maps->nr; i++) {
		const struct tmap *m = &maps->maps[i];
		if (!is_walked(w, m))
			continue;
		if (out_of_time(w)) {
			*nr_ret = i;
			return true;
		}
		if (!tproc_has_map(w->p, m))
			return false;
	}
	return true;
}

/* @nr of the mappings, and what is in them. */
static int known_maps(struct walk *w, uint64_t budget_ns,
		      const struct tmaps **ret, size_t *nr_ret,
		      struct smco_err *err)
{
	uint64_t end_ns = w->cpu_end_ns;
	int r = tproc_recent_maps(w->p, ret, err);
	if (r)
		return r;
	w->cpu_end_ns = end_ns - budget_ns / 2;
	bool fine = are_there(w, *ret, nr_ret);
	w->cpu_end_ns = end_ns;
	w->late = false;
	if (fine)
		return 0;
	r = tproc_get_maps(w->p, ret, err);
	*nr_ret = (*ret)->nr;
	return r;
}

int heapwalk(struct tproc *p, uint64_t min_bytes, taddr_t skip_start,
	     taddr_t skip_end, uint64_t budget_ns,
	     void (*fn)(void *ctx, const struct heap_block *b), void *ctx,
	     bool *complete_ret, struct smco_err *err)
{
	static struct walk w; /* large; one thread traces */
	const struct tmaps *maps;
	size_t nr, nr_sps;
	_cleanup_free_ taddr_t *sps = stack_pointers(p, &nr_sps);
	if (!sps)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	w = (struct walk){.p = p,
			  .min_bytes = min_bytes < HEAPWALK_MIN_BYTES
					       ? HEAPWALK_MIN_BYTES
					       : min_bytes,
			  .cpu_end_ns = smco_clock_ns(CLOCK_THREAD_CPUTIME_ID) +
					budget_ns,
			  .fn = fn,
			  .ctx = ctx,
			  .skip_start = skip_start,
			  .skip_end = skip_end,
			  .sps = sps,
			  .nr_sps = nr_sps};
	int r = known_maps(&w, budget_ns, &maps, &nr, err);
	if (r)
		return r;
	/* Few and large ones first, in case the time runs out. */
	for (size_t i = 0; i < nr; i++) {
		const struct tmap *m = &maps->maps[i];
		if (!is_heap(m) && is_walked(&w, m))
			walk_anonymous(&w, m);
	}
	for (size_t i = 0; i < nr; i++) {
		const struct tmap *m = &maps->maps[i];
		if (!is_heap(m) || (i && is_heap(&maps->maps[i - 1])))
			continue;
		taddr_t end = m->end;
		for (size_t k = i + 1; k < nr && is_heap(&maps->maps[k]) &&
				       maps->maps[k].start == end;
		     k++)
			end = maps->maps[k].end;
		walk_heap(&w, m->start, m->start, end, 0);
	}
	*complete_ret = !w.late && nr == maps->nr;
	return 0;
}
