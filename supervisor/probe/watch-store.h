/*
 * watch-store.h - which value a store has put into memory, from the instruction
 * and the registers behind it. Pure. Only what is certain: a plain store of a
 * general register or a constant that covers all of what is asked for; all
 * other forms are left to who reads memory. The program's bytes are hostile.
 */
#ifndef SMCO_WATCH_STORE_H
#define SMCO_WATCH_STORE_H

#include "reports/base.h"

/* A thread behind an instruction: 0 to 15 are the processor's numbers, rax,
 * rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 on. */
struct watch_state {
	taddr_t ip; /* of the next one */
	uint64_t reg[16];
};

/*
 * What @insn, which is @len bytes long and ended at @s->ip, wrote to the @bytes
 * (1, 2, 4 or 8) at @addr. False: it cannot be told, or it did not write all of
 * them.
 */
bool watch_store_value(const uint8_t *insn, size_t len,
		       const struct watch_state *s, taddr_t addr,
		       unsigned bytes, uint64_t *value_ret);

#endif
