/*
 * call.h - a call of a hooked function: what it is answered with, whether it is
 * wanted, and what the agent takes of it.
 */
#ifndef SMCO_AGENT_CALL_H
#define SMCO_AGENT_CALL_H

#include "agent.h"

#define PAGE   4096ULL
#define ABSURD (1ULL << AGENT_SIZE_BITS)
#define SAMPLE 16 /* one call in so many is timed */

typedef uint64_t fn1(uint64_t);
typedef uint64_t fn2(uint64_t, uint64_t);
typedef uint64_t fn3(uint64_t, uint64_t, uint64_t);
typedef uint64_t fn6(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		     uint64_t);

static inline struct agent_result give(uint64_t value)
{
	return (struct agent_result){value, 0};
}

/* The original has run: should the thread be taken out, this is to be given. */
static inline void result_is(struct agent_frame *f, uint64_t value)
{
	f->result = value;
	f->state |= AGENT_FRAME_RESULT;
}

static inline uint64_t orig_of(struct agent_frame *f)
{
	return agent_priv.sites[f->site].orig;
}

/* Run the original as if nothing were here. */
static inline struct agent_result pass(struct agent_frame *f)
{
	return (struct agent_result){0, orig_of(f)};
}

static inline uint64_t round_page(uint64_t size)
{
	return (size + PAGE - 1) & ~(PAGE - 1);
}

static inline bool admit(uint64_t size)
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

static inline bool wanted(uint64_t size)
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
static inline uint64_t elapsed(uint64_t since, uint64_t most)
{
	uint64_t d = rdtsc() - since;
	return d < most ? d : 0;
}
static inline void timing_start(struct timing *t)
{
	uint64_t n = load(&agent_ctl.nr_calls);
	store(&agent_ctl.nr_calls, n + 1);
	t->sum = 0;
	t->since = n % SAMPLE ? 0 : rdtsc();
}
static inline void timing_pause(struct timing *t)
{
	if (unlikely(t->since))
		t->sum += elapsed(t->since, TIMING_MAX);
}
/* Here @n bytes were copied, which the original might not have done: at some
 * GB a second, or we were not at it all the time. */
static inline void timing_pause_copied(struct timing *t, uint64_t n)
{
	if (unlikely(t->since))
		t->sum += elapsed(t->since, TIMING_MAX + n);
}
static inline void timing_go_on(struct timing *t)
{
	if (unlikely(t->since))
		t->since = rdtsc();
}
static inline void timing_end(struct timing *t)
{
	timing_pause(t);
	if (unlikely(t->since))
		add(&agent_ctl.agent_tsc, t->sum * SAMPLE);
}

#pragma GCC visibility push(hidden)

/* blocks.c; @align: 1 where the caller asks for none */
struct agent_result block_alloc(struct agent_frame *f, struct timing *t,
				uint64_t align, uint64_t size);
struct agent_result block_calloc(struct agent_frame *f, struct timing *t);
struct agent_result block_posix_memalign(struct agent_frame *f,
					 struct timing *t);
struct agent_result block_new(struct agent_frame *f, struct timing *t,
			      uint64_t align);
struct agent_result block_free(struct agent_frame *f);
struct agent_result block_realloc(struct agent_frame *f, struct timing *t,
				  uint64_t size);

/* maps.c */
struct agent_result map_mmap(struct agent_frame *f, struct timing *t);
struct agent_result map_munmap(struct agent_frame *f);
struct agent_result map_mremap(struct agent_frame *f, struct timing *t);

#pragma GCC visibility pop

#endif
