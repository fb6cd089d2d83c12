/*
 * The ring: many writers, one reader in another process. A position is
 * reserved only once there is room, filled, then published by its sequence
 * number, all of it within a few nanoseconds.
 */
#include "agent.h"

#define SYS_getpid 39
#define SYS_gettid 186

uint32_t agent_tid(void)
{
	uint64_t off = agent_priv.tid_offset;
	uint32_t tid;
	if (unlikely(!off))
		return sys3(SYS_gettid, 0, 0, 0);
	__asm__("movl %%fs:(%1), %0" : "=r"(tid) : "r"(off));
	return tid;
}

void agent_ask(struct agent_frame *f, uint64_t reason)
{
	/* Ask the kernel who we are: a raw clone may share our TLS. */
	agent_trap(f, reason, sys3(SYS_getpid, 0, 0, 0),
		   sys3(SYS_gettid, 0, 0, 0), agent_priv.trap_signal);
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

bool ring_put(struct agent_frame *f, const struct agent_event *ev,
	      uint32_t stack)
{
	uint32_t tid = agent_tid();
	uint64_t pos;
	if (unlikely(!reserve(&pos))) {
		agent_ask(f, AGENT_TRAP_DRAIN);
		if (!reserve(&pos)) {
			add(&agent_ctl.nr_lost, 1);
			return false;
		}
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
