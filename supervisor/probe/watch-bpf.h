/*
 * watch-bpf.h - what watch.c and its BPF program say to each other. Included by
 * both, so only fixed-size types (__u32, __u64 of <linux/types.h>).
 */
#ifndef SMCO_WATCH_BPF_H
#define SMCO_WATCH_BPF_H

#include <linux/types.h>

#define WATCH_FIELDS 8	  /* of one word */
#define WATCH_GUARDS 10	  /* pointers that lead to one, and other words */
#define WATCH_OPS    24	  /* of one word's expressions */
#define WATCH_DEPTH  3	  /* what is on an expression's stack at most */
#define WATCH_WORDS  1024 /* armed at the same time, all processes together */

/* Where a part's value is when an instruction is reached. */
enum watch_source {
	WATCH_REG,	 /* in a register */
	WATCH_AT_REG,	 /* in memory, at register + offset */
	WATCH_AT,	 /* in memory, at offset */
	WATCH_SUM,	 /* register + offset */
	WATCH_CONST,	 /* offset */
	WATCH_AT_THREAD, /* in memory, at the thread's pointer + offset */
	WATCH_EXPR,	 /* what the word's operations make of registers */
};

/* A stack machine of 64-bit words; the result is on top. */
enum watch_op_code {
	WATCH_PUSH_REG, /* arg, in the order below */
	WATCH_PUSH,	/* arg */
	WATCH_PLUS,	/* add arg to the top */
	WATCH_LOAD,	/* by the arg bytes that it points to, zero-extended */
	WATCH_ZEXT,	/* by its lowest arg bytes, extended */
	WATCH_SEXT,
	WATCH_NEG,
	WATCH_NOT,
	WATCH_ADD, /* pop b, pop a, push a op b; also those below */
	WATCH_SUB,
	WATCH_MUL,
	WATCH_AND,
	WATCH_OR,
	WATCH_XOR,
	WATCH_SHL, /* by the lowest six bits of b */
	WATCH_SHR,
	WATCH_SAR,
	WATCH_EQ, /* 0 or 1; signed, also those below */
	WATCH_NE,
	WATCH_LT,
	WATCH_LE,
	WATCH_GT,
	WATCH_GE,
};

/* A part of a word, or of what an instruction finds: a variable. */
struct watch_part {
	__u8 shift; /* of its lowest bit */
	__u8 bits;  /* 1 to 64 */
	__u8 is_signed;
	/* Of an instruction only: */
	__u8 source; /* enum watch_source */
	__u8 reg;    /* rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 on */
	__u8 bytes;  /* of memory: 1, 2, 4 or 8 */
	__u8 first_op, nr_ops; /* of the word's */
	__s64 offset;
	/* Of those that were seen; before that, the reverse of everything. */
	__s64 smallest;
	__s64 largest;
};

/* One armed word, or instruction. The supervisor writes it while nobody hits
 * it. */
struct watch_word {
	__u64 addr;
	__u32 bytes; /* 1, 2, 4 or 8; 0: an instruction */
	__u32 nr_parts;
	__s64 left; /* hits before it is switched off; may go below 0 */
	__u64 nr_hits;
	__u64 nr_off;	 /* how often it was switched off, of any thread */
	__u64 spent_ns;	 /* CLOCK_MONOTONIC, when none was left; 0 = not yet */
	__u64 nr_unread; /* of them, those whose value does not count */
	/* What is written counts as long as these are in memory there: the
	 * pointers that lead to it, which may lead elsewhere by now, and what
	 * says that its library is still loaded. */
	__u32 nr_guards;
	/* WATCH_AT_THREAD: where in the kernel's record of a thread its
	 * pointer is. */
	__u32 thread_at;
	struct watch_guard {
		__u64 addr;
		__u64 value;
	} guard[WATCH_GUARDS];
	struct watch_part part[WATCH_FIELDS];
	__s64 op_arg[WATCH_OPS];
	__u8 op_code[WATCH_OPS]; /* enum watch_op_code */
};

#endif
