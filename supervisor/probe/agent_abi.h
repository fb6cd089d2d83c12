/*
 * agent_abi.h - what the supervisor and the code it plants in the tracee (the
 * agent) agree on: the layout of the area near the hooked module, and of every
 * structure in it. Included by both sides, so: no libc, no pointers, fixed
 * sizes only.
 *
 *	[image][stubs][life][private]  [control][filter][stacks][ring][pool]
 *	 private memory, text is R-X    one memfd, shared with the supervisor
 *
 * What is shared is written by both; each field says who. The supervisor
 * believes nothing it reads there without a bounds check.
 */
#ifndef SMCO_AGENT_ABI_H
#define SMCO_AGENT_ABI_H

/* Offset of agent_private.inside, for entry.S. */
#define AGENT_INSIDE 0x320

#ifndef __ASSEMBLER__

#include <assert.h>
#include <stdint.h>

#define AGENT_MAGIC 0x32746e6761736dULL /* also in rbx while it traps */

/* Offsets in the area. The linker script repeats those marked (lds). */
#define AGENT_IMAGE_OFF	  0x0
#define AGENT_STUB_OFF	  0x4000
#define AGENT_STUB_BYTES  0x2000
#define AGENT_LIFE_OFF	  0x6000  /* (lds) */
#define AGENT_PRIV_OFF	  0x7000  /* (lds) */
#define AGENT_SHM_OFF	  0x8000  /* (lds) */
#define AGENT_FILTER_OFF  0x9000  /* (lds) */
#define AGENT_STACKS_OFF  0xb000  /* (lds) */
#define AGENT_RING_OFF	  0x11000 /* (lds) */
#define AGENT_POOL_OFF	  0x51000 /* (lds) */
#define AGENT_POOL_BYTES  0x18000
#define AGENT_AREA_BYTES  (AGENT_POOL_OFF + AGENT_POOL_BYTES)
#define AGENT_IMAGE_BYTES (AGENT_STUB_OFF - AGENT_IMAGE_OFF)
#define AGENT_SHM_BYTES	  (AGENT_AREA_BYTES - AGENT_SHM_OFF)

/* The first bytes of the image. */
struct agent_header {
	uint64_t magic;
	uint32_t entry_off; /* stubs jump here with the hook number pushed */
	uint32_t trap_off;  /* program counter of a thread that has trapped */
	uint32_t text_bytes;
	/* Within agent_entry: where agent_dispatch returns to; between these
	 * two the frame is in rbp, after and before that at the stack
	 * pointer; its end. */
	uint32_t return_off;
	uint32_t framed_off, unframed_off;
	uint32_t entry_end;
	uint32_t reserved;
};
static_assert(sizeof(struct agent_header) == 40, "agent header");

/* What a hooked function does; the number of a hook is its index in sites. */
enum agent_kind {
	AK_MALLOC,	      /* (size) */
	AK_CALLOC,	      /* (n, size) */
	AK_REALLOC,	      /* (p, size) */
	AK_REALLOCARRAY,      /* (p, n, size) */
	AK_FREE,	      /* (p, ...) */
	AK_MEMALIGN,	      /* (align, size) */
	AK_POSIX_MEMALIGN,    /* (&p, align, size) */
	AK_VALLOC,	      /* (size) */
	AK_PVALLOC,	      /* (size) */
	AK_NEW,		      /* (size), may throw */
	AK_NEW_NOTHROW,	      /* (size, nothrow) */
	AK_NEW_ALIGN,	      /* (size, align), may throw */
	AK_NEW_ALIGN_NOTHROW, /* (size, align, nothrow) */
	AK_MMAP,	      /* (addr, len, prot, flags, fd, off) */
	AK_MUNMAP,	      /* (addr, len) */
	AK_MREMAP,	      /* (old, old_len, len, flags, addr) */
	AK_PRCTL,	      /* (option, ...): a seccomp filter is coming */
	AK_SYSCALL,	      /* (number, ...): the same */
	AK_IOCTL,	      /* (fd, request, ...): a userfaultfd begins */
	NR_AGENT_KINDS,
};

#define AGENT_MAX_SITES 44

/*
 * The frame agent_entry builds; a trap hands its address over in r12. A thread
 * that stands in a trap can be taken out of the agent: with AGENT_FRAME_RESULT
 * by returning result to the program, else by calling the function again; not
 * at all while its signal mask is changed.
 */
enum agent_frame_state {
	AGENT_FRAME_RESULT = 1,
	AGENT_FRAME_MASK = 2,
};
struct agent_frame {
	uint64_t state, result;
	uint64_t rbx, rbp, r12, r13, r14, r15; /* of the caller */
	uint64_t args[6];
	uint64_t site;
	uint64_t ret; /* return address; its own address is the slot */
};
static_assert(sizeof(struct agent_frame) == 16 * 8, "agent frame");

enum agent_trap_reason { /* in r13 */
			 AGENT_TRAP_STACK = 1,
			 AGENT_TRAP_DRAIN = 2,
			 AGENT_TRAP_UFFD = 3,
};

/*
 * A page that a fork does not copy (MADV_WIPEONFORK): the agent does nothing
 * in a child that nobody has prepared, so it cannot write into its parent's
 * ring.
 */
struct agent_life {
	uint32_t alive; /* 1 = record; written by the supervisor */
};

/* The table of tracked blocks: segments of buckets, each a cache line. */
#define AGENT_BUCKET_SLOTS	 4
#define AGENT_MAX_SEGMENTS	 20
#define AGENT_FIRST_SEGMENT_LOG2 8 /* buckets; 24 KiB with the filter */
#define AGENT_SIZE_BITS		 40
#define AGENT_SIZE_MASK		 ((1ULL << AGENT_SIZE_BITS) - 1)

struct agent_bucket {
	uint64_t key[AGENT_BUCKET_SLOTS]; /* address, 0 = free slot */
	uint64_t val[AGENT_BUCKET_SLOTS]; /* size, above it rsp/16 mod 2^24 */
};
static_assert(sizeof(struct agent_bucket) == 64, "agent bucket");

/*
 * Segment n has 2^(first + n) buckets, and behind them a filter of its own:
 * counts, saturating, of its addresses per page number modulo, 8 times as many
 * as it has slots. Of many segments one has the address, or none has.
 */
#define AGENT_SEGMENT_LOG2(n)	(AGENT_FIRST_SEGMENT_LOG2 + (n))
#define AGENT_SEGMENT_FILTER(n) (64ULL << AGENT_SEGMENT_LOG2(n)) /* offset */
#define AGENT_SEGMENT_COUNTS(n) (32ULL << AGENT_SEGMENT_LOG2(n))
#define AGENT_SEGMENT_BYTES(n)                                                 \
	(AGENT_SEGMENT_FILTER(n) + AGENT_SEGMENT_COUNTS(n))

struct agent_site {
	uint32_t kind;
	uint32_t reserved;
	uint64_t orig; /* runs the function as if it were not hooked */
};

/* Private to the process (a fork copies it); written by the supervisor while
 * all tasks are stopped, then by the agent where it says so. */
struct agent_private {
	uint64_t magic;
	uint32_t is_glibc; /* its chunk headers may be read */
	uint32_t trap_signal;
	uint32_t tid_offset; /* of the tid from fs:0, 0 = ask the kernel */
	uint32_t pid;
	uint64_t libc_start; /* mappings made from here are libc's own */
	uint64_t libc_end;
	uint64_t heap_start; /* text of the allocator, 0 if it is libc */
	uint64_t heap_end;
	struct agent_site sites[AGENT_MAX_SITES];
	/* What the agent calls itself; 0 = there is none. */
	uint64_t orig_malloc;
	uint64_t orig_free;
	uint64_t orig_realloc;
	uint64_t orig_memalign;
	/* agent: */
	uint64_t arena_max; /* largest size seen that malloc did not mmap */
	uint32_t inside;    /* threads in the agent's C code */
	uint32_t no_calls;  /* not 0: a filter could kill us for calls */
	uint64_t segments[AGENT_MAX_SEGMENTS]; /* addresses, 0 = none yet */
	uint64_t no_clock; /* not 0: the time stamp counter is forbidden */
	/* Bytes that pages of their own cost blocks below 64 KiB, and others.
	 */
	uint64_t small_waste, large_waste;
};

/* Shared, one page. Stubs compare with cutoff and use_filter. */
struct agent_ctl {
	uint64_t magic;
	uint64_t cutoff;       /* bytes; ~0 = off. Supervisor */
	uint64_t always_bytes; /* recorded without a token. Supervisor */
	uint32_t use_filter;   /* 1 = tracked addresses at any page offset */
	uint32_t nr_maps_ever; /* mappings recorded, stays. Agent */
	uint64_t map_lo;       /* they all lie in [lo, hi). Agent */
	uint64_t map_hi;
	uint32_t mute; /* nobody answers: see record.c. Both */
	uint32_t pad_mute;
	/* No more waste than this, KiB; all bits = no matter. Supervisor */
	uint32_t small_spare, large_spare;
	int32_t tokens; /* both; cache line of its own */
	int32_t trap_tokens;
	uint64_t nr_skipped; /* agent from here */
	uint64_t skipped_bytes;
	uint64_t nr_lost;
	uint64_t nr_traps;
	uint64_t agent_tsc; /* time stamp counter units, sampled and scaled */
	uint64_t nr_calls;  /* for the sampling; not exact */
	uint64_t pad1;
	uint64_t head; /* next position to reserve. Agent */
	uint64_t pad2[7];
	uint64_t tail; /* next position to read. Supervisor */
	uint64_t pad3[7];
};
static_assert(sizeof(struct agent_ctl) == 256, "agent control");

/*
 * Counts, saturating, of tracked addresses per page number modulo: a free of
 * an address whose counter is zero goes straight to the original.
 */
#define AGENT_FILTER_SLOTS	 8192
#define AGENT_FILTER_INDEX(addr) (((addr) >> 12) & (AGENT_FILTER_SLOTS - 1))

/*
 * Stacks seen before. An entry is a chain of (distance from the slot of the
 * return address, value there), innermost first. Written by the supervisor,
 * published by its index in heads or in next; never changed after that.
 */
#define AGENT_MAX_FRAMES   32
#define AGENT_NR_HEADS	   1024
#define AGENT_NR_HINTS	   2048
#define AGENT_NR_RANGES	   256
#define AGENT_NR_DISTANCES 1024
#define AGENT_VARIABLE	   0xffff

/* More pools, each in memory of its own, when the first is full. An index
 * counts on through all of them. */
#define AGENT_NR_MORE	 16
#define AGENT_MORE_BYTES (256UL << 10)
#define AGENT_POOL_UNITS (AGENT_POOL_BYTES / 16)
#define AGENT_MORE_UNITS (AGENT_MORE_BYTES / 16)

struct agent_stacks {
	uint32_t heads[AGENT_NR_HEADS]; /* by hash of the frames */
	/*
	 * How far a return address is from the next one outward: a property
	 * of the code it returns to. Address << 16 | distance / 8;
	 * AGENT_VARIABLE = it differs from call to call. Supervisor
	 */
	uint64_t distance[AGENT_NR_DISTANCES];
	/* By it and the stack pointer, sets of four, newest first. Agent */
	uint32_t hints[AGENT_NR_HINTS / 4][4];
	uint64_t more[AGENT_NR_MORE]; /* addresses; 0 = none. Supervisor */
	/* Stack memory proven readable: first page number << 24 | pages, by
	 * stack pointer / 64 KiB. Agent. */
	uint64_t ranges[AGENT_NR_RANGES];
	uint32_t full; /* no room for a new stack: do not ask. Supervisor */
};
static_assert(sizeof(struct agent_stacks) <= AGENT_RING_OFF - AGENT_STACKS_OFF,
	      "agent stacks");

struct agent_stack { /* in the pool, at index * 16; index 0 is nothing */
	uint32_t next;
	uint32_t stack;
	uint32_t nr;
	uint32_t last; /* largest distance, bytes */
		       /* then nr values of 8 bytes, then nr distances of 4 */
};
static_assert(sizeof(struct agent_stack) == 16, "agent stack");

enum agent_record_kind {
	AR_ALLOC = 1,
	AR_FREE,    /* flag REALLOC: a record AR_REALLOC of this tid follows */
	AR_REALLOC, /* what that old_addr became; itself, old_size: it failed */
	AR_MAP,
	AR_UNMAP,
	AR_REMAP,
};
enum agent_record_flags {
	ARF_OWN_PAGES = 1,
	ARF_ZERO_FRESH = 2,
	ARF_REALLOC = 4,
};

/*
 * Slot of the ring. seq is position + 1 when the record there is complete; the
 * supervisor sets it to ~0 when it gives up waiting for one.
 */
#define AGENT_RING_SLOTS 4096
struct agent_record {
	uint64_t seq;
	uint64_t tsc;
	uint64_t addr;
	uint64_t size;
	uint64_t old_addr;
	uint64_t old_size;
	uint64_t caller; /* low 48 bits; kind in 56..63, flags in 48..55 */
	uint32_t tid;
	uint32_t stack;
};
static_assert(sizeof(struct agent_record) == 64, "agent record");
static_assert(AGENT_RING_OFF + AGENT_RING_SLOTS * 64 == AGENT_POOL_OFF, "ring");
static_assert(AGENT_AREA_BYTES <= 480 * 1024, "area small enough for bzip2");
static_assert(sizeof(struct agent_private) <= 4096, "private page");
static_assert(__builtin_offsetof(struct agent_private, inside) == AGENT_INSIDE,
	      "entry.S counts there");

/* Where the count of @addr is in segment @n. */
static inline uint64_t agent_segment_count(unsigned n, uint64_t addr)
{
	return AGENT_SEGMENT_FILTER(n) +
	       (addr >> 12 & (AGENT_SEGMENT_COUNTS(n) - 1));
}
/* Buckets an address may be in: two per segment. */
static inline uint64_t agent_hash1(uint64_t addr)
{
	return (addr * 0x9e3779b97f4a7c15ULL) >> 32;
}
static inline uint64_t agent_hash2(uint64_t addr)
{
	return (addr * 0xc2b2ae3d27d4eb4fULL) >> 31;
}
/* Over the return addresses, from the inside out; head is its top bits. */
static inline uint64_t agent_hash_frame(uint64_t hash, uint64_t ret)
{
	return (hash ^ ret) * 0x9e3779b97f4a7c15ULL;
}
static inline uint32_t agent_hash_head(uint64_t hash)
{
	return hash >> 54;
}
static inline uint32_t agent_hash_hint(uint64_t ret, uint64_t rsp)
{
	return ((ret ^ rsp << 20) * 0x9e3779b97f4a7c15ULL) >> 55;
}
/* Slot of @ret in agent_stacks.distance: where it is or where it would go;
 * AGENT_NR_DISTANCES if there is no room. */
static inline uint32_t agent_distance_slot(const uint64_t *table, uint64_t ret)
{
	uint32_t h = (ret * 0x9e3779b97f4a7c15ULL) >> 40;
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t n = (h + i) % AGENT_NR_DISTANCES;
		uint64_t e = __atomic_load_n(&table[n], __ATOMIC_RELAXED);
		if (e == 0 || e >> 16 == ret)
			return n;
	}
	return AGENT_NR_DISTANCES;
}
/* Bytes to the next return address, 0 = not known. */
static inline uint64_t agent_distance(const uint64_t *table, uint64_t ret)
{
	uint32_t n = agent_distance_slot(table, ret);
	if (n == AGENT_NR_DISTANCES)
		return 0;
	uint64_t d = __atomic_load_n(&table[n], __ATOMIC_RELAXED) & 0xffff;
	return d == AGENT_VARIABLE ? 0 : d * 8;
}
static_assert(AGENT_NR_HEADS == 1 << 10 && AGENT_NR_HINTS / 4 == 1 << 9,
	      "shifts of the two hashes above");

#endif
#endif
