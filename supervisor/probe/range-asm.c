/* Encoding, see range-asm.h. */
#include "supervisor/probe/range-asm.h"

#include <string.h>

static void prefix(struct code_buf *e, unsigned size, unsigned opcode,
		   unsigned reg, unsigned rm, bool rm_is_reg)
{
	unsigned rex =
		(size == 8 ? 8u : 0) | (reg >= 8 ? 4u : 0) | (rm >= 8 ? 1u : 0);
	/* Without one, 4 to 7 would be the second bytes. */
	if (size == 1 && (reg >= 4 || (rm_is_reg && rm >= 4)))
		rex |= 0x40;
	if (size == 2)
		CODE(e, 0x66);
	if (rex)
		CODE(e, (uint8_t)(0x40 | rex));
	if (opcode > 0xff)
		CODE(e, (uint8_t)(opcode >> 8));
	/* The form for bytes is the one before, but for those that name the
	 * size of their source themselves. */
	if (size == 1 && opcode != OP_MOVZX_BYTE && opcode != OP_MOVZX_WORD)
		opcode--;
	CODE(e, (uint8_t)opcode);
}

void asm_reg(struct code_buf *e, unsigned size, unsigned opcode, unsigned reg,
	     unsigned rm)
{
	prefix(e, size, opcode, reg, rm, true);
	CODE(e, (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7)));
}

void asm_mem(struct code_buf *e, unsigned size, unsigned opcode, unsigned reg,
	     unsigned base, int32_t disp)
{
	prefix(e, size, opcode, reg, base, false);
	bool byte = disp == (int8_t)disp;
	CODE(e, (uint8_t)((byte ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7)));
	if ((base & 7) == 4)
		CODE(e, 0x24);
	if (byte)
		CODE(e, (uint8_t)disp);
	else
		code_put32(e, (uint32_t)disp);
}

void asm_rip(struct code_buf *e, unsigned size, unsigned opcode, unsigned reg,
	     taddr_t target, unsigned tail)
{
	prefix(e, size, opcode, reg, 0, false);
	CODE(e, (uint8_t)(0x05 | (reg & 7) << 3));
	code_put_rel(e, target, tail);
}

void asm_scaled(struct code_buf *e, unsigned reg, unsigned index,
		unsigned scale, int32_t disp)
{
	unsigned log2 = (unsigned)__builtin_ctz(scale);
	CODE(e, (uint8_t)(0x48 | (reg >= 8) << 2 | (index >= 8) << 1), OP_LEA,
	     (uint8_t)(0x04 | (reg & 7) << 3),
	     (uint8_t)(log2 << 6 | (index & 7) << 3 | 5));
	code_put32(e, (uint32_t)disp);
}

void asm_sum(struct code_buf *e, unsigned reg, unsigned base, unsigned index,
	     unsigned scale, int32_t disp)
{
	unsigned log2 = scale ? (unsigned)__builtin_ctz(scale) : 0;
	if (index >= 16)
		index = 4; /* says so */
	CODE(e,
	     (uint8_t)(0x48 | (reg >= 8) << 2 | (index >= 8) << 1 |
		       (base >= 8)),
	     OP_LEA, (uint8_t)(0x84 | (reg & 7) << 3),
	     (uint8_t)(log2 << 6 | (index & 7) << 3 | (base & 7)));
	code_put32(e, (uint32_t)disp);
}

void asm_cmp_const(struct code_buf *e, unsigned size, unsigned reg,
		   int32_t value)
{
	CODE(e, (uint8_t)((size == 8 ? 0x48 : 0x40) | (reg >= 8)), 0x81,
	     (uint8_t)(0xf8 | (reg & 7)));
	code_put32(e, (uint32_t)value);
}

void asm_push(struct code_buf *e, unsigned reg)
{
	if (reg >= 8)
		CODE(e, 0x41);
	CODE(e, (uint8_t)(0x50 | (reg & 7)));
}

void asm_pop(struct code_buf *e, unsigned reg)
{
	if (reg >= 8)
		CODE(e, 0x41);
	CODE(e, (uint8_t)(0x58 | (reg & 7)));
}

void asm_move_stack(struct code_buf *e, int32_t by)
{
	asm_mem(e, 8, OP_LEA, 4, 4, by);
}

static unsigned load_opcode(unsigned size)
{
	return size == 1   ? OP_MOVZX_BYTE
	       : size == 2 ? OP_MOVZX_WORD
			   : OP_MOV_R_RM;
}

void asm_load(struct code_buf *e, unsigned size, unsigned reg, unsigned base,
	      int32_t disp)
{
	asm_mem(e, size == 8 ? 8 : 4, load_opcode(size), reg, base, disp);
}

void asm_fs(struct code_buf *e, unsigned size, unsigned reg, int32_t disp)
{
	CODE(e, 0x64);
	prefix(e, size == 8 ? 8 : 4, load_opcode(size), reg, 0, false);
	CODE(e, (uint8_t)(0x04 | (reg & 7) << 3), 0x25);
	code_put32(e, (uint32_t)disp);
}

void asm_const(struct code_buf *e, unsigned reg, int64_t value)
{
	unsigned rex = reg >= 8;
	if (value == (int32_t)value) {
		CODE(e, (uint8_t)(0x48 | rex), 0xc7,
		     (uint8_t)(0xc0 | (reg & 7)));
		code_put32(e, (uint32_t)value);
	} else {
		CODE(e, (uint8_t)(0x48 | rex), (uint8_t)(0xb8 | (reg & 7)));
		code_put(e, &value, sizeof(value));
	}
}

void asm_shift(struct code_buf *e, unsigned size, unsigned how, unsigned reg,
	       unsigned by)
{
	uint8_t rex = (uint8_t)((size == 8 ? 0x48 : 0x40) | (reg >= 8));
	CODE(e, rex, 0xc1, (uint8_t)(0xc0 | how << 3 | (reg & 7)), (uint8_t)by);
}

size_t asm_branch(struct code_buf *e, uint8_t condition)
{
	CODE(e, 0x0f, (uint8_t)(0x80 | condition));
	code_put32(e, 0);
	return e->len;
}

void asm_land(struct code_buf *e, size_t branch)
{
	uint32_t distance = (uint32_t)(e->len - branch);
	if (!e->failed)
		memcpy(e->buf + branch - 4, &distance, sizeof(distance));
}

void asm_jump_if(struct code_buf *e, uint8_t condition, taddr_t target)
{
	CODE(e, 0x0f, (uint8_t)(0x80 | condition));
	code_put_rel(e, target, 0);
}
