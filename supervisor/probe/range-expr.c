/* Expressions of DWARF as machine code: a stack of three registers. Those that
 * come here have passed range_expr_ok(). */
#include "supervisor/probe/range-asm.h"
#include "supervisor/probe/range-sensor.h"

static bool load_is_safe(const struct var_op *ops, size_t at)
{
	if (at > 0 && ops[at - 1].code == VAR_OP_PLUS_CONST)
		at--;
	return at > 0 && ops[at - 1].code == VAR_OP_REG &&
	       range_reg_of_dwarf((unsigned)ops[at - 1].arg) == RANGE_RSP &&
	       (ops[at].code == VAR_OP_LOAD ||
		(ops[at].arg >= -4096 && ops[at].arg < (1 << 20)));
}

uint32_t range_expr_regs(const struct var_op *ops, size_t nr)
{
	uint32_t regs = 0;
	for (size_t i = 0; i < nr; i++)
		if (ops[i].code == VAR_OP_REG)
			regs |= 1u << range_reg_of_dwarf((unsigned)ops[i].arg);
	return regs;
}

bool range_expr_ok(const struct var_op *ops, size_t nr)
{
	unsigned depth = 0;
	for (size_t i = 0; i < nr; i++) {
		switch (ops[i].code) {
		case VAR_OP_REG:
			if (ops[i].arg < 0 || ops[i].arg > 15)
				return false;
			break;
		case VAR_OP_CONST:
		case VAR_OP_ADDR:
		case VAR_OP_ADD:
		case VAR_OP_SUB:
		case VAR_OP_MUL:
		case VAR_OP_AND:
		case VAR_OP_OR:
		case VAR_OP_XOR:
		case VAR_OP_EQ:
		case VAR_OP_NE:
		case VAR_OP_LT:
		case VAR_OP_LE:
		case VAR_OP_GT:
		case VAR_OP_GE:
		case VAR_OP_NEG:
		case VAR_OP_NOT:
			break;
		case VAR_OP_SHL:
		case VAR_OP_SHR:
		case VAR_OP_SAR: /* by a constant only */
			if (!i || ops[i - 1].code != VAR_OP_CONST ||
			    ops[i - 1].arg < 0 || ops[i - 1].arg > 63)
				return false;
			break;
		case VAR_OP_LOAD:
			if (!load_is_safe(ops, i))
				return false;
			__attribute__((fallthrough));
		case VAR_OP_ZEXT:
		case VAR_OP_SEXT:
			if (ops[i].arg != 1 && ops[i].arg != 2 &&
			    ops[i].arg != 4 && ops[i].arg != 8)
				return false;
			break;
		case VAR_OP_PLUS_CONST:
			/* A large one needs a register. */
			if (ops[i].arg != (int32_t)ops[i].arg &&
			    depth >= RANGE_EXPR_DEPTH)
				return false;
			break;
		default:
			return false;
		}
		unsigned pops = var_op_pops(ops[i].code);
		if (depth < pops)
			return false;
		depth = depth - pops + 1;
		if (depth > RANGE_EXPR_DEPTH)
			return false;
	}
	return depth == 1;
}

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

/* 0 or 1, signed: cmp %b, %a; setcc; movzbl. */
static void compare(struct code_buf *e, uint8_t code, uint8_t a, uint8_t b)
{
	static const uint8_t condition[] = {
		[VAR_OP_EQ - VAR_OP_EQ] = 0x4, [VAR_OP_NE - VAR_OP_EQ] = 0x5,
		[VAR_OP_LT - VAR_OP_EQ] = 0xc, [VAR_OP_LE - VAR_OP_EQ] = 0xe,
		[VAR_OP_GT - VAR_OP_EQ] = 0xf, [VAR_OP_GE - VAR_OP_EQ] = 0xd,
	};
	asm_reg(e, 8, OP_CMP_R_RM, a, b);
	CODE(e, (uint8_t)(0x40 | (a >= 8)), 0x0f,
	     (uint8_t)(0x90 | condition[code - VAR_OP_EQ]),
	     (uint8_t)(0xc0 | (a & 7)));
	asm_reg(e, 8, OP_MOVZX_BYTE, a, a);
}

/* @b is the top, @a below it; the result is in @a. */
static void binary(struct code_buf *e, const struct var_op *op, uint8_t a,
		   uint8_t b)
{
	switch (op->code) {
	case VAR_OP_EQ:
	case VAR_OP_NE:
	case VAR_OP_LT:
	case VAR_OP_LE:
	case VAR_OP_GT:
	case VAR_OP_GE:
		compare(e, op->code, a, b);
		break;
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
			if (op->code == VAR_OP_PLUS_CONST &&
			    op->arg != (int32_t)op->arg) {
				asm_const(e, x->scratch[depth], op->arg);
				asm_reg(e, 8, 0x03, x->scratch[depth - 1],
					x->scratch[depth]);
				break;
			}
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
