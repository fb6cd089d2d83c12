/*
 * The ring: many writers, one reader in another process. A position is
 * reserved only once there is room, filled, then published by its sequence
 * number, all of it within a few nanoseconds.
 */
#include "agent.h"

#define SYS_rt_sigprocmask 14
#define SYS_getpid	   39
#define SYS_gettid	   186
#define SIG_BLOCK	   0
#define SIG_UNBLOCK	   1
#define SIG_SETMASK	   2

uint32_t agent_tid(void)
{
	uint64_t off = agent_priv.tid_offset;
	uint32_t tid;
	if (unlikely(!off))
		return load(&agent_priv.no_calls) ? agent_priv.pid
						  : sys3(SYS_gettid, 0, 0, 0);
	__asm__("movl %%fs:(%1), %0" : "=r"(tid) : "r"(off));
	return tid;
}

/* rt_sigprocmask of this thread. */
static uint64_t mask_change(uint64_t how, const uint64_t *set)
{
	uint64_t old = 0;
	sys6(SYS_rt_sigprocmask, how, (uint64_t)set, (uint64_t)&old,
	     sizeof(old), 0, 0);
	return old;
}

/*
 * Many threads block all signals. The trap must come now or not at all, so it
 * is let through for the moment; nobody handles it.
 */
void agent_ask(struct agent_frame *f, uint64_t reason)
{
	uint64_t sig = agent_priv.trap_signal;
	uint64_t bit = 1ULL << (sig - 1);
	uint64_t old;

	if (unlikely(load(&agent_priv.no_calls)))
		return;
	old = mask_change(SIG_BLOCK, NULL);
	if (unlikely(old & bit)) {
		f->state |= AGENT_FRAME_MASK;
		mask_change(SIG_UNBLOCK, &bit);
	}
	/* Ask the kernel who we are: a raw clone may share our TLS. */
	agent_trap(f, reason, sys3(SYS_getpid, 0, 0, 0),
		   sys3(SYS_gettid, 0, 0, 0), sig);
	if (unlikely(old & bit)) {
		mask_change(SIG_SETMASK, &old);
		f->state &= ~(uint64_t)AGENT_FRAME_MASK;
	}
}

static bool reserve(uint64_t *pos_ret)
{
	uint64_t pos = load(&agent_ctl.head);
	do {
		if (pos - load_acquire(&agent_ctl.tail) >= AGENT_RING_SLOTS)
			return false;
	} while (!cas(&agent_ctl.head, &pos, pos + 1));
	*pos_ret = pos;
	return true;
}

/*
 * The ring is full. A supervisor empties it while we stand in the trap; if
 * nothing has changed after it, there is none: nobody asks again, and nothing
 * new is recorded, until one drains.
 */
static bool ask_for_room(struct agent_frame *f, uint64_t *pos_ret)
{
	if (load(&agent_ctl.mute))
		return false;
	agent_ask(f, AGENT_TRAP_DRAIN);
	if (reserve(pos_ret))
		return true;
	store(&agent_ctl.mute, 1);
	store(&agent_ctl.cutoff, ~0ULL);
	return false;
}

bool ring_put(struct agent_frame *f, const struct agent_event *ev,
	      uint32_t stack)
{
	uint32_t tid = agent_tid();
	uint64_t pos;
	if (unlikely(!reserve(&pos)) && !ask_for_room(f, &pos)) {
		add(&agent_ctl.nr_lost, 1);
		return false;
	}
	struct agent_record *r = &agent_ring[pos % AGENT_RING_SLOTS];
	uint64_t before = load(&r->seq);
	store(&r->tsc, rdtsc());
	store(&r->addr, ev->addr);
	store(&r->size, ev->size);
	store(&r->old_addr, ev->old_addr);
	store(&r->old_size, ev->old_size);
	store(&r->caller, (f->ret & 0xffffffffffffULL) |
				  (uint64_t)ev->flags << 48 |
				  (uint64_t)ev->kind << 56);
	store(&r->tid, tid);
	store(&r->stack, stack);
	/* Not published if the reader has given this slot up meanwhile. */
	if (unlikely(!cas(&r->seq, &before, pos + 1)))
		return false;
	return true;
}
