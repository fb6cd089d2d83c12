/* Expressions of DWARF as machine code: a stack of three registers. Those that
 * come here have passed range_expr_ok(). */
#include "supervisor/probe/range-asm.h"
#include "supervisor/probe/range-sensor.h"

static void push_register(struct range_sensor *x, uint8_t to, int64_t dwarf)
{
	struct code_buf *e = &x->s->code;
	uint8_t reg = range_reg_of_dwarf((unsigned)dwarf);
	if (reg == RANGE_RSP)
		asm_mem(e, 8, OP_LEA, to, RANGE_RSP, (int32_t)x->pushed);
	else
		asm_reg(e, 8, OP_MOV_R_RM, to, x->alias[reg]);
}

static void extend(struct code_buf *e, const struct var_op *op, uint8_t reg)
{
	static const unsigned sign[9] = {
		[1] = 0x0fbe, [2] = 0x0fbf, [4] = 0x63};
	bool zero = op->code == VAR_OP_ZEXT;
	if (op->arg == 8)
		return;
	if (zero && op->arg == 4)
		asm_reg(e, 4, OP_MOV_R_RM, reg, reg);
	else if (zero)
		asm_reg(e, 8, op->arg == 1 ? OP_MOVZX_BYTE : OP_MOVZX_WORD, reg,
			reg);
	else
		asm_reg(e, 8, sign[op->arg], reg, reg);
}

/* @b is the top, @a below it; the result is in @a. */
static void binary(struct code_buf *e, const struct var_op *op, uint8_t a,
		   uint8_t b)
{
	switch (op->code) {
	case VAR_OP_ADD:
		asm_reg(e, 8, 0x03, a, b);
		break;
	case VAR_OP_SUB:
		asm_reg(e, 8, 0x2b, a, b);
		break;
	case VAR_OP_AND:
		asm_reg(e, 8, 0x23, a, b);
		break;
	case VAR_OP_OR:
		asm_reg(e, 8, 0x0b, a, b);
		break;
	case VAR_OP_XOR:
		asm_reg(e, 8, 0x33, a, b);
		break;
	case VAR_OP_MUL:
		asm_reg(e, 8, 0x0faf, a, b);
		break;
	case VAR_OP_SHL:
		asm_shift(e, 8, SHIFT_LEFT, a, (unsigned)op[-1].arg);
		break;
	case VAR_OP_SHR:
		asm_shift(e, 8, SHIFT_RIGHT, a, (unsigned)op[-1].arg);
		break;
	default:
		asm_shift(e, 8, SHIFT_RIGHT_SIGN, a, (unsigned)op[-1].arg);
		break;
	}
}

static void unary(struct code_buf *e, const struct var_op *op, uint8_t top)
{
	uint8_t rex = (uint8_t)(0x48 | (top >= 8));
	switch (op->code) {
	case VAR_OP_PLUS_CONST:
		asm_mem(e, 8, OP_LEA, top, top, (int32_t)op->arg);
		break;
	case VAR_OP_LOAD:
		asm_load(e, (unsigned)op->arg, top, top, 0);
		break;
	case VAR_OP_NEG:
		CODE(e, rex, 0xf7, (uint8_t)(0xd8 | (top & 7)));
		break;
	case VAR_OP_NOT:
		CODE(e, rex, 0xf7, (uint8_t)(0xd0 | (top & 7)));
		break;
	default:
		extend(e, op, top);
		break;
	}
}

void range_expression(struct range_sensor *x, const struct var_op *ops,
		      size_t nr)
{
	struct code_buf *e = &x->s->code;
	unsigned depth = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct var_op *op = &ops[i];
		switch (op->code) {
		case VAR_OP_REG:
			push_register(x, x->scratch[depth++], op->arg);
			break;
		case VAR_OP_CONST:
			asm_const(e, x->scratch[depth++], op->arg);
			break;
		case VAR_OP_ADDR:
			asm_rip(e, 8, OP_LEA, x->scratch[depth++],
				(uint64_t)op->arg + x->at->bias, 0);
			break;
		default:
			if (var_op_pops(op->code) == 1) {
				unary(e, op, x->scratch[depth - 1]);
				break;
			}
			depth--;
			binary(e, op, x->scratch[depth - 1], x->scratch[depth]);
			break;
		}
	}
}
