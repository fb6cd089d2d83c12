/*
 * hook-stub.h - machine code for one entry sensor: the near stub, which holds
 * the fast test, the slow way into the agent and the function's displaced
 * first instructions; and the jump that leads there. Pure: bytes in, bytes
 * out, no tracee. The function's bytes are hostile input.
 */
#ifndef SMCO_HOOK_STUB_H
#define SMCO_HOOK_STUB_H

#include "reports/base.h"
#include "supervisor/probe/agent_abi.h"

#define STUB_JUMP_BYTES 5
#define STUB_MAX_BYTES	192
#define STUB_MAX_INSNS	8

struct stub_site {
	enum agent_kind kind;
	unsigned number;     /* pushed for the agent, < AGENT_MAX_SITES */
	taddr_t addr;	     /* the function's entry */
	const uint8_t *code; /* its bytes, as many as could be read */
	size_t code_len;
	taddr_t area; /* where agent_abi.h's area lies */
	taddr_t stub; /* where the stub is going to be */
};

struct stub {
	uint8_t code[STUB_MAX_BYTES];
	size_t len;
	taddr_t start;	/* of the code, where the jump leads */
	taddr_t test;	/* behind what undoes the first instruction */
	taddr_t orig;	/* runs the function unhooked: displaced, jump back */
	taddr_t slow;	/* behind the displaced instructions */
	taddr_t pushed; /* here the stack has one word more */
	taddr_t entry;	/* addr, or behind its endbr64 */
	/* Where the jump goes: behind the first instruction, if that can be
	 * undone, else at the entry. A uprobe that somebody sets at the
	 * function has the kernel run that instruction elsewhere and go on
	 * behind it: not in the middle of a jump. */
	taddr_t patch;
	uint8_t jump[STUB_JUMP_BYTES];
	uint8_t old[STUB_JUMP_BYTES];
	/* Displaced instructions: where each was, where it is now. The jump
	 * back counts as the one it leads to. */
	unsigned nr;
	taddr_t from[STUB_MAX_INSNS];
	taddr_t to[STUB_MAX_INSNS];
	unsigned nr_scanned; /* instructions that were decoded to see whether
				any jumps back into the window */
};

/*
 * SMCO_UNSUPPORTED if the function's beginning cannot be displaced: the reason
 * is in the message. SMCO_FORMAT if it does not decode.
 */
int stub_build(const struct stub_site *site, struct stub *ret,
	       struct smco_err *err);

/* Where a thread at @pc inside the displaced bytes goes on; 0 = nowhere. */
taddr_t stub_moved_pc(const struct stub *s, taddr_t pc);
/* The way back from the stub; *pop_ret says how many bytes to take off the
 * stack. */
taddr_t stub_home_pc(const struct stub *s, taddr_t pc, unsigned *pop_ret);

#endif
