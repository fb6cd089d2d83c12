/* The reader of the ring and the writer of the stack cache. */
#include "supervisor/probe/hook-shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Longest a record may stay reserved but not complete: its thread died or
 * jumped away in between. */
#define GIVE_UP_NS NSEC_PER_SEC
/* Frames further apart belong to different stacks. */
#define MAX_STEP (1u << 20)

static uint64_t rdtsc(void)
{
	uint32_t lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

/* The narrowest of a few readings, so that a preemption does not count. */
static void tsc_pair(uint64_t *tsc_ret, uint64_t *ns_ret)
{
	uint64_t best = UINT64_MAX;
	for (int i = 0; i < 4; i++) {
		uint64_t a = rdtsc(), ns = smco_now_ns(), b = rdtsc();
		if (b - a >= best)
			continue;
		best = b - a;
		*tsc_ret = a + (b - a) / 2;
		*ns_ret = ns;
	}
}

void tsc_map_init(struct tsc_map *m)
{
	static double ns_per_tick; /* a property of the machine */

	tsc_pair(&m->first_tsc, &m->first_ns);
	if (ns_per_tick == 0) {
		do
			tsc_pair(&m->tsc, &m->ns);
		while (m->ns - m->first_ns < NSEC_PER_MSEC);
		ns_per_tick = (double)(m->ns - m->first_ns) /
			      (double)(m->tsc - m->first_tsc);
	}
	m->tsc = m->first_tsc;
	m->ns = m->first_ns;
	m->ns_per_tick = ns_per_tick;
}

void tsc_map_anchor(struct tsc_map *m)
{
	tsc_pair(&m->tsc, &m->ns);
	if (m->ns - m->first_ns > 20 * NSEC_PER_MSEC)
		m->ns_per_tick = (double)(m->ns - m->first_ns) /
				 (double)(m->tsc - m->first_tsc);
}

uint64_t tsc_map_ns(const struct tsc_map *m, uint64_t tsc)
{
	double d = (double)(int64_t)(m->tsc - tsc) * m->ns_per_tick;
	if (!tsc)
		return m->ns;
	if (d >= (double)m->ns)
		return 0;
	return m->ns - (int64_t)d;
}

int hook_shm_init(struct hook_shm *shm, int fd, bool fresh,
		  struct smco_err *err)
{
	memset(shm, 0, sizeof(*shm));
	void *map = mmap(NULL, AGENT_SHM_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return smco_fail(err, SMCO_SYS, errno,
				 "cannot map the sensors' shared memory");
	shm->map = map;
	shm->ctl = map;
	shm->filter = shm->map + (AGENT_FILTER_OFF - AGENT_SHM_OFF);
	shm->stacks = (void *)(shm->map + (AGENT_STACKS_OFF - AGENT_SHM_OFF));
	shm->ring = (void *)(shm->map + (AGENT_RING_OFF - AGENT_SHM_OFF));
	shm->pool = shm->map + (AGENT_POOL_OFF - AGENT_SHM_OFF);
	shm->pool_used = 1;
	tsc_map_init(&shm->clock);
	if (fresh) {
		shm->ctl->magic = AGENT_MAGIC;
		hook_shm_set_cutoff(shm, UINT64_MAX);
		shm->ctl->always_bytes = UINT64_MAX;
		shm->ctl->map_lo = UINT64_MAX;
	}
	return 0;
}

void hook_shm_deinit(struct hook_shm *shm)
{
	if (shm->map)
		munmap(shm->map, AGENT_SHM_BYTES);
	for (unsigned i = 0; i < shm->nr_more; i++)
		if (shm->more[i])
			munmap(shm->more[i], AGENT_MORE_BYTES);
	free(shm->saved);
	memset(shm, 0, sizeof(*shm));
}

void hook_shm_set_cutoff(struct hook_shm *shm, uint64_t bytes)
{
	shm->cutoff = bytes;
	__atomic_store_n(&shm->ctl->cutoff, bytes, __ATOMIC_RELAXED);
}

void hook_shm_tell(const struct hook_shm *shm, struct hook_known *ret)
{
	ret->cutoff = shm->cutoff;
	ret->always_bytes = shm->ctl->always_bytes;
	ret->use_filter = shm->ctl->use_filter;
	ret->nr_maps_ever = shm->ctl->nr_maps_ever;
	ret->map_lo = shm->ctl->map_lo;
	ret->map_hi = shm->ctl->map_hi;
	memcpy(ret->filter, shm->filter, AGENT_FILTER_SLOTS);
}

void hook_shm_learn(struct hook_shm *shm, const struct hook_known *known)
{
	hook_shm_set_cutoff(shm, known->cutoff);
	shm->ctl->always_bytes = known->always_bytes;
	shm->ctl->use_filter = known->use_filter;
	shm->ctl->nr_maps_ever = known->nr_maps_ever;
	shm->ctl->map_lo = known->map_lo;
	shm->ctl->map_hi = known->map_hi;
	memcpy(shm->filter, known->filter, AGENT_FILTER_SLOTS);
}

void hook_shm_inherit(struct hook_shm *shm, const struct hook_shm *from)
{
	struct hook_known known;
	hook_shm_tell(from, &known);
	hook_shm_learn(shm, &known);
	memcpy(shm->stacks, from->stacks, sizeof(*shm->stacks));
	memcpy(shm->pool, from->pool, AGENT_POOL_BYTES);
	/* Further pools are shared with the parent and go on being written
	 * for it; ours begins behind them. */
	shm->nr_more = from->nr_more;
	shm->pool_used = from->pool_used;
	if (from->pool_used > AGENT_POOL_UNITS)
		shm->pool_used =
			AGENT_POOL_UNITS + from->nr_more * AGENT_MORE_UNITS;
}

/* Somebody was given @addr: a pending move of that address has lost it. */
static void note_taken(struct hook_shm *shm, uint32_t tid, uint64_t addr,
		       uint64_t size, bool is_map)
{
	for (unsigned i = 0; i < shm->nr_moving; i++) {
		struct hook_moving *m = &shm->moving[i];
		if (m->tid == tid || m->is_map != is_map)
			continue;
		if (is_map ? addr < m->addr + m->size && m->addr < addr + size
			   : addr == m->addr)
			m->taken = true;
	}
}

static void move_begins(struct hook_shm *shm, const struct agent_record *r,
			bool is_map)
{
	unsigned i = 0;
	while (i < shm->nr_moving && (shm->moving[i].tid != r->tid ||
				      shm->moving[i].is_map != is_map))
		i++;
	if (i == ARRAY_SIZE(shm->moving))
		i = 0; /* threads died in realloc: the oldest makes room */
	else if (i == shm->nr_moving)
		shm->nr_moving++;
	shm->moving[i] = (struct hook_moving){.tid = r->tid,
					      .is_map = is_map,
					      .addr = r->addr,
					      .size = r->size};
}

/* True if the old address was still nobody's when the move was over. */
static bool move_ends(struct hook_shm *shm, const struct agent_record *r,
		      bool is_map)
{
	for (unsigned i = 0; i < shm->nr_moving; i++) {
		struct hook_moving *m = &shm->moving[i];
		if (m->tid != r->tid || m->is_map != is_map)
			continue;
		bool ok = m->addr == r->old_addr && !m->taken;
		*m = shm->moving[--shm->nr_moving];
		return ok;
	}
	return false;
}

static bool convert(struct hook_shm *shm, const struct agent_record *r,
		    struct heap_event *ev)
{
	uint8_t flags = r->caller >> 48;
	bool kept;

	*ev = (struct heap_event){
		.time_ns = tsc_map_ns(&shm->clock, r->tsc),
		.tid = r->tid,
		.addr = r->addr,
		.size = r->size,
		.old_addr = r->old_addr,
		.old_size = r->old_size,
		.stack = r->stack,
		.caller = r->caller & 0xffffffffffffULL,
		.own_pages = flags & ARF_OWN_PAGES,
		.zero_fresh = flags & ARF_ZERO_FRESH,
	};
	switch (r->caller >> 56) {
	case AR_ALLOC:
		ev->kind = HEAP_ALLOC;
		note_taken(shm, r->tid, r->addr, r->size, false);
		return true;
	case AR_FREE:
		ev->kind = HEAP_FREE;
		if (flags & ARF_REALLOC)
			move_begins(shm, r, false);
		return true;
	case AR_REALLOC:
		kept = move_ends(shm, r, false);
		ev->kind = kept ? HEAP_REALLOC : HEAP_ALLOC;
		note_taken(shm, r->tid, r->addr, r->size, false);
		return true;
	case AR_MAP:
		ev->kind = HEAP_MAP;
		note_taken(shm, r->tid, r->addr, r->size, true);
		return true;
	case AR_UNMAP:
		ev->kind = HEAP_UNMAP;
		if (flags & ARF_REALLOC)
			move_begins(shm, r, true);
		return true;
	case AR_REMAP:
		kept = move_ends(shm, r, true);
		ev->kind = kept ? HEAP_REMAP : HEAP_MAP;
		note_taken(shm, r->tid, r->addr, r->size, true);
		return true;
	default:
		return false; /* not written by the agent */
	}
}

/* The record at the tail; 0 = none yet, -1 = given up, skip it. */
static int take(struct hook_shm *shm, struct agent_record *ret)
{
	struct agent_record *r = &shm->ring[shm->tail % AGENT_RING_SLOTS];
	uint64_t seq = __atomic_load_n(&r->seq, __ATOMIC_ACQUIRE);

	if (seq == shm->tail + 1) {
		memcpy(ret, r, sizeof(*ret));
		shm->stuck_since_ns = 0;
		return 1;
	}
	uint64_t head = __atomic_load_n(&shm->ctl->head, __ATOMIC_RELAXED);
	if (head == shm->tail || head - shm->tail > AGENT_RING_SLOTS)
		return 0;
	/* Reserved, not complete: a thread is between two instructions. */
	uint64_t now = smco_now_ns();
	if (!shm->stuck_since_ns) {
		shm->stuck_since_ns = now;
		shm->stuck_head = head;
	}
	if (shm->tail >= shm->give_up_below) {
		if (now - shm->stuck_since_ns < GIVE_UP_NS)
			return 0;
		/* All that were reserved by then are as old. */
		shm->give_up_below = shm->stuck_head;
	}
	if (!__atomic_compare_exchange_n(&r->seq, &seq, UINT64_MAX, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return 0; /* completed just now: next time */
	shm->stuck_since_ns = 0;
	shm->nr_given_up++;
	return -1;
}

static size_t drain_ring(struct hook_shm *shm,
			 void (*fn)(void *ctx, const struct heap_event *ev),
			 void *ctx)
{
	struct agent_record r;
	struct heap_event ev;
	size_t nr = 0;
	int got;

	tsc_map_anchor(&shm->clock);
	/* It thought that we were gone. */
	if (__atomic_load_n(&shm->ctl->mute, __ATOMIC_RELAXED)) {
		__atomic_store_n(&shm->ctl->mute, 0, __ATOMIC_RELAXED);
		hook_shm_set_cutoff(shm, shm->cutoff);
	}
	/* No more than one lap: a fast program must not keep us here. */
	for (unsigned i = 0; i < AGENT_RING_SLOTS; i++) {
		got = take(shm, &r);
		if (got == 0)
			break;
		shm->tail++;
		__atomic_store_n(&shm->ctl->tail, shm->tail, __ATOMIC_RELEASE);
		if (got > 0 && convert(shm, &r, &ev)) {
			fn(ctx, &ev);
			nr++;
		}
	}
	return nr;
}

static void save_one(void *ctx, const struct heap_event *ev)
{
	struct hook_shm *shm = ctx;
	if (shm->nr_saved == shm->saved_cap) {
		size_t cap = shm->saved_cap ? shm->saved_cap * 2 : 1024;
		struct heap_event *p =
			realloc(shm->saved, cap * sizeof(*shm->saved));
		if (!p) {
			shm->nr_given_up++;
			return;
		}
		shm->saved = p;
		shm->saved_cap = cap;
	}
	shm->saved[shm->nr_saved++] = *ev;
}

void hook_shm_save(struct hook_shm *shm)
{
	drain_ring(shm, save_one, shm);
}

size_t hook_shm_drain(struct hook_shm *shm,
		      void (*fn)(void *ctx, const struct heap_event *ev),
		      void *ctx)
{
	size_t nr = shm->nr_saved;
	for (size_t i = 0; i < nr; i++)
		fn(ctx, &shm->saved[i]);
	shm->nr_saved = 0;
	return nr + drain_ring(shm, fn, ctx);
}

static void set_distance(uint64_t *table, taddr_t ret, uint64_t bytes)
{
	uint32_t n = agent_distance_slot(table, ret);
	if (n == AGENT_NR_DISTANCES)
		return;
	uint64_t d = bytes % 8 || bytes / 8 >= AGENT_VARIABLE ? AGENT_VARIABLE
							      : bytes / 8;
	if (table[n] && (table[n] & 0xffff) != d)
		d = AGENT_VARIABLE;
	__atomic_store_n(&table[n], ret << 16 | d, __ATOMIC_RELAXED);
}

/* Enters the distances of one stack; the hash the agent will compute of it. */
static uint64_t learn_distances(uint64_t *table, const taddr_t *frames,
				const taddr_t *slots, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		set_distance(table, frames[i], slots[i + 1] - slots[i]);
	/* It ends here where another did not: do not look beyond. */
	if (n < AGENT_MAX_FRAMES && agent_distance(table, frames[n - 1]))
		set_distance(table, frames[n - 1], UINT64_MAX);
	uint64_t hash = agent_hash_frame(0, frames[0]);
	for (size_t i = 1; i < n && agent_distance(table, frames[i - 1]); i++)
		hash = agent_hash_frame(hash, frames[i]);
	return hash;
}

/* Where the pool with unit @index ends. */
static uint32_t pool_end(uint32_t index)
{
	if (index < AGENT_POOL_UNITS)
		return AGENT_POOL_UNITS;
	return AGENT_POOL_UNITS +
	       ((index - AGENT_POOL_UNITS) / AGENT_MORE_UNITS + 1) *
		       AGENT_MORE_UNITS;
}

/* Room at pool_used, which moves on to the next pool if need be. */
static void *pool_alloc(struct hook_shm *shm, uint32_t units)
{
	uint32_t end = pool_end(shm->pool_used);
	if (shm->pool_used + units > end)
		shm->pool_used = end;
	if (shm->pool_used < AGENT_POOL_UNITS)
		return shm->pool + shm->pool_used * 16UL;
	uint32_t at = shm->pool_used - AGENT_POOL_UNITS;
	if (at / AGENT_MORE_UNITS >= shm->nr_more ||
	    !shm->more[at / AGENT_MORE_UNITS])
		return NULL;
	return shm->more[at / AGENT_MORE_UNITS] + at % AGENT_MORE_UNITS * 16UL;
}

int hook_shm_add_pool(struct hook_shm *shm, int fd, taddr_t addr)
{
	if (shm->nr_more == AGENT_NR_MORE)
		return SMCO_NOMEM;
	void *map = mmap(NULL, AGENT_MORE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return SMCO_SYS;
	shm->more[shm->nr_more] = map;
	__atomic_store_n(&shm->stacks->more[shm->nr_more], addr,
			 __ATOMIC_RELEASE);
	shm->nr_more++;
	return 0;
}

int hook_shm_add_stack(struct hook_shm *shm, uint32_t stack,
		       const taddr_t *frames, const taddr_t *slots, size_t nr)
{
	size_t n = nr < AGENT_MAX_FRAMES ? nr : AGENT_MAX_FRAMES;
	for (size_t i = 1; i < n; i++)
		if (slots[i] <= slots[i - 1] ||
		    slots[i] - slots[i - 1] > MAX_STEP)
			n = i;
	if (n == 0)
		return SMCO_FORMAT;

	size_t bytes = sizeof(struct agent_stack) + n * 12;
	uint32_t units = (bytes + 15) / 16;
	struct agent_stack *e = pool_alloc(shm, units);
	if (!e)
		return SMCO_NOMEM;
	uint32_t index = shm->pool_used;
	uint64_t *value = (uint64_t *)(e + 1);
	uint32_t *dist = (uint32_t *)(value + n);
	for (size_t i = 0; i < n; i++) {
		value[i] = frames[i];
		dist[i] = slots[i] - slots[0];
	}
	uint64_t hash =
		learn_distances(shm->stacks->distance, frames, slots, n);
	uint32_t *head = &shm->stacks->heads[agent_hash_head(hash)];
	e->nr = n;
	e->stack = stack;
	e->last = dist[n - 1];
	e->next = __atomic_load_n(head, __ATOMIC_RELAXED);
	shm->pool_used += units;
	__atomic_store_n(head, index, __ATOMIC_RELEASE);
	return 0;
}
