/*
 * What happens at the entry of each hooked function, once its near stub has
 * decided that the call is not one of the many small ones.
 *
 * Order is what makes the record exact: a free is recorded before the
 * original frees, an allocation after the original has returned and before
 * the program gets the address. So nobody else can be given an address
 * between the two, and replaying the ring in order gives the live set.
 */
#include "agent.h"

#include <linux/seccomp.h>

#define PAGE	     4096ULL
#define ERRNO_NOMEM  12
#define BIG	     (128ULL << 10) /* glibc maps blocks of this size */
#define REALLOC_COPY (256ULL << 10) /* below, copying beats unalignedness */
#define CALLOC_CLEAR (128ULL << 10)
#define ABSURD	     (1ULL << AGENT_SIZE_BITS)
#define SAMPLE	     16 /* one call in so many is timed */

#define MAP_FIXED	 0x10
#define MAP_ANONYMOUS	 0x20
#define MAP_GROWSDOWN	 0x100
#define MAP_STACK	 0x20000
#define MREMAP_DONTUNMAP 4
#define MMAP_FAILED	 (~0ULL)

#define HAS_PROT_ANY(prot) (((prot)&7) != 0)

typedef uint64_t fn1(uint64_t);
typedef uint64_t fn2(uint64_t, uint64_t);
typedef uint64_t fn3(uint64_t, uint64_t, uint64_t);
typedef uint64_t fn6(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		     uint64_t);

static struct agent_result give(uint64_t value)
{
	return (struct agent_result){value, 0};
}

/* The original has run: should the thread be taken out, this is to be given. */
static void result_is(struct agent_frame *f, uint64_t value)
{
	f->result = value;
	f->state |= AGENT_FRAME_RESULT;
}

static uint64_t orig_of(struct agent_frame *f)
{
	return agent_priv.sites[f->site].orig;
}

/* Run the original as if nothing were here. */
static struct agent_result pass(struct agent_frame *f)
{
	return (struct agent_result){0, orig_of(f)};
}

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

static uint64_t round_page(uint64_t size)
{
	return (size + PAGE - 1) & ~(PAGE - 1);
}

static bool admit(uint64_t size)
{
	if (size >= load(&agent_ctl.always_bytes))
		return true;
	if (load(&agent_ctl.tokens) > 0) {
		if (add(&agent_ctl.tokens, -1) > 0)
			return true;
		add(&agent_ctl.tokens, 1);
	}
	add(&agent_ctl.nr_skipped, 1);
	add(&agent_ctl.skipped_bytes, size);
	return false;
}

static bool wanted(uint64_t size)
{
	return size >= load(&agent_ctl.cutoff) && size < ABSURD;
}

/*
 * The agent's own time, without the calls of the original in it. Sampled,
 * because reading the clock costs as much as the rest.
 */
struct timing {
	uint64_t since; /* 0 = this call is not timed */
	uint64_t sum;
};
/*
 * A longer stretch was not the agent's work: the thread lost its CPU, or waited
 * for the supervisor, which the stop clock counts. Multiplied by the sampling
 * it would outweigh everything else. About 3 us.
 */
#define TIMING_MAX 8192
static uint64_t elapsed(uint64_t since, uint64_t most)
{
	uint64_t d = rdtsc() - since;
	return d < most ? d : 0;
}
static void timing_start(struct timing *t)
{
	uint64_t n = load(&agent_ctl.nr_calls);
	store(&agent_ctl.nr_calls, n + 1);
	t->sum = 0;
	t->since = n % SAMPLE ? 0 : rdtsc();
}
static void timing_pause(struct timing *t)
{
	if (unlikely(t->since))
		t->sum += elapsed(t->since, TIMING_MAX);
}
/* Here @n bytes were copied, which the original might not have done: at some
 * GB a second, or we were not at it all the time. */
static void timing_pause_copied(struct timing *t, uint64_t n)
{
	if (unlikely(t->since))
		t->sum += elapsed(t->since, TIMING_MAX + n);
}
static void timing_go_on(struct timing *t)
{
	if (unlikely(t->since))
		t->since = rdtsc();
}
static void timing_end(struct timing *t)
{
	timing_pause(t);
	if (unlikely(t->since))
		add(&agent_ctl.agent_tsc, t->sum * SAMPLE);
}

/*
 * Pages of its own cost a small block up to as much again, and put all blocks'
 * beginnings into the same sets of the cache: 100 000 blocks of 8 to 16 KiB,
 * used at random, were a fifth slower. So only so many small blocks get them;
 * the others are watched on pages they share with their neighbours. So are all
 * where the program may have no more than so much memory: it might be just
 * enough.
 */
#define SMALL	  (64ULL << 10)
#define WASTE_MAX (16ULL << 20)
static bool may_align(uint64_t size)
{
	if (agent_priv.is_limited)
		return false;
	return size >= SMALL || load(&agent_priv.waste) < WASTE_MAX;
}
static uint64_t waste_of(uint64_t p, uint64_t size)
{
	if (p & (PAGE - 1) || size >= SMALL)
		return 0;
	return PAGE + ((size + PAGE - 1) & ~(PAGE - 1)) - size;
}

static void record_free(struct agent_frame *f, uint64_t p, uint64_t val,
			uint32_t flags)
{
	add(&agent_priv.waste, -waste_of(p, val & AGENT_SIZE_MASK));
	struct agent_event ev = {.kind = AR_FREE,
				 .flags = flags,
				 .addr = p,
				 .size = val & AGENT_SIZE_MASK};
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
	add(&agent_priv.waste, waste_of(p, size));
	if (!ring_put(f, &ev, stack)) {
		uint64_t val;
		table_remove(p, &val);
		add(&agent_priv.waste, -waste_of(p, size));
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

static struct agent_result do_alloc(struct agent_frame *f, struct timing *t,
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
		if (p && agent_priv.is_glibc && chunk_mmapped(p))
			flags |= ARF_ZERO_FRESH;
	}
	timing_go_on(t);
	result_is(f, p);
	if (p)
		record_block(f, AR_ALLOC, p, size, 0, 0, flags);
	return give(p);
}

static struct agent_result do_calloc(struct agent_frame *f, struct timing *t)
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
		if (p && agent_priv.is_glibc && chunk_mmapped(p))
			flags |= ARF_ZERO_FRESH;
	}
	timing_go_on(t);
	result_is(f, p);
	if (p)
		record_block(f, AR_ALLOC, p, size, 0, 0, flags);
	return give(p);
}

static struct agent_result do_posix_memalign(struct agent_frame *f,
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
static struct agent_result do_new(struct agent_frame *f, struct timing *t,
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
	result_is(f, p);
	record_block(f, AR_ALLOC, p, size, 0, 0, 0);
	return give(p);
}

static struct agent_result do_free(struct agent_frame *f)
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
	if (tracked && (p & (PAGE - 1)) == 0 && round_page(size) <= usable &&
	    round_page(size) >= usable / 2)
		return p;
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

static struct agent_result do_realloc(struct agent_frame *f, struct timing *t,
				      uint64_t size)
{
	uint64_t p = f->args[0], val = 0;

	if (!p) {
		/* reallocarray and realloc of nothing are malloc. */
		if (!agent_priv.is_glibc)
			return do_alloc(f, t, 1, size);
		uint32_t flags = 0;
		if (!wanted(size) || !admit(size))
			return pass(f);
		timing_pause(t);
		uint64_t q = may_align(size) ? own_pages_alloc(1, size, &flags)
					     : call_malloc(size);
		timing_go_on(t);
		if (!q)
			return pass(f);
		result_is(f, q);
		record_block(f, AR_ALLOC, q, size, 0, 0, flags);
		return give(q);
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

/* libc's own mappings (heaps, thread stacks) and those of an allocator are not
 * the program's. */
static bool internal_caller(struct agent_frame *f)
{
	return (f->ret >= agent_priv.libc_start &&
		f->ret < agent_priv.libc_end) ||
	       (f->ret >= agent_priv.heap_start &&
		f->ret < agent_priv.heap_end);
}

static bool touches_map(uint64_t addr, uint64_t len)
{
	return load(&agent_ctl.nr_maps_ever) &&
	       addr < load(&agent_ctl.map_hi) &&
	       addr + len > load(&agent_ctl.map_lo);
}

static void note_map(uint64_t addr, uint64_t len)
{
	uint64_t lo = load(&agent_ctl.map_lo), hi = load(&agent_ctl.map_hi);
	while (addr < lo && !cas(&agent_ctl.map_lo, &lo, addr))
		;
	while (addr + len > hi && !cas(&agent_ctl.map_hi, &hi, addr + len))
		;
	store(&agent_ctl.nr_maps_ever, 1);
}

static void record_map(struct agent_frame *f, uint32_t kind, uint64_t addr,
		       uint64_t len, uint64_t old, uint64_t old_len,
		       uint32_t stack)
{
	bool moving = kind == AR_UNMAP && old;
	struct agent_event ev = {.kind = kind,
				 .flags = ARF_OWN_PAGES,
				 .addr = addr,
				 .size = len,
				 .old_addr = old,
				 .old_size = old_len};
	if (kind == AR_MAP)
		ev.flags |= ARF_ZERO_FRESH;
	else if (moving)
		ev.flags |= ARF_REALLOC;
	ring_put(f, &ev, stack);
}

static struct agent_result do_mmap(struct agent_frame *f, struct timing *t)
{
	uint64_t addr = f->args[0], len = f->args[1], flags = f->args[3];

	if (internal_caller(f))
		return pass(f);
	if ((flags & MAP_FIXED) && touches_map(addr, round_page(len)))
		record_map(f, AR_UNMAP, addr, round_page(len), 0, 0, 0);
	if (!(flags & MAP_ANONYMOUS) || (flags & (MAP_GROWSDOWN | MAP_STACK)) ||
	    !HAS_PROT_ANY(f->args[2]) || !wanted(len) || !admit(len))
		return pass(f);
	timing_pause(t);
	uint64_t p = ((fn6 *)orig_of(f))(addr, len, f->args[2], flags,
					 f->args[4], f->args[5]);
	timing_go_on(t);
	result_is(f, p);
	if (p != MMAP_FAILED) {
		note_map(p, round_page(len));
		record_map(f, AR_MAP, p, len, 0, 0, stack_lookup(f));
	}
	return give(p);
}

static struct agent_result do_munmap(struct agent_frame *f)
{
	uint64_t addr = f->args[0], len = round_page(f->args[1]);
	stack_forget(addr, len);
	/* One that the kernel is going to refuse frees nothing. */
	if (!internal_caller(f) && len && !(addr & (PAGE - 1)) &&
	    touches_map(addr, len))
		record_map(f, AR_UNMAP, addr, len, 0, 0, 0);
	return pass(f);
}

static struct agent_result do_mremap(struct agent_frame *f, struct timing *t)
{
	uint64_t old = f->args[0], old_len = round_page(f->args[1]);
	uint64_t len = f->args[2];

	if (internal_caller(f) || !touches_map(old, old_len))
		return pass(f);
	/* The range may be another thread's as soon as the kernel has moved
	 * it, so it is given up first, as in realloc. */
	if (!(f->args[3] & MREMAP_DONTUNMAP))
		record_map(f, AR_UNMAP, old, old_len, old, old_len, 0);
	timing_pause(t);
	uint64_t p = ((fn6 *)orig_of(f))(old, f->args[1], len, f->args[3],
					 f->args[4], 0);
	timing_go_on(t);
	result_is(f, p);
	if (p == MMAP_FAILED) {
		record_map(f, AR_REMAP, old, old_len, old, old_len, 0);
	} else {
		note_map(p, round_page(len));
		record_map(f, AR_REMAP, p, len, old, old_len, stack_lookup(f));
	}
	return give(p);
}

/*
 * A seccomp filter is coming. From now on a call that the program itself would
 * not make may be its death: none is made, no more stacks are asked for. If the
 * kernel refuses the filter all is as before: programs find out in this way
 * which kinds there are (libseccomp, qemu, browsers).
 */
static struct agent_result do_filter(struct agent_frame *f)
{
	add(&agent_priv.no_calls, 1);
	uint64_t r = ((fn6 *)orig_of(f))(f->args[0], f->args[1], f->args[2],
					 f->args[3], f->args[4], f->args[5]);
	result_is(f, r);
	if ((int32_t)r == -1)
		add(&agent_priv.no_calls, -1);
	return give(r);
}

struct agent_result agent_dispatch(struct agent_frame *f)
{
	struct timing t;
	struct agent_result res;
	uint64_t size;

	if (unlikely(!load(&agent_life.alive)))
		return pass(f);
	timing_start(&t);
	switch (agent_priv.sites[f->site].kind) {
	case AK_MALLOC:
	case AK_NEW_NOTHROW:
	case AK_NEW_ALIGN_NOTHROW:
		res = do_alloc(f, &t, 1, f->args[0]);
		break;
	case AK_VALLOC:
	case AK_PVALLOC:
		res = do_alloc(f, &t, PAGE, f->args[0]);
		break;
	case AK_MEMALIGN:
		res = do_alloc(f, &t, f->args[0], f->args[1]);
		break;
	case AK_CALLOC:
		res = do_calloc(f, &t);
		break;
	case AK_POSIX_MEMALIGN:
		res = do_posix_memalign(f, &t);
		break;
	case AK_NEW:
		res = do_new(f, &t, 0);
		break;
	case AK_NEW_ALIGN:
		res = do_new(f, &t, f->args[1]);
		break;
	case AK_FREE:
		res = do_free(f);
		break;
	case AK_REALLOC:
		res = do_realloc(f, &t, f->args[1]);
		break;
	case AK_REALLOCARRAY:
		if (__builtin_mul_overflow(f->args[1], f->args[2], &size))
			size = ABSURD; /* fails; the block stays tracked */
		res = size == ABSURD ? pass(f) : do_realloc(f, &t, size);
		break;
	case AK_MMAP:
		res = do_mmap(f, &t);
		break;
	case AK_MUNMAP:
		res = do_munmap(f);
		break;
	case AK_MREMAP:
		res = do_mremap(f, &t);
		break;
	case AK_PRCTL:
		res = do_filter(f);
		break;
	case AK_SYSCALL:
		res = f->args[1] > SECCOMP_SET_MODE_FILTER ? pass(f)
							   : do_filter(f);
		break;
	default:
		res = pass(f);
	}
	timing_end(&t);
	return res;
}
