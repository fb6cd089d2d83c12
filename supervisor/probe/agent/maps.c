/* Anonymous mappings: mmap, munmap and mremap, in the order of blocks.c. */
#include "call.h"

#define MAP_FIXED	 0x10
#define MAP_ANONYMOUS	 0x20
#define MAP_GROWSDOWN	 0x100
#define MAP_STACK	 0x20000
#define MREMAP_DONTUNMAP 4
#define MMAP_FAILED	 (~0ULL)

#define HAS_PROT_ANY(prot) (((prot)&7) != 0)

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

struct agent_result map_mmap(struct agent_frame *f, struct timing *t)
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

struct agent_result map_munmap(struct agent_frame *f)
{
	uint64_t addr = f->args[0], len = round_page(f->args[1]);
	stack_forget(addr, len);
	/* One that the kernel is going to refuse frees nothing. */
	if (!internal_caller(f) && len && !(addr & (PAGE - 1)) &&
	    touches_map(addr, len))
		record_map(f, AR_UNMAP, addr, len, 0, 0, 0);
	return pass(f);
}

struct agent_result map_mremap(struct agent_frame *f, struct timing *t)
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
