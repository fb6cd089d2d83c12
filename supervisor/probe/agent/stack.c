/*
 * Which stack is this? Known stacks are chains of return addresses with their
 * distances from the slot of the innermost one. A chain is compared from the
 * inside out: a match at one frame says that the next frame is this
 * function's caller, whose slot lies at a fixed distance inside the same
 * stack. A function with a frame of variable size breaks that, so nothing
 * beyond the pages known to be readable is read before the kernel has tried.
 */
#include "agent.h"

#define SYS_rt_sigprocmask 14
#define ERRNO_FAULT	   14
#define PAGE		   4096ULL
#define MAX_STEPS	   512 /* a longer search costs as much as a trap */

static uint64_t *range_slot(uint64_t rsp)
{
	return &agent_stacks.ranges[(rsp >> 16) & (AGENT_NR_RANGES - 1)];
}

/* End of the stack memory above @rsp that is known to be readable. */
static uint64_t known_end(uint64_t rsp)
{
	uint64_t range = load(range_slot(rsp));
	uint64_t start = (range >> 24) * PAGE;
	uint64_t end = start + (range & 0xffffff) * PAGE;
	if (rsp >= start && rsp < end)
		return end;
	return (rsp & ~(PAGE - 1)) + PAGE;
}

/*
 * The kernel reads the new mask before it refuses the invalid request. What is
 * merely mapped will not do: guard pages of other stacks are.
 */
static bool readable(uint64_t addr)
{
	return !load(&agent_priv.no_calls) &&
	       sys6(SYS_rt_sigprocmask, ~0ULL, addr, 0, 8, 0, 0) !=
		       -ERRNO_FAULT;
}

/* Moves *@end above @need if the pages up to there can be read. */
static bool extend(uint64_t rsp, uint64_t *end, uint64_t need)
{
	while (*end < need) {
		if (!readable(*end))
			return false;
		*end += PAGE;
	}
	uint64_t first = rsp / PAGE, nr = *end / PAGE - first;
	if (nr < 1 << 24)
		store(range_slot(rsp), first << 24 | nr);
	return true;
}

void stack_forget(uint64_t addr, uint64_t len)
{
	for (int i = 0; i < AGENT_NR_RANGES; i++) {
		uint64_t range = load(&agent_stacks.ranges[i]);
		uint64_t start = (range >> 24) * PAGE;
		uint64_t end = start + (range & 0xffffff) * PAGE;
		if (addr < end && start < addr + len)
			store(&agent_stacks.ranges[i], 0);
	}
}

static bool matches(const struct agent_stack *e, uint64_t rsp, uint64_t *end)
{
	uint32_t nr = e->nr;
	const uint64_t *value = (const uint64_t *)(e + 1);
	const uint32_t *dist = (const uint32_t *)(value + nr);

	if (likely(rsp + e->last + 8 <= *end)) {
		for (uint32_t i = 0; i < nr; i++)
			if (*(uint64_t *)(rsp + dist[i]) != value[i])
				return false;
		return true;
	}
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t slot = rsp + dist[i];
		if (slot + 8 > *end && !extend(rsp, end, slot + 8))
			return false;
		if (*(uint64_t *)slot != value[i])
			return false;
	}
	return true;
}

static const struct agent_stack *entry(uint32_t index)
{
	if (likely(index < AGENT_POOL_UNITS))
		return (const struct agent_stack *)(agent_pool + index * 16ULL);
	index -= AGENT_POOL_UNITS;
	return (const struct agent_stack
			*)(load(&agent_stacks.more[index / AGENT_MORE_UNITS]) +
			   index % AGENT_MORE_UNITS * 16ULL);
}

/* Which of several stacks that end alike at the same place it was lately. */
static void remember(uint32_t *set, uint32_t index)
{
	store(&set[3], load(&set[2]));
	store(&set[2], load(&set[1]));
	store(&set[1], load(&set[0]));
	store(&set[0], index);
}

/*
 * Walks outward by the distances that are known, as far as they are: stacks
 * that are alike in their innermost frames are told apart by the others. The
 * result is a hint where to look, not a proof.
 */
static uint64_t hash_frames(uint64_t ret, uint64_t rsp, uint64_t *end)
{
	uint64_t slot = rsp, hash = agent_hash_frame(0, ret);
	for (int i = 1; i < AGENT_MAX_FRAMES; i++) {
		uint64_t d = agent_distance(agent_stacks.distance, ret);
		if (!d)
			break;
		slot += d;
		if (unlikely(slot + 8 > *end) && !extend(rsp, end, slot + 8))
			break;
		ret = *(uint64_t *)slot;
		hash = agent_hash_frame(hash, ret);
	}
	return hash;
}

static uint32_t search(uint64_t ret, uint64_t rsp)
{
	uint32_t *set = agent_stacks.hints[agent_hash_hint(ret, rsp)];
	uint64_t end = known_end(rsp);
	uint32_t index;

	for (int i = 0; i < 4; i++) {
		index = load(&set[i]);
		if (!index)
			break;
		if (matches(entry(index), rsp, &end))
			return entry(index)->stack;
	}
	uint64_t hash = hash_frames(ret, rsp, &end);
	index = load_acquire(&agent_stacks.heads[agent_hash_head(hash)]);
	for (int steps = 0; index && steps < MAX_STEPS; steps++) {
		const struct agent_stack *e = entry(index);
		if (matches(e, rsp, &end)) {
			remember(set, index);
			return e->stack;
		}
		index = load_acquire(&e->next);
	}
	return 0;
}

uint32_t stack_lookup(struct agent_frame *f)
{
	uint64_t rsp = (uint64_t)&f->ret;
	uint32_t stack = search(f->ret, rsp);
	if (likely(stack))
		return stack;
	if (load(&agent_stacks.full) || load(&agent_priv.no_calls) ||
	    load(&agent_ctl.trap_tokens) <= 0)
		return 0;
	if (add(&agent_ctl.trap_tokens, -1) <= 0) {
		add(&agent_ctl.trap_tokens, 1);
		return 0;
	}
	add(&agent_ctl.nr_traps, 1);
	agent_ask(f, AGENT_TRAP_STACK);
	return search(f->ret, rsp);
}
