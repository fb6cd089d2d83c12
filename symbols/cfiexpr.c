#include "symbols/cfiexpr.h"

#include <dwarf.h>

#define STACK	  32
#define MAX_STEPS 256 /* branches could go round for ever */
#define NR_REGS	  17

struct machine {
	uint64_t stack[STACK];
	unsigned depth;
	bool bad;
	const uint64_t *regs;
	cfiexpr_read_fn read;
	void *ctx;
};

static void push(struct machine *m, uint64_t v)
{
	if (m->depth == STACK)
		m->bad = true;
	else
		m->stack[m->depth++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth)
		return m->stack[--m->depth];
	m->bad = true;
	return 0;
}

static void push_reg(struct machine *m, uint64_t reg, int64_t off)
{
	if (reg >= NR_REGS)
		m->bad = true;
	else
		push(m, m->regs[reg] + (uint64_t)off);
}

/* The entry @n below the top. */
static uint64_t peek(struct machine *m, uint64_t n)
{
	if (n < m->depth)
		return m->stack[m->depth - 1 - n];
	m->bad = true;
	return 0;
}

static void deref(struct machine *m, unsigned size)
{
	uint64_t v = 0;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		m->bad = true;
	else if (!m->read(m->ctx, pop(m), &v))
		m->bad = true;
	else if (size < 8)
		v &= (1ULL << (8 * size)) - 1;
	push(m, v);
}

/* Operators on two values; false if @op is none. */
static bool binary(struct machine *m, uint8_t op)
{
	if (op == DW_OP_abs || op == DW_OP_neg || op == DW_OP_not ||
	    op == DW_OP_plus_uconst || op < DW_OP_abs || op > DW_OP_ne ||
	    op == DW_OP_bra)
		return false;
	uint64_t b = pop(m), a = pop(m);
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	uint64_t v = 0;
	switch (op) {
	case DW_OP_and:
		v = a & b;
		break;
	case DW_OP_or:
		v = a | b;
		break;
	case DW_OP_xor:
		v = a ^ b;
		break;
	case DW_OP_plus:
		v = a + b;
		break;
	case DW_OP_minus:
		v = a - b;
		break;
	case DW_OP_mul:
		v = a * b;
		break;
	case DW_OP_div:
		if (!sb || (sb == -1 && sa == INT64_MIN))
			m->bad = true;
		else
			v = (uint64_t)(sa / sb);
		break;
	case DW_OP_mod:
		if (!b)
			m->bad = true;
		else
			v = a % b;
		break;
	case DW_OP_shl:
		v = b < 64 ? a << b : 0;
		break;
	case DW_OP_shr:
		v = b < 64 ? a >> b : 0;
		break;
	case DW_OP_shra:
		/* cppcheck-suppress shiftTooManyBitsSigned */
		v = (uint64_t)(sa >> (b < 64 ? b : 63));
		break;
	case DW_OP_eq:
		v = sa == sb;
		break;
	case DW_OP_ge:
		v = sa >= sb;
		break;
	case DW_OP_gt:
		v = sa > sb;
		break;
	case DW_OP_le:
		v = sa <= sb;
		break;
	case DW_OP_lt:
		v = sa < sb;
		break;
	case DW_OP_ne:
		v = sa != sb;
		break;
	}
	push(m, v);
	return true;
}

/* Operators that only move stack entries or change the top one. */
static bool rearrange(struct machine *m, uint8_t op, struct cursor *c)
{
	uint64_t a, b, d;
	switch (op) {
	case DW_OP_dup:
		push(m, peek(m, 0));
		return true;
	case DW_OP_drop:
		pop(m);
		return true;
	case DW_OP_over:
		push(m, peek(m, 1));
		return true;
	case DW_OP_pick:
		push(m, peek(m, cursor_uint(c, 1)));
		return true;
	case DW_OP_swap:
		a = pop(m), b = pop(m);
		push(m, a), push(m, b);
		return true;
	case DW_OP_rot:
		a = pop(m), b = pop(m), d = pop(m);
		push(m, a), push(m, d), push(m, b);
		return true;
	case DW_OP_abs:
		a = pop(m);
		push(m, (int64_t)a < 0 ? -a : a);
		return true;
	case DW_OP_neg:
		push(m, -pop(m));
		return true;
	case DW_OP_not:
		push(m, ~pop(m));
		return true;
	case DW_OP_plus_uconst:
		push(m, pop(m) + cursor_uleb(c));
		return true;
	case DW_OP_deref:
		deref(m, 8);
		return true;
	case DW_OP_deref_size:
		deref(m, (unsigned)cursor_uint(c, 1));
		return true;
	case DW_OP_nop:
		return true;
	default:
		return false;
	}
}

/* Operators that bring in a value of their own. */
static bool constant(struct machine *m, uint8_t op, struct cursor *c)
{
	if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
		push(m, op - DW_OP_lit0);
		return true;
	}
	if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
		push_reg(m, op - DW_OP_breg0, cursor_sleb(c));
		return true;
	}
	uint64_t reg;
	switch (op) {
	case DW_OP_bregx:
		reg = cursor_uleb(c);
		push_reg(m, reg, cursor_sleb(c));
		return true;
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(m, cursor_uint(c, 8));
		return true;
	case DW_OP_const1u:
		push(m, cursor_uint(c, 1));
		return true;
	case DW_OP_const1s:
		push(m, (uint64_t)cursor_int(c, 1));
		return true;
	case DW_OP_const2u:
		push(m, cursor_uint(c, 2));
		return true;
	case DW_OP_const2s:
		push(m, (uint64_t)cursor_int(c, 2));
		return true;
	case DW_OP_const4u:
		push(m, cursor_uint(c, 4));
		return true;
	case DW_OP_const4s:
		push(m, (uint64_t)cursor_int(c, 4));
		return true;
	case DW_OP_constu:
		push(m, cursor_uleb(c));
		return true;
	case DW_OP_consts:
		push(m, (uint64_t)cursor_sleb(c));
		return true;
	default:
		return false;
	}
}

bool cfiexpr_eval(struct cursor expr, const uint64_t *regs,
		  const uint64_t *initial, cfiexpr_read_fn read, void *ctx,
		  uint64_t *ret)
{
	struct machine m = {.regs = regs, .read = read, .ctx = ctx};
	struct cursor c = expr;
	if (initial)
		push(&m, *initial);
	for (unsigned steps = 0; cursor_more(&c) && !m.bad; steps++) {
		uint8_t op = (uint8_t)cursor_uint(&c, 1);
		if (steps == MAX_STEPS)
			return false;
		if (op == DW_OP_skip || op == DW_OP_bra) {
			int64_t by = cursor_int(&c, 2);
			if (op == DW_OP_bra && !pop(&m))
				continue;
			if (by < expr.p - c.p || by > c.end - c.p)
				return false;
			c.p += by;
		} else if (!constant(&m, op, &c) && !rearrange(&m, op, &c) &&
			   !binary(&m, op)) {
			return false;
		}
	}
	*ret = pop(&m);
	return !m.bad && !c.bad;
}
