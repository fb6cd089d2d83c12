/*
 * range-asm.h - the few instructions that range sensors are made of. Private to
 * range-stub.c and range-expr.c.
 */
#ifndef SMCO_RANGE_ASM_H
#define SMCO_RANGE_ASM_H

#include "supervisor/probe/code.h"

/* Opcodes, for operands of more than one byte; 0x0fxx are two bytes. */
#define OP_CMP_R_RM   0x3b
#define OP_CMP_RM_R   0x39
#define OP_MOV_R_RM   0x8b
#define OP_LEA	      0x8d
#define OP_SUB_R_RM   0x2b
#define OP_ADD_R_RM   0x03
#define OP_CMPXCHG    0x0fb1
#define OP_BT	      0x0fa3
#define OP_MOVZX_BYTE 0x0fb6
#define OP_MOVZX_WORD 0x0fb7

/* @opcode between register @reg and register @rm; @size bytes. */
void asm_reg(struct code_buf *e, unsigned size, unsigned opcode, unsigned reg,
	     unsigned rm);
/* ... and memory at @base + @disp. */
void asm_mem(struct code_buf *e, unsigned size, unsigned opcode, unsigned reg,
	     unsigned base, int32_t disp);
/* ... and memory at @target, by its distance; the instruction has @tail bytes
 * more. */
void asm_rip(struct code_buf *e, unsigned size, unsigned opcode, unsigned reg,
	     taddr_t target, unsigned tail);
/* lea @disp(, @index, @scale), @reg; 64 bits. */
void asm_scaled(struct code_buf *e, unsigned reg, unsigned index,
		unsigned scale, int32_t disp);
/* lea @disp(@base, @index, @scale), @reg; @index of 16 or more: none. */
void asm_sum(struct code_buf *e, unsigned reg, unsigned base, unsigned index,
	     unsigned scale, int32_t disp);
void asm_push(struct code_buf *e, unsigned reg);
void asm_pop(struct code_buf *e, unsigned reg);
/* lea @by(%rsp), %rsp: no flags are touched. */
void asm_move_stack(struct code_buf *e, int32_t by);
/* Load @size bytes, zero-extended, from memory at @base + @disp. */
void asm_load(struct code_buf *e, unsigned size, unsigned reg, unsigned base,
	      int32_t disp);
/* The same from memory at fs + @disp. */
void asm_fs(struct code_buf *e, unsigned size, unsigned reg, int32_t disp);
/* 64-bit constant. */
void asm_const(struct code_buf *e, unsigned reg, int64_t value);
/* Shift of the 32 or 64 bit register: ROR 1, SHL 4, SHR 5, SAR 7. */
#define ROTATE_RIGHT	 1
#define SHIFT_LEFT	 4
#define SHIFT_RIGHT	 5
#define SHIFT_RIGHT_SIGN 7
void asm_shift(struct code_buf *e, unsigned size, unsigned how, unsigned reg,
	       unsigned by);
/* cmp of the 32 or 64 bit register with a constant that is extended by its
 * sign. */
void asm_cmp_const(struct code_buf *e, unsigned size, unsigned reg,
		   int32_t value);
/* jcc rel32 to a place not known yet; returns where to put the distance. */
size_t asm_branch(struct code_buf *e, uint8_t condition);
void asm_land(struct code_buf *e, size_t branch);
/* The same to a known one. */
void asm_jump_if(struct code_buf *e, uint8_t condition, taddr_t target);

#endif
