/*
 * varexpr.h - DWARF location expressions brought into a normal form: the few
 * shapes that nearly all of them have, and short programs for the rest.
 * Internal to symbols/.
 */
#ifndef SYMBOLS_VAREXPR_H
#define SYMBOLS_VAREXPR_H

#include <elfutils/libdw.h>

#include "symbols/variable.h"

/*
 * Registers that stand for an address in the function's frame. Which register
 * and offset that is at an address of code, the CFI says.
 */
#define VAR_REG_CFA 0x80 /* the canonical frame address */
/* rbp or rsp, where the frame is set up: not yet in the prologue. */
#define VAR_REG_FRAME_RBP 0x81
#define VAR_REG_FRAME_RSP 0x82

/* DW_AT_frame_base of a function: reg + offset. */
struct var_frame_base {
	bool known;
	uint8_t reg; /* a register, or one of the above */
	int64_t offset;
};

enum var_piece_kind {
	VAR_PIECE_NONE,	    /* see reason */
	VAR_PIECE_REGISTER, /* it is in reg */
	VAR_PIECE_ADDRESS,  /* it is in memory where the ops say */
	VAR_PIECE_VALUE,    /* it is what the ops say */
	VAR_PIECE_THREAD,   /* it is in the file's thread-local memory there */
};

/* Where some bytes of an object are; a simple object has one piece. */
struct var_piece {
	uint64_t bytes; /* 0: all of it */
	uint8_t kind;	/* enum var_piece_kind */
	uint8_t reason; /* enum var_reason */
	uint8_t reg;
	uint8_t nr_ops;
	struct var_op op[VAR_MAX_OPS];
};
#define VAR_MAX_PIECES 16

/*
 * What the expression @ops, from attribute @attr, says; its number of pieces,
 * which is at least 1.
 */
size_t var_expr_read(Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t nr,
		     const struct var_frame_base *base,
		     struct var_piece ret[VAR_MAX_PIECES]);

/* The frame base of the function @die. */
struct var_frame_base var_frame_base_read(Dwarf_Die *die);

/* Append an operation, folding what is constant; false: it became too long. */
bool var_ops_add(struct var_op *ops, uint8_t *nr, uint8_t code, int64_t arg);

#endif
