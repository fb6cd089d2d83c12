/*
 * range-text.h - the program's code as range sensors need to know it: where
 * instructions begin, where control can come from elsewhere, what each reads
 * and writes, which registers and flags are still needed. Pure, no tracee; all
 * addresses are the file's own. ELF and code are hostile input.
 *
 * What is said errs to the safe side: a leader too many, a register or flag
 * needed that is not.
 */
#ifndef SMCO_RANGE_TEXT_H
#define SMCO_RANGE_TEXT_H

#include <libelf.h>

#include "reports/base.h"
#include "symbols/dataslot.h"

struct range_segment {
	uint64_t vaddr;
	uint64_t len; /* that the file has */
	const uint8_t *bytes;
	bool exec;
};
#define RANGE_MAX_SEGMENTS 16

struct range_image {
	struct range_segment segment[RANGE_MAX_SEGMENTS];
	unsigned nr_segments;
	uint64_t end; /* of what is mapped, also beyond what the file has */
	/* The executable one (the largest, if there are several). */
	uint64_t lo;
	uint64_t hi; /* exclusive */
	const uint8_t *text;
	uint8_t *mark;	 /* RANGE_MARK_* of each byte of text */
	uint64_t *taken; /* sorted: addresses of data that code or data name */
	size_t nr_taken, cap_taken;
	struct data_slots slots; /* none: of no file */
	uint8_t *own; /* a segment's bytes that are not the Elf's; unmap */
	size_t own_bytes;
	/* It is linked to be anywhere: none of the numbers in its instructions
	 * is an address. */
	bool is_anywhere;
};
enum range_mark {
	RANGE_MARK_INSN = 1,   /* an instruction begins */
	RANGE_MARK_LEADER = 2, /* control may come here from elsewhere */
	RANGE_MARK_CODE = 4,   /* a nop that control goes through: no padding */
};

/*
 * Reads the segments of @elf, finds instructions from the functions' @starts
 * (any order) on, and marks what is branched to or named anywhere. The image
 * points into the Elf's memory: keep it open. @fd is the same file, of which
 * much code is read by two threads; -1: there is none. SMCO_FORMAT: no code in
 * it.
 */
int range_image_load(struct range_image *img, Elf *elf, int fd,
		     const uint64_t *starts, size_t nr_starts,
		     struct smco_err *err);
extern uint64_t range_image_own_from_bytes; /* tests make it small */
/* Reads the segments alone, and which of them has the code: mark and taken are
 * the caller's to fill in, and to free. */
int range_image_open(struct range_image *img, Elf *elf, int fd,
		     struct smco_err *err);
/* The same for segments that the caller has filled in. */
int range_image_scan(struct range_image *img, const uint64_t *starts,
		     size_t nr_starts, struct smco_err *err);
void range_image_deinit(struct range_image *img);
/* range-sweep.c: finds instructions, what is branched to and what is taken;
 * by two threads from so much code on (tests make it small) if there is a CPU
 * for each. False: no memory. */
bool range_sweep(struct range_image *img, const uint64_t *starts,
		 size_t nr_starts);
extern uint64_t range_sweep_two_from_bytes;
/* Control may come to @addr, in the text or not. */
void range_sweep_lead(struct range_image *img, uint64_t addr);
/* The bytes at @vaddr, @len of them, or NULL if the file has them not. */
const uint8_t *range_image_at(const struct range_image *img, uint64_t vaddr,
			      uint64_t len);
/* May control come to @addr, in the text, from elsewhere in the file? */
static inline bool range_image_is_leader(const struct range_image *img,
					 uint64_t addr)
{
	return img->mark[addr - img->lo] & RANGE_MARK_LEADER;
}
/* Is an address in [lo, hi) named by code or data? */
bool range_image_taken(const struct range_image *img, uint64_t lo, uint64_t hi);

/* Bits of use, def and live: 0-15 the general registers in the processor's
 * order (rax rcx rdx rbx rsp rbp rsi rdi r8...), then the six flags. */
#define RANGE_FLAGS    0x3f0000u
#define RANGE_ALL_REGS 0xffffu
#define RANGE_RSP      4
#define RANGE_RBP      5

enum range_kind {
	RK_PLAIN,
	RK_JUMP, /* also out of the function: a tail call */
	RK_BRANCH,
	RK_CALL,
	RK_RET,
	RK_JUMP_TO, /* through a register or memory */
	RK_CALL_TO,
	RK_STOP, /* ud2, hlt, int3: nothing follows */
	RK_BAD,	 /* not an instruction */
};
enum range_bits {
	RB_LEADER = 1 << 0,
	RB_READS = 1 << 1,  /* the memory operand */
	RB_WRITES = 1 << 2, /* the memory operand */
	RB_LEA = 1 << 3,
	RB_ENDBR = 1 << 4,
	RB_PADDING = 1 << 5, /* nop or int3 */
	RB_PINNED = 1 << 6,  /* cannot run at another place */
	RB_STORES = 1 << 7,  /* writes memory of any kind */
	RB_IMM = 1 << 8,     /* mov of imm to memory or a register */
	RB_POP = 1 << 9,
	RB_UNREACHED = 1 << 10, /* padding behind what does not go on */
	RB_DISTANCE = 1 << 11,	/* loads what could be a table's distance */
	RB_ADDS = 1 << 12,	/* imm to the register that it writes */
	RB_TABLE = 1 << 13,	/* a jump table may lead here */
	RB_MASKS = 1 << 14,	/* and of imm to what it writes */
	RB_COMPUTES = 1 << 15,	/* what a register holds may be told after it */
};
#define RANGE_NO_REG 0xff
#define RANGE_RIP    16 /* base: disp is an address of the file */
#define RANGE_FS     17 /* base: disp is relative to the thread's pointer */

struct range_insn {
	uint64_t addr;
	uint64_t target; /* of a direct branch or call, else 0 */
	int64_t disp;	 /* of the memory operand */
	int64_t imm;	 /* RB_IMM, RB_ADDS, RB_MASKS */
	uint32_t use, def;
	uint32_t live;	/* needed at its beginning by somebody later */
	uint16_t wrote; /* general registers written, wholly or in part */
	uint16_t bits;
	uint8_t len;
	uint8_t kind;
	uint8_t base;	  /* of the memory operand */
	uint8_t index;	  /* RANGE_NO_REG: none */
	uint8_t scale;	  /* of the index */
	uint8_t mem_size; /* bytes of the memory operand */
	uint8_t reg; /* a mov to or from the memory operand: afterwards equal to
		      * it in as many bits; else RANGE_NO_REG */
};

struct range_chunk {
	uint64_t lo;
	uint64_t hi; /* exclusive */
};

struct range_code {
	struct range_insn *insns; /* by address */
	size_t nr;
	const char *refused; /* why it must be left alone; NULL: it need not */
	bool free_jumps;     /* some lead to more than tables do */
};

/* Decode a function that lies in @chunks. SMCO_NOMEM is the only error:
 * what cannot be understood is refused. */
int range_code_init(struct range_code *code, const struct range_image *img,
		    const struct range_chunk *chunks, size_t nr_chunks,
		    struct smco_err *err);
void range_code_deinit(struct range_code *code);
/* The first instruction at or behind @addr; nr if there is none. */
size_t range_code_find(const struct range_code *code, uint64_t addr);
/* Does instruction @i + 1 follow @i in memory, and control go on to it? */
bool range_falls(const struct range_code *code, size_t i);

/* range-flow.c: leaders inside, jump tables, what is live. Private. */
void range_code_flow(struct range_code *code, const struct range_image *img);
/* What is live again, after changes to what instructions use. */
void range_code_live(struct range_code *code);

#endif
