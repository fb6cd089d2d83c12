/*
 * Blocks: the functions that allocate, free and move them.
 *
 * Order is what makes the record exact: a free is recorded before the
 * original frees, an allocation after the original has returned and before
 * the program gets the address. So nobody else can be given an address
 * between the two, and replaying the ring in order gives the live set.
 */
#include "call.h"

#define ERRNO_NOMEM  12
#define BIG	     (128ULL << 10) /* glibc maps blocks of this size */
#define REALLOC_COPY (256ULL << 10) /* below, copying beats unalignedness */
#define CALLOC_CLEAR (128ULL << 10)

static uint64_t call_malloc(uint64_t size)
{
	return ((fn1 *)agent_priv.orig_malloc)(size);
}
static void call_free(uint64_t p)
{
	((fn1 *)agent_priv.orig_free)(p);
}
static uint64_t call_memalign(uint64_t align, uint64_t size)
{
	return ((fn2 *)agent_priv.orig_memalign)(align, size);
}

/* A glibc chunk: the word below the block is its size and three flags. */
static bool chunk_mmapped(uint64_t p)
{
	return ((uint64_t *)p)[-1] & 2;
}
static uint64_t chunk_usable(uint64_t p)
{
	uint64_t size = ((uint64_t *)p)[-1] & ~7ULL;
	return size - (chunk_mmapped(p) ? 16 : 8);
}

/*
 * Pages of its own cost a small block up to as much again, and put all blocks'
 * beginnings into the same sets of the cache: 100 000 blocks of 8 to 16 KiB,
 * used at random, were a fifth slower. So only so many small blocks get them;
 * the others are watched on pages they share with their neighbours. So are all
 * where the program may have no more than so much memory: it might be just
 * enough.
 */
#define SMALL (64ULL << 10)
static uint64_t *waste_for(uint64_t size)
{
	return size < SMALL ? &agent_priv.small_waste : &agent_priv.large_waste;
}
static bool may_align(uint64_t size)
{
	uint64_t spare = load(size < SMALL ? &agent_ctl.small_spare
					   : &agent_ctl.large_spare);
	return spare == (uint32_t)-1 || load(waste_for(size)) < spare << 10;
}
static uint64_t waste_of(uint64_t p, uint64_t size)
{
	if (p & (PAGE - 1))
		return 0;
	return PAGE + ((size + PAGE - 1) & ~(PAGE - 1)) - size;
}

static void record_free(struct agent_frame *f, uint64_t p, uint64_t val,
			uint32_t flags)
{
	uint64_t size = val & AGENT_SIZE_MASK;
	add(waste_for(size), -waste_of(p, size));
	struct agent_event ev = {
		.kind = AR_FREE, .flags = flags, .addr = p, .size = size};
	ring_put(f, &ev, 0);
}

/* Where in the stack the call came from, to tell a nested call's entry. */
static uint64_t frame_mark(struct agent_frame *f)
{
	return ((uint64_t)&f->ret >> 4 & 0xffffff) << AGENT_SIZE_BITS;
}

/*
 * True if the call that is ending was itself recorded by a hook further in
 * (glibc's realloc calls malloc). Any other entry for the address is left
 * over from a free that went unseen: that block is gone.
 */
static bool recorded_inside(struct agent_frame *f, uint64_t p)
{
	uint64_t val;
	if (likely(!table_find(p, &val)))
		return false;
	uint64_t outer = frame_mark(f) >> AGENT_SIZE_BITS;
	uint64_t inner = val >> AGENT_SIZE_BITS;
	if (((outer - inner) & 0xffffff) - 1 < 0x1000)
		return true;
	if (table_remove(p, &val))
		record_free(f, p, val, 0);
	return false;
}

static uint32_t page_flags(uint64_t p)
{
	if ((p & (PAGE - 1)) == 0)
		return ARF_OWN_PAGES;
	if (agent_priv.is_glibc && chunk_mmapped(p))
		return ARF_OWN_PAGES;
	return 0;
}

/* Later frees must look this address up although it is not at the start of
 * a page. */
static void widen_filter(uint64_t p)
{
	if (unlikely(p & 0xfef) && !load(&agent_ctl.use_filter))
		store(&agent_ctl.use_filter, 1);
}

static void record_block(struct agent_frame *f, uint32_t kind, uint64_t p,
			 uint64_t size, uint64_t old, uint64_t old_size,
			 uint32_t flags)
{
	if (recorded_inside(f, p))
		return;
	uint32_t stack = stack_lookup(f);
	struct agent_event ev = {.kind = kind,
				 .flags = flags | page_flags(p),
				 .addr = p,
				 .size = size,
				 .old_addr = old,
				 .old_size = old_size};
	widen_filter(p);
	/* In the table first: a full ring must not leave a record of a block
	 * whose free would go unseen. */
	if (!table_insert(p, size | frame_mark(f))) {
		add(&agent_ctl.nr_lost, 1);
		return;
	}
	add(waste_for(size), waste_of(p, size));
	if (!ring_put(f, &ev, stack)) {
		uint64_t val;
		table_remove(p, &val);
		add(waste_for(size), -waste_of(p, size));
	}
}

/* Pages of its own from glibc; 0 on failure. */
static uint64_t own_pages_alloc(uint64_t align, uint64_t size, uint32_t *flags)
{
	uint64_t p;
	if (align <= 16 && size >= BIG && size > load(&agent_priv.arena_max)) {
		p = call_malloc(size);
		if (!p)
			return 0;
		if (chunk_mmapped(p)) {
			*flags |= ARF_ZERO_FRESH;
			return p;
		}
		/* The threshold of mmap has gone up: remember, and align. */
		store(&agent_priv.arena_max, size);
		call_free(p);
	}
	p = call_memalign(align < PAGE ? PAGE : align, round_page(size));
	if (p && chunk_mmapped(p))
		*flags |= ARF_ZERO_FRESH;
	return p;
}

/* Of what the original gave: a mapping of its own nobody has written to. */
static uint32_t fresh_flags(uint64_t p)
{
	return p && agent_priv.is_glibc && chunk_mmapped(p) ? ARF_ZERO_FRESH
							    : 0;
}

/* The block at @p is the program's from here on; 0: there is none. */
static struct agent_result allocated(struct agent_frame *f, uint64_t p,
				     uint64_t size, uint32_t flags)
{
	result_is(f, p);
	if (p)
		record_block(f, AR_ALLOC, p, size, 0, 0, flags);
	return give(p);
}

struct agent_result block_alloc(struct agent_frame *f, struct timing *t,
				uint64_t align, uint64_t size)
{
	uint32_t flags = 0;
	uint64_t p;

	if (!wanted(size) || (align & (align - 1)) || !admit(size))
		return pass(f);
	timing_pause(t);
	if (agent_priv.is_glibc && may_align(size)) {
		p = own_pages_alloc(align, size, &flags);
		/* Let the original fail, or succeed after all. */
		if (!p)
			return pass(f);
	} else {
		/* All take their arguments as they came. */
		p = ((fn3 *)orig_of(f))(f->args[0], f->args[1], f->args[2]);
		flags = fresh_flags(p);
	}
	timing_go_on(t);
	return allocated(f, p, size, flags);
}

struct agent_result block_calloc(struct agent_frame *f, struct timing *t)
{
	uint64_t size, p;
	uint32_t flags = 0;

	if (__builtin_mul_overflow(f->args[0], f->args[1], &size) ||
	    !wanted(size) || !admit(size))
		return pass(f);
	timing_pause(t);
	if (agent_priv.is_glibc && size < CALLOC_CLEAR && may_align(size)) {
		p = call_memalign(PAGE, round_page(size));
		if (!p)
			return pass(f);
		if (chunk_mmapped(p))
			flags |= ARF_ZERO_FRESH;
		else
			zero_bytes((void *)p, size);
	} else {
		p = ((fn2 *)orig_of(f))(f->args[0], f->args[1]);
		flags = fresh_flags(p);
	}
	timing_go_on(t);
	return allocated(f, p, size, flags);
}

struct agent_result block_posix_memalign(struct agent_frame *f,
					 struct timing *t)
{
	uint64_t align = f->args[1], size = f->args[2];
	uint32_t flags = 0;

	/* Bad alignments are the original's to refuse. */
	if (align < 8 || (align & (align - 1)) || !wanted(size) || !admit(size))
		return pass(f);
	timing_pause(t);
	if (agent_priv.is_glibc && may_align(size)) {
		align = align < PAGE ? PAGE : align;
		size = round_page(size);
	}
	uint64_t ret = ((fn3 *)orig_of(f))(f->args[0], align, size);
	timing_go_on(t);
	result_is(f, ret);
	if ((int32_t)ret != 0)
		return give(ret);
	uint64_t p = *(uint64_t *)f->args[0];
	if (p)
		record_block(f, AR_ALLOC, p, f->args[2], 0, 0, flags);
	return give(ret);
}

/*
 * A throwing operator new must not unwind through the agent, which has no
 * unwind table: ask malloc, and leave the failure to the original.
 */
struct agent_result block_new(struct agent_frame *f, struct timing *t,
			      uint64_t align)
{
	uint64_t size = f->args[0];
	if ((align && !agent_priv.orig_memalign) || !wanted(size) ||
	    !admit(size))
		return pass(f);
	timing_pause(t);
	uint64_t p = align ? call_memalign(align, size) : call_malloc(size);
	timing_go_on(t);
	if (!p)
		return pass(f);
	return allocated(f, p, size, 0);
}

struct agent_result block_free(struct agent_frame *f)
{
	uint64_t p = f->args[0], val;
	if (p && table_remove(p, &val))
		record_free(f, p, val, 0);
	return pass(f);
}

/* What a tracked or growing block of glibc becomes, its own pages kept. */
static uint64_t move_block(struct agent_frame *f, struct timing *t, uint64_t p,
			   uint64_t size, bool tracked)
{
	fn2 *realloc_orig = (fn2 *)agent_priv.orig_realloc;
	if (!agent_priv.is_glibc)
		return ((fn3 *)orig_of(f))(f->args[0], f->args[1], f->args[2]);
	if (size >= REALLOC_COPY || chunk_mmapped(p) || !may_align(size))
		return realloc_orig(p, size);
	uint64_t usable = chunk_usable(p);
	/* In place; what a smaller one does not need goes back. */
	if (tracked && (p & (PAGE - 1)) == 0 && round_page(size) <= usable)
		return round_page(size) + PAGE > usable
			       ? p
			       : realloc_orig(p, round_page(size));
	uint64_t q = call_memalign(PAGE, round_page(size));
	if (!q)
		return realloc_orig(p, size);
	uint64_t n = usable < size ? usable : size;
	timing_go_on(t);
	copy_bytes((void *)q, (void *)p, n);
	timing_pause_copied(t, n);
	call_free(p);
	return q;
}

struct agent_result block_realloc(struct agent_frame *f, struct timing *t,
				  uint64_t size)
{
	uint64_t p = f->args[0], val = 0;

	if (!p) {
		/* reallocarray and realloc of nothing are malloc. */
		if (!agent_priv.is_glibc)
			return block_alloc(f, t, 1, size);
		uint32_t flags = 0;
		if (!wanted(size) || !admit(size))
			return pass(f);
		timing_pause(t);
		uint64_t q = may_align(size) ? own_pages_alloc(1, size, &flags)
					     : call_malloc(size);
		timing_go_on(t);
		if (!q)
			return pass(f);
		return allocated(f, q, size, flags);
	}
	bool tracked = table_find(p, &val);
	if (!wanted(size) || !admit(size)) {
		if (tracked && table_remove(p, &val))
			record_free(f, p, val, 0);
		return pass(f);
	}
	if (tracked && table_remove(p, &val))
		record_free(f, p, val, ARF_REALLOC);
	timing_pause(t);
	uint64_t q = move_block(f, t, p, size, tracked);
	timing_go_on(t);
	result_is(f, q);
	uint64_t old_size = val & AGENT_SIZE_MASK;
	if (q)
		record_block(f, tracked ? AR_REALLOC : AR_ALLOC, q, size,
			     tracked ? p : 0, old_size, 0);
	else if (tracked) /* the old block is still there */
		record_block(f, AR_REALLOC, p, old_size, p, old_size, 0);
	return give(q);
}
