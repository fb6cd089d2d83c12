/*
 * abi.h - what the resident helper of the page guards shares with the
 * supervisor: a memfd mapped in both, code first, then this table.
 *
 * The warden is a process of its own that uses the program's memory and
 * signal handlers (clone(CLONE_VM | CLONE_SIGHAND)). It protects and opens
 * guarded ranges on demand, so that no thread of the program ever runs with
 * borrowed registers while guards are armed; and it opens all of them when
 * the supervisor dies. What dies first is told by the kernel: the supervisor
 * holds the robust mutex at .owner, which is released before its tracees are.
 *
 * A second net: while guards are armed SIGSEGV is handled by the code here.
 * The supervisor catches the signal before that handler ever runs. Once it
 * is dead the handler opens what was touched and the access is made again.
 *
 * Included by freestanding code: no libc types beyond stdint.
 */
#ifndef SMCO_WARDEN_ABI_H
#define SMCO_WARDEN_ABI_H

#ifndef __ASSEMBLER__
#include <stdint.h>
#endif

/* Also of entry.S: where .spawn_stack ends and .saved begins. */
#define WARDEN_SAVED_OFFSET	16640
#define WARDEN_CODE_SIZE	8192
#define WARDEN_STACK_SIZE	8192
#define WARDEN_SPAWN_STACK_SIZE 16384
#define WARDEN_MAX_SLOTS	16384

/* Where the image is entered: multiples of 16 from its start. */
#define WARDEN_ENTRY_SPAWN    0	 /* rdi: trap signal; see warden_spawn() */
#define WARDEN_ENTRY_HANDLER  16 /* the SIGSEGV handler */
#define WARDEN_ENTRY_RESTORER 32
#define WARDEN_ENTRY_ALTSTACK 48 /* rdi: trap signal; fills .altstack */

/* .spawn_error: the program would become the helper's parent. */
#define WARDEN_ADOPTS (-10000)

#ifndef __ASSEMBLER__
enum warden_op {
	WARDEN_NOP,
	WARDEN_ARM, /* slots in .batch become PROT_NONE; slot.error says why not
		     */
	WARDEN_OPEN, /* slots in .batch get their protection back */
	WARDEN_ON,   /* remember the program's SIGSEGV action, install ours */
	WARDEN_OFF,  /* open every slot, the program's SIGSEGV action again */
	WARDEN_QUIT, /* OFF, then exit */
};

struct warden_slot {
	uint64_t start;
	uint64_t end;	/* exclusive */
	uint32_t prot;	/* what the program had */
	uint32_t armed; /* set before it is protected, cleared after */
	int32_t error;	/* of the last ARM or OPEN: negative errno */
	uint32_t again; /* faults seen by the handler when not armed */
};

/* As the kernel's rt_sigaction takes it, not as libc's. */
struct warden_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

struct warden_saved { /* in the order entry.S takes them back */
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rip, cs, rflags, rsp, ss;
};

struct warden_shared {
	/* A pthread_mutex_t (robust, shared); its first word is the futex. */
	uint32_t owner __attribute__((aligned(64)));
	uint32_t owner_rest[31];
	/* Stack of the code that runs in a thread of the program, and what its
	 * registers were, so that it finds its own way back when the
	 * supervisor dies meanwhile. Signal frames fit below. */
	uint8_t spawn_stack[WARDEN_SPAWN_STACK_SIZE + 128];
	struct warden_saved saved;
	uint64_t saved_mask; /* blocked signals */
	uint32_t cmd __attribute__((
		aligned(64))); /* futex: bumped by the supervisor */
	uint32_t done __attribute__((aligned(64))); /* futex: = cmd when done */
	uint32_t alive; /* futex: the warden's tid from its clone on, cleared
			 * by the kernel when it has ended and needs its stack
			 * no more */
	uint32_t op;
	uint32_t nr_batch;
	uint32_t nr_slots;   /* slots ever used, for "all" */
	int32_t program_pid; /* as the program sees it itself */
	int32_t pid; /* the warden's, as its parent sees it; 0: none yet */
	int32_t spawn_error; /* negative errno of the clone */
	uint32_t is_on;	     /* our SIGSEGV action is installed */
	uint32_t dead;	     /* somebody noticed that the supervisor is gone */
	uint32_t relieved;   /* by another supervisor: the helper need not stay
			      * for threads that may have met a guard */
	uint32_t was_reset;  /* SIGSEGV's action was not ours at the last OPEN:
			      * a hit in a thread that blocks or ignores it */
	uint32_t nr_handler; /* times the handler ran */
	uint32_t nr_onstack; /* signals handled on alternate stacks, at spawn */
	struct warden_sigaction program;
	uint64_t altstack[3]; /* stack_t */
	uint64_t stack_first[WARDEN_STACK_SIZE / 8];
	uint64_t stack_warden[WARDEN_STACK_SIZE / 8];
	uint32_t batch[WARDEN_MAX_SLOTS];
	struct warden_slot slot[WARDEN_MAX_SLOTS];
};
_Static_assert(__builtin_offsetof(struct warden_shared, saved) ==
		       WARDEN_SAVED_OFFSET,
	       "entry.S finds it there");
#endif

#endif
