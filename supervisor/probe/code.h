/*
 * code.h - machine code that is written for inside the tracee: a buffer to
 * emit into, and instructions of the program that are moved to another place
 * and do the same there. Pure: bytes in, bytes out. The program's bytes are
 * hostile input.
 */
#ifndef SMCO_CODE_H
#define SMCO_CODE_H

#include <Zydis/Zydis.h>
#include <string.h>

#include "reports/base.h"

#define CODE_JUMP_BYTES	 5 /* jmp rel32 */
#define CODE_SHORT_BYTES 2 /* jmp rel8 */

struct code_buf {
	uint8_t *buf; /* the caller's */
	size_t len;
	size_t cap;
	taddr_t base; /* where buf[0] is going to be */
	bool failed;  /* out of room or of reach; what is there is of no use */
};

/* Here, so that a few bytes whose number is known are moved by no call. */
static inline void code_put(struct code_buf *e, const void *bytes, size_t n)
{
	if (e->failed || e->len > e->cap || n > e->cap - e->len) {
		e->failed = true;
		return;
	}
	memcpy(e->buf + e->len, bytes, n);
	e->len += n;
}
void code_put32(struct code_buf *e, uint32_t v);
/* A 32-bit distance to @target from the end of an instruction that ends
 * @tail bytes after the distance. */
void code_put_rel(struct code_buf *e, taddr_t target, unsigned tail);
/* jmp rel32 */
void code_jump(struct code_buf *e, taddr_t target);
#define CODE(e, ...)                                                           \
	do {                                                                   \
		const uint8_t bytes_[] = {__VA_ARGS__};                        \
		code_put(e, bytes_, sizeof(bytes_));                           \
	} while (0)

struct code_insn {
	ZydisDecodedInstruction z;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	taddr_t addr;
	taddr_t target; /* of a relative branch, else 0 */
	bool ends;	/* what follows is not reached from here */
};

/* False if no instruction is there. */
bool code_decode(const uint8_t *bytes, size_t len, taddr_t addr,
		 struct code_insn *ret);

/*
 * Emits @in, whose bytes are @bytes, so that it does the same at its new
 * place. A direct call pushes the return address that it always pushed, for
 * unwinders, so it comes back to its old place. Returns why it cannot be
 * moved, or NULL.
 */
#define CODE_CALL_PUSH_BYTES 6 /* of a call: the push, a jump behind it */
#define CODE_CALL_BACK_BYTES 8 /* and last the address it pushes */
const char *code_relocate(struct code_buf *e, const uint8_t *bytes,
			  const struct code_insn *in);

#endif
