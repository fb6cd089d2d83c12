/*
 * hook-shm.h - the supervisor's side of the memory it shares with the agent:
 * control words, the ring's reader, the cache of stacks. No ptrace; everything
 * read from there is hostile input.
 */
#ifndef SMCO_HOOK_SHM_H
#define SMCO_HOOK_SHM_H

#include "supervisor/probe/agent_abi.h"
#include "supervisor/probe/hook.h"

/* Time stamp counter to CLOCK_MONOTONIC, re-anchored at every drain. */
struct tsc_map {
	uint64_t first_tsc, first_ns;
	uint64_t tsc, ns; /* latest pair */
	double ns_per_tick;
};
void tsc_map_init(struct tsc_map *m);
void tsc_map_anchor(struct tsc_map *m);
/* Of 0, which stands where it could not be read, it is the latest pair's. */
uint64_t tsc_map_ns(const struct tsc_map *m, uint64_t tsc);

/* A block on its way through realloc, or a range through mremap: given up,
 * not yet known what became of it. */
struct hook_moving {
	uint32_t tid;
	uint32_t is_map;
	uint64_t addr;
	uint64_t size;
	bool taken; /* somebody else got the address meanwhile */
};

struct hook_shm {
	uint8_t *map; /* AGENT_SHM_BYTES, shared with the tracee */
	struct agent_ctl *ctl;
	uint8_t *filter;
	struct agent_stacks *stacks;
	struct agent_record *ring;
	uint8_t *pool;
	struct tsc_map clock;
	uint64_t tail;
	uint64_t stuck_since_ns; /* 0 = the next record is not awaited */
	uint64_t stuck_head;	 /* head at that time */
	uint64_t give_up_below;	 /* positions not waited for any more */
	uint64_t nr_given_up;
	uint64_t cutoff;	      /* as it is meant to be */
	uint32_t pool_used;	      /* in units of 16 bytes */
	uint8_t *more[AGENT_NR_MORE]; /* mapped here; NULL = not ours */
	unsigned nr_more;
	struct hook_moving moving[64];
	unsigned nr_moving;
	struct heap_event *saved; /* taken out of the ring ahead of a drain */
	size_t nr_saved, saved_cap;
};

/* @fd is the memfd; the mapping is the caller's to keep until deinit. */
int hook_shm_init(struct hook_shm *shm, int fd, bool fresh,
		  struct smco_err *err);
void hook_shm_deinit(struct hook_shm *shm);
void hook_shm_set_cutoff(struct hook_shm *shm, uint64_t bytes);
/* What a copy of the process takes over with its table of blocks. */
struct hook_known {
	uint64_t cutoff, always_bytes, map_lo, map_hi;
	uint32_t use_filter, nr_maps_ever;
	uint8_t filter[AGENT_FILTER_SLOTS];
};
void hook_shm_tell(const struct hook_shm *shm, struct hook_known *ret);
void hook_shm_learn(struct hook_shm *shm, const struct hook_known *known);
/* Copies all that and the known stacks of @from. */
void hook_shm_inherit(struct hook_shm *shm, const struct hook_shm *from);

size_t hook_shm_drain(struct hook_shm *shm,
		      void (*fn)(void *ctx, const struct heap_event *ev),
		      void *ctx);
/* Makes room in the ring; what was there comes with the next drain. */
void hook_shm_save(struct hook_shm *shm);

/*
 * Adds a stack: frames[i] found at slots[i], innermost first, slots[0] being
 * the slot the agent starts from. The chain ends where slots stop rising by
 * plausible steps. SMCO_NOMEM: the pool is full.
 */
int hook_shm_add_stack(struct hook_shm *shm, uint32_t stack,
		       const taddr_t *frames, const taddr_t *slots, size_t nr);
/* Another pool of AGENT_MORE_BYTES: @fd, which the tracee has at @addr. */
int hook_shm_add_pool(struct hook_shm *shm, int fd, taddr_t addr);

#endif
