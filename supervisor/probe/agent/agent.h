/*
 * agent.h - inside the agent: code that runs in threads of the program, at
 * the entry of its allocation functions. Freestanding; no lock, no TLS of the
 * program written, no SSE register touched, may be interrupted anywhere by a
 * signal handler that allocates, may be left by longjmp or by the death of
 * its thread at any instruction.
 */
#ifndef SMCO_AGENT_H
#define SMCO_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include "supervisor/probe/agent_abi.h"
#include "supervisor/probe/rawcall.h"

#pragma GCC visibility push(hidden)

/* At fixed distances from the image, see agent.lds. */
extern struct agent_life agent_life;
extern struct agent_private agent_priv;
extern struct agent_ctl agent_ctl;
extern uint8_t agent_filter[AGENT_FILTER_SLOTS];
extern struct agent_stacks agent_stacks;
extern struct agent_record agent_ring[AGENT_RING_SLOTS];
extern uint8_t agent_pool[AGENT_POOL_BYTES];

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* What the entry code does next: return value, or jump to target. */
struct agent_result {
	uint64_t value;
	uint64_t target; /* 0 = return value to the program */
};
struct agent_result agent_dispatch(struct agent_frame *f);
void agent_trap(struct agent_frame *f, uint64_t reason, uint64_t pid,
		uint64_t tid, uint64_t sig);

/* table.c: which blocks have been recorded */
bool table_insert(uint64_t addr, uint64_t val); /* false: no memory */
bool table_remove(uint64_t addr, uint64_t *val_ret);
bool table_find(uint64_t addr, uint64_t *val_ret);

/* stack.c: the id of the stack that ends at f->ret; 0 = not known (yet) */
uint32_t stack_lookup(struct agent_frame *f);
/* A stack may have been there; that it was readable is no longer known. */
void stack_forget(uint64_t addr, uint64_t len);

/* record.c */
struct agent_event {
	uint32_t kind, flags;
	uint64_t addr, size, old_addr, old_size;
};
uint32_t agent_tid(void);
void agent_ask(struct agent_frame *f, uint64_t reason);
/* False: no room, even after asking for a drain; counted as lost. */
bool ring_put(struct agent_frame *f, const struct agent_event *ev,
	      uint32_t stack);

#pragma GCC visibility pop

/* 0 where reading it would be a fault. */
static inline uint64_t rdtsc(void)
{
	uint32_t lo, hi;
	if (unlikely(__atomic_load_n(&agent_priv.no_clock, __ATOMIC_RELAXED)))
		return 0;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

static inline int64_t sys3(long nr, uint64_t a, uint64_t b, uint64_t c)
{
	int64_t ret;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline void copy_bytes(void *dst, const void *src, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n)::"memory");
}

static inline void zero_bytes(void *dst, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(dst), "+c"(n) : "a"(0) : "memory");
}

#define load(p)		    __atomic_load_n(p, __ATOMIC_RELAXED)
#define load_acquire(p)	    __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v)	    __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define add(p, v)	    __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define cas(p, old, new)                                                       \
	__atomic_compare_exchange_n(p, old, new, false, __ATOMIC_ACQ_REL,      \
				    __ATOMIC_RELAXED)

#endif
