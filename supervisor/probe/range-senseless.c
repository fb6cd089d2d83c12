/* Values that no compiler means, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

#include <string.h>

/* How many times an expression is computed, with other registers each time: so
 * unlikely is it that one that depends on them gives the same all the same. */
#define TRIES 64

static uint64_t some_number(uint64_t of)
{
	of = (of + 1) * UINT64_C(0x9e3779b97f4a7c15);
	of = (of ^ of >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return of ^ of >> 29;
}

static uint64_t of_two(uint8_t code, uint64_t a, uint64_t b)
{
	switch (code) {
	case VAR_OP_ADD:
		return a + b;
	case VAR_OP_SUB:
		return a - b;
	case VAR_OP_MUL:
		return a * b;
	case VAR_OP_AND:
		return a & b;
	case VAR_OP_OR:
		return a | b;
	case VAR_OP_XOR:
		return a ^ b;
	case VAR_OP_SHL:
		return a << (b & 63);
	case VAR_OP_SHR:
		return a >> (b & 63);
	default:
		return (uint64_t)((int64_t)a >> (b & 63));
	}
}

static uint64_t of_one(const struct var_op *op, uint64_t a)
{
	unsigned unused = 64 - 8 * (unsigned)op->arg;
	switch (op->code) {
	case VAR_OP_PLUS_CONST:
		return a + (uint64_t)op->arg;
	case VAR_OP_ZEXT:
		return a << unused >> unused;
	case VAR_OP_SEXT:
		return (uint64_t)((int64_t)(a << unused) >> unused);
	case VAR_OP_NEG:
		return -a;
	default:
		return ~a;
	}
}

/* What an expression that range_expr_ok likes gives, the registers being
 * numbers that @seed tells. */
static uint64_t compute(const struct var_op *op, size_t nr, uint64_t seed)
{
	uint64_t stack[RANGE_EXPR_DEPTH + 1] = {0};
	size_t n = 0;
	for (size_t i = 0; i < nr; i++) {
		switch (var_op_pops(op[i].code)) {
		case 0:
			stack[n++] = op[i].code == VAR_OP_REG
					     ? some_number(seed << 8 |
							   (uint64_t)op[i].arg)
					     : (uint64_t)op[i].arg;
			break;
		case 1:
			stack[n - 1] = of_one(&op[i], stack[n - 1]);
			break;
		default:
			n--;
			stack[n - 1] =
				of_two(op[i].code, stack[n - 1], stack[n]);
		}
	}
	return stack[0];
}

bool range_doubt_cancels(const struct variables *v, const struct var_place *p)
{
	bool has_register = false;
	if (p->kind != VAR_EXPR || !p->nr_ops)
		return false;
	const struct var_op *op = v->ops + p->first_op;
	if (!range_expr_ok(op, p->nr_ops))
		return false;
	for (uint32_t i = 0; i < p->nr_ops; i++) {
		has_register |= op[i].code == VAR_OP_REG;
		/* Two numbers are hardly ever the same, and most are large. */
		if (op[i].code == VAR_OP_LOAD ||
		    (op[i].code >= VAR_OP_EQ && op[i].code <= VAR_OP_GE))
			return false;
	}
	for (uint64_t try = 1; has_register && try < TRIES; try++)
		if (compute(op, p->nr_ops, try) != compute(op, p->nr_ops, 0))
			return false;
	return has_register;
}

/* Does @p extend @bytes as @code does? */
static bool extends(const struct variables *v, const struct var_place *p,
		    uint8_t code, int64_t bytes)
{
	for (uint32_t i = 0; p->kind == VAR_EXPR && i < p->nr_ops; i++) {
		const struct var_op *op = &v->ops[p->first_op + i];
		if (op->code == code && op->arg == bytes)
			return true;
	}
	return false;
}

static bool has_extending(const struct variables *v, const struct variable *var,
			  uint8_t code, int64_t bytes)
{
	for (uint32_t i = 0; i < var->nr_places; i++)
		if (extends(v, &v->places[var->first_place + i], code, bytes))
			return true;
	return false;
}

bool range_doubt_extended(const struct variables *v, const struct variable *var,
			  const struct var_place *p)
{
	for (int64_t bytes = 1; bytes < 4 && bytes < var->type.width;
	     bytes *= 2)
		if ((extends(v, p, VAR_OP_SEXT, bytes) &&
		     has_extending(v, var, VAR_OP_ZEXT, bytes)) ||
		    (extends(v, p, VAR_OP_ZEXT, bytes) &&
		     has_extending(v, var, VAR_OP_SEXT, bytes)))
			return true;
	return false;
}

/* Is what @op[i] is applied to the lower half of a register, or less, with
 * nothing said of the rest? */
static bool is_of_half(const struct var_op *op, uint32_t i)
{
	const struct var_op *of = op + i - 1;
	if (i >= 3 && of->code == VAR_OP_AND && of[-1].code == VAR_OP_CONST)
		return of[-1].arg == UINT32_MAX;
	return i && (of->code == VAR_OP_REG ||
		     (of->code == VAR_OP_LOAD && of->arg < 8));
}

bool range_doubt_shifted(const struct variables *v, const struct var_type *t,
			 const struct var_place *p)
{
	if (p->kind != VAR_EXPR || t->width >= 8)
		return false;
	const struct var_op *op = v->ops + p->first_op;
	for (uint32_t i = 2; i < p->nr_ops; i++)
		if (op[i].code == VAR_OP_SAR &&
		    op[i - 1].code == VAR_OP_CONST && op[i - 1].arg < 32 &&
		    is_of_half(op, i - 1))
			return true;
	return false;
}

/* The most that is taken off where LLVM makes a number shorter. */
#define MOST_OFF 16

bool range_doubt_shrunk(const struct variables *v, const struct var_type *t,
			const struct var_place *p)
{
	if (p->kind != VAR_EXPR || !p->nr_ops)
		return false;
	const struct var_op *last = v->ops + p->first_op + p->nr_ops - 1;
	if (p->nr_ops > 2 && last->code == VAR_OP_AND &&
	    last[-1].code == VAR_OP_CONST && last[-1].arg == UINT32_MAX)
		last -= 2;
	for (unsigned n = 8; n < 32 && n < 8 * t->width; n += n == 8 ? 8 : 1) {
		int64_t off = (INT64_C(1) << n) - last->arg;
		if (last->code == VAR_OP_PLUS_CONST && off <= MOST_OFF &&
		    off > (n == 8 ? 1 : 0) && (n != 16 || t->is_signed))
			return true;
	}
	return false;
}

bool range_doubt_beyond(const struct var_type *t, const struct var_place *p)
{
	if (p->kind != VAR_CONST || !t->is_signed || t->bit_size || !t->width ||
	    t->width >= 8 || t->class_ == VAR_BOOL)
		return false;
	int64_t beyond = INT64_C(1) << (8 * t->width - 1);
	return p->offset >= beyond || p->offset < -beyond;
}

/* Behind an @endbr64, push %rbp; mov %rsp, %rbp. */
static bool has_frame_pointer(const struct range_code *code)
{
	size_t i = code->nr && code->insns[0].bits & RB_ENDBR;
	if (code->nr < i + 2)
		return false;
	const struct range_insn *push = &code->insns[i], *mov = push + 1;
	return push->bits & RB_STORES && push->wrote == 1u << RANGE_RSP &&
	       push->use >> RANGE_RBP & 1 && mov->kind == RK_PLAIN &&
	       !mov->mem_size && mov->wrote == 1u << RANGE_RBP &&
	       mov->use >> RANGE_RSP & 1;
}

bool range_doubt_address(const struct range_code *code,
			 const struct variables *v, const struct var_place *p)
{
	bool framed = has_frame_pointer(code);
	if (p->kind == VAR_VALUE || p->kind == VAR_REG) {
		uint8_t reg = range_reg_of_dwarf(p->reg);
		return reg == RANGE_RSP || (framed && reg == RANGE_RBP);
	}
	if (p->kind != VAR_EXPR)
		return false;
	const struct var_op *op = v->ops + p->first_op;
	for (uint32_t i = 0; i < p->nr_ops; i++) {
		uint8_t reg = range_reg_of_dwarf((unsigned)op[i].arg);
		if (op[i].code != VAR_OP_REG ||
		    !(reg == RANGE_RSP || (framed && reg == RANGE_RBP)))
			continue;
		uint32_t k = i + 1;
		k += k < p->nr_ops && op[k].code == VAR_OP_PLUS_CONST;
		if (k == p->nr_ops || op[k].code != VAR_OP_LOAD)
			return true;
	}
	return false;
}

bool range_not_optimised(const struct range_code *code,
			 const struct variables *v,
			 const struct range_index_entry *all, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *p = &v->places[all[i].place];
		bool stays = p->kind == VAR_MEM ||
			     (p->kind == VAR_REG &&
			      p->flags & (VAR_AMONG | VAR_PART));
		if (p->kind != VAR_ADDR && !(stays && p->flags & VAR_SCOPE))
			return false;
	}
	return has_frame_pointer(code);
}

bool range_doubt_data(const struct var_place *p, const struct range_insn *in)
{
	return in->bits & RB_WRITES && p->flags & VAR_ENDS &&
	       in->addr + in->len >= p->hi;
}

bool range_doubt_longer(const struct variable *var, const struct var_place *p,
			const struct range_insn *in)
{
	const struct var_type *t = &var->type;
	if (!(in->bits & RB_WRITES) || t->bit_size || strchr(var->name, '.') ||
	    strchr(var->name, '['))
		return false;
	return p->flags & VAR_SCOPE
		       ? in->mem_size > var_type_bytes(t)
		       : p->flags & VAR_ENDS && in->disp < p->offset;
}

/* What lies below the red zone is anybody's who interrupts, sensors included.
 */
#define RED_ZONE 128

bool range_doubt_below(const struct var_place *p)
{
	return p->kind == VAR_MEM && range_reg_of_dwarf(p->reg) == RANGE_RSP &&
	       p->offset < -RED_ZONE;
}
