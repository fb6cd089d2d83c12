#include "symbols/varexpr.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/dwarfdie.h"

#define MAX_STACK 8

/* One entry of the expression's stack: how to compute it. */
struct entry {
	struct var_op op[VAR_MAX_OPS];
	uint8_t nr;
	uint8_t bytes; /* of its type; 8 if it is of the generic one */
	bool is_signed, typed;
};

struct machine {
	Dwarf_Attribute *attr;
	const struct var_frame_base *base;
	struct entry stack[MAX_STACK];
	size_t depth;
	uint8_t reason; /* enum var_reason, once something went wrong */
	bool thread;	/* what there is, is thread-local */
};

unsigned var_op_pops(uint8_t code)
{
	switch (code) {
	case VAR_OP_REG:
	case VAR_OP_CONST:
	case VAR_OP_ADDR:
		return 0;
	case VAR_OP_PLUS_CONST:
	case VAR_OP_NEG:
	case VAR_OP_NOT:
	case VAR_OP_LOAD:
	case VAR_OP_ZEXT:
	case VAR_OP_SEXT:
		return 1;
	default:
		return 2;
	}
}

/* The constant that @ops push, if that is all they do. */
static bool constant(const struct var_op *ops, uint8_t nr, int64_t *ret)
{
	if (nr != 1 || ops[0].code != VAR_OP_CONST)
		return false;
	*ret = ops[0].arg;
	return true;
}

static int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t extend(int64_t value, int64_t bytes, bool is_signed)
{
	unsigned shift = bytes > 0 && bytes < 8 ? 64 - 8 * (unsigned)bytes : 0;
	uint64_t high = (uint64_t)value << shift;
	return is_signed ? (int64_t)high >> shift : (int64_t)(high >> shift);
}

/* Fold an operation on the constant @value; false: not one of those. */
static bool fold(uint8_t code, int64_t arg, int64_t *value)
{
	switch (code) {
	case VAR_OP_PLUS_CONST:
		*value = wrap_add(*value, arg);
		return true;
	case VAR_OP_NEG:
		*value = (int64_t)(0 - (uint64_t)*value);
		return true;
	case VAR_OP_NOT:
		*value = ~*value;
		return true;
	case VAR_OP_ZEXT:
	case VAR_OP_SEXT:
		*value = extend(*value, arg, code == VAR_OP_SEXT);
		return true;
	default:
		return false;
	}
}

bool var_ops_add(struct var_op *ops, uint8_t *nr, uint8_t code, int64_t arg)
{
	int64_t value;
	if (constant(ops, *nr, &value) && fold(code, arg, &value)) {
		ops[0].arg = value;
		return true;
	}
	if (code == VAR_OP_PLUS_CONST) {
		if (!arg)
			return true;
		struct var_op *last = *nr ? &ops[*nr - 1] : NULL;
		if (last && (last->code == VAR_OP_PLUS_CONST ||
			     last->code == VAR_OP_ADDR)) {
			last->arg = wrap_add(last->arg, arg);
			if (last->code == VAR_OP_PLUS_CONST && !last->arg)
				(*nr)--;
			return true;
		}
	}
	if (*nr >= VAR_MAX_OPS)
		return false;
	ops[(*nr)++] = (struct var_op){.code = code, .arg = arg};
	return true;
}

static void give_up(struct machine *m, enum var_reason why)
{
	if (!m->reason)
		m->reason = (uint8_t)why;
}

static struct entry *top(struct machine *m)
{
	if (!m->depth) {
		give_up(m, VAR_COMPLEX);
		m->depth = 1;
		m->stack[0] = (struct entry){.bytes = 8};
	}
	return &m->stack[m->depth - 1];
}

static struct entry *push(struct machine *m, uint8_t code, int64_t arg)
{
	if (m->depth >= MAX_STACK) {
		give_up(m, VAR_COMPLEX);
		m->depth--;
	}
	struct entry *e = &m->stack[m->depth++];
	*e = (struct entry){.op[0] = {code, arg}, .nr = 1, .bytes = 8};
	return e;
}

static void add_op(struct machine *m, uint8_t code, int64_t arg)
{
	struct entry *e = top(m);
	if (!var_ops_add(e->op, &e->nr, code, arg))
		give_up(m, VAR_COMPLEX);
}

/* A typed value keeps to the range of its type. */
static void keep_type(struct machine *m)
{
	struct entry *e = top(m);
	if (e->bytes < 8)
		add_op(m, e->is_signed ? VAR_OP_SEXT : VAR_OP_ZEXT, e->bytes);
}

static void binary(struct machine *m, uint8_t code)
{
	if (m->depth < 2) {
		give_up(m, VAR_COMPLEX);
		return;
	}
	struct entry *a = &m->stack[m->depth - 2];
	struct entry *b = &m->stack[m->depth - 1];
	int64_t c;
	m->depth--;
	if (constant(a->op, a->nr, &c) && code == VAR_OP_ADD) {
		struct entry swap = *a;
		*a = *b;
		*b = swap;
	}
	if (constant(b->op, b->nr, &c) &&
	    (code == VAR_OP_ADD || code == VAR_OP_SUB)) {
		if (code == VAR_OP_SUB)
			c = (int64_t)(0 - (uint64_t)c);
		add_op(m, VAR_OP_PLUS_CONST, c);
	} else {
		if (a->nr + b->nr >= VAR_MAX_OPS) {
			give_up(m, VAR_COMPLEX);
			return;
		}
		memcpy(a->op + a->nr, b->op, b->nr * sizeof(*b->op));
		a->nr += b->nr;
		a->op[a->nr++] = (struct var_op){.code = code};
	}
	if (code >= VAR_OP_EQ && code <= VAR_OP_GE) {
		/* Unsigned words cannot be compared as signed ones. */
		if (code >= VAR_OP_LT && a->typed && a->bytes == 8 &&
		    !a->is_signed)
			give_up(m, VAR_COMPLEX);
		a->bytes = 8;
		a->typed = a->is_signed = false;
	}
	keep_type(m);
}

/*
 * LLVM has types of any number of bits, which only their names tell:
 * "DW_ATE_unsigned_1". False: one of those, but for a single bit.
 */
static bool whole_bytes(Dwarf_Die *type, bool *bit)
{
	const char *name = dwarf_diename(type);
	const char *bits = name ? strrchr(name, '_') : NULL;
	*bit = bits && !strcmp(name, "DW_ATE_unsigned_1");
	return *bit || !bits || strncmp(name, "DW_ATE_", 7) ||
	       strspn(bits + 1, "0123456789") != strlen(bits + 1) ||
	       atoi(bits + 1) % 8 == 0;
}

/* The integer type that @op refers to; the generic one if it is none. */
static bool base_type(struct machine *m, const Dwarf_Op *op, uint8_t *bytes,
		      bool *is_signed, bool *bit)
{
	Dwarf_Die die;
	Dwarf_Attribute mem;
	Dwarf_Word encoding;
	*bytes = 8;
	*is_signed = false;
	if (dwarf_getlocation_die(m->attr, op, &die))
		return false;
	int size = dwarf_bytesize(&die);
	if (!dwarf_attr(&die, DW_AT_encoding, &mem) ||
	    dwarf_formudata(&mem, &encoding) ||
	    (size != 1 && size != 2 && size != 4 && size != 8))
		return false;
	if (!whole_bytes(&die, bit))
		return false;
	*bytes = (uint8_t)size;
	*is_signed =
		encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	return *is_signed || encoding == DW_ATE_unsigned ||
	       encoding == DW_ATE_unsigned_char || encoding == DW_ATE_boolean;
}

static void convert(struct machine *m, const Dwarf_Op *op, bool generic)
{
	uint8_t bytes = 8;
	bool is_signed = false, bit = false;
	if (!generic && !base_type(m, op, &bytes, &is_signed, &bit)) {
		give_up(m, VAR_COMPLEX);
		return;
	}
	if (bit) {
		push(m, VAR_OP_CONST, 1);
		binary(m, VAR_OP_AND);
	}
	struct entry *e = top(m);
	e->bytes = bytes;
	e->is_signed = is_signed;
	e->typed = !generic;
	keep_type(m);
}

static void push_register(struct machine *m, Dwarf_Word reg, int64_t offset)
{
	if (reg > 15) {
		give_up(m, reg <= 32 ? VAR_VECTOR : VAR_COMPLEX);
		reg = 0;
	}
	push(m, VAR_OP_REG, (int64_t)reg);
	add_op(m, VAR_OP_PLUS_CONST, offset);
}

static void push_frame(struct machine *m, int64_t offset)
{
	if (!m->base->known) {
		give_up(m, VAR_NO_FRAME);
		return;
	}
	push(m, VAR_OP_REG, m->base->reg);
	add_op(m, VAR_OP_PLUS_CONST, wrap_add(m->base->offset, offset));
}

/* DW_OP_addr, or the entry of a table that stands for it. */
static void push_address(struct machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Addr addr = op->number;
	if (op->atom != DW_OP_addr &&
	    (dwarf_getlocation_attr(m->attr, op, &attr) ||
	     dwarf_formaddr(&attr, &addr)))
		give_up(m, VAR_COMPLEX);
	push(m, VAR_OP_ADDR, (int64_t)addr);
}

static void push_indexed_constant(struct machine *m, const Dwarf_Op *op)
{
	Dwarf_Attribute attr;
	Dwarf_Word value = 0;
	if (dwarf_getlocation_attr(m->attr, op, &attr) ||
	    dwarf_formudata(&attr, &value))
		give_up(m, VAR_COMPLEX);
	push(m, VAR_OP_CONST, (int64_t)value);
}

static void pick(struct machine *m, Dwarf_Word index)
{
	if (index >= m->depth || m->depth >= MAX_STACK) {
		give_up(m, VAR_COMPLEX);
		return;
	}
	m->stack[m->depth] = m->stack[m->depth - 1 - index];
	m->depth++;
}

static void swap(struct machine *m)
{
	if (m->depth < 2) {
		give_up(m, VAR_COMPLEX);
		return;
	}
	struct entry e = m->stack[m->depth - 1];
	m->stack[m->depth - 1] = m->stack[m->depth - 2];
	m->stack[m->depth - 2] = e;
}

static void load(struct machine *m, Dwarf_Word bytes)
{
	if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
		give_up(m, VAR_COMPLEX);
	add_op(m, VAR_OP_LOAD, (int64_t)bytes);
}

static bool step_arithmetic(struct machine *m, const Dwarf_Op *op)
{
	static const struct {
		uint8_t atom, code;
	} binaries[] = {
		{DW_OP_plus, VAR_OP_ADD}, {DW_OP_minus, VAR_OP_SUB},
		{DW_OP_mul, VAR_OP_MUL},  {DW_OP_and, VAR_OP_AND},
		{DW_OP_or, VAR_OP_OR},	  {DW_OP_xor, VAR_OP_XOR},
		{DW_OP_shl, VAR_OP_SHL},  {DW_OP_shr, VAR_OP_SHR},
		{DW_OP_shra, VAR_OP_SAR}, {DW_OP_eq, VAR_OP_EQ},
		{DW_OP_ne, VAR_OP_NE},	  {DW_OP_lt, VAR_OP_LT},
		{DW_OP_le, VAR_OP_LE},	  {DW_OP_gt, VAR_OP_GT},
		{DW_OP_ge, VAR_OP_GE},
	};
	for (size_t i = 0; i < ARRAY_SIZE(binaries); i++) {
		if (op->atom != binaries[i].atom)
			continue;
		binary(m, binaries[i].code);
		return true;
	}
	switch (op->atom) {
	case DW_OP_plus_uconst:
		add_op(m, VAR_OP_PLUS_CONST, (int64_t)op->number);
		keep_type(m);
		return true;
	case DW_OP_neg:
	case DW_OP_not:
		add_op(m, op->atom == DW_OP_neg ? VAR_OP_NEG : VAR_OP_NOT, 0);
		keep_type(m);
		return true;
	default:
		return false;
	}
}

static bool step_stack(struct machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_dup:
		pick(m, 0);
		return true;
	case DW_OP_over:
		pick(m, 1);
		return true;
	case DW_OP_pick:
		pick(m, op->number);
		return true;
	case DW_OP_drop:
		top(m);
		m->depth--;
		return true;
	case DW_OP_swap:
		swap(m);
		return true;
	case DW_OP_nop:
		return true;
	default:
		return false;
	}
}

static bool step_typed(struct machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		push_register(m, op->number, 0);
		convert(m, op, false);
		return true;
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		convert(m, op, op->number == 0);
		return true;
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
		load(m, op->number);
		convert(m, op, false);
		return true;
	default:
		return false;
	}
}

static void step_other(struct machine *m, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		give_up(m, VAR_ENTRY_VALUE);
		break;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		m->thread = true;
		return;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		give_up(m, VAR_IMPLICIT);
		break;
	default:
		give_up(m, VAR_COMPLEX);
		break;
	}
	push(m, VAR_OP_CONST, 0);
}

static void step(struct machine *m, const Dwarf_Op *op)
{
	uint8_t atom = op->atom;
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
		push(m, VAR_OP_CONST, atom - DW_OP_lit0);
		return;
	}
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		push_register(m, atom - DW_OP_breg0, (int64_t)op->number);
		return;
	}
	if (step_arithmetic(m, op) || step_stack(m, op) || step_typed(m, op))
		return;
	switch (atom) {
	case DW_OP_addr:
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		push_address(m, op);
		break;
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		push_indexed_constant(m, op);
		break;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		push(m, VAR_OP_CONST, (int64_t)op->number);
		break;
	case DW_OP_bregx:
		push_register(m, op->number, (int64_t)op->number2);
		break;
	case DW_OP_fbreg:
		push_frame(m, (int64_t)op->number);
		break;
	case DW_OP_call_frame_cfa:
		push(m, VAR_OP_REG, VAR_REG_CFA);
		break;
	case DW_OP_deref:
		load(m, 8);
		break;
	case DW_OP_deref_size:
		load(m, op->number);
		break;
	default:
		step_other(m, op);
		break;
	}
}

/* The value that DW_OP_implicit_value carries along. */
static void implicit_value(struct machine *m, const Dwarf_Op *op,
			   struct var_piece *ret)
{
	Dwarf_Block block;
	int64_t value = 0;
	if (dwarf_getlocation_implicit_value(m->attr, op, &block) ||
	    block.length > 8) {
		give_up(m, VAR_SPLIT);
		return;
	}
	memcpy(&value, block.data, block.length);
	ret->kind = VAR_PIECE_VALUE;
	ret->nr_ops = 1;
	ret->op[0] = (struct var_op){VAR_OP_CONST, value};
}

/* One piece: the operations from @ops on; returns how many they are. */
static size_t read_piece(struct machine *m, const Dwarf_Op *ops, size_t nr,
			 struct var_piece *ret)
{
	size_t i = 0;
	m->depth = m->reason = m->thread = 0;
	*ret = (struct var_piece){.kind = VAR_PIECE_ADDRESS};
	for (; i < nr && ops[i].atom != DW_OP_piece; i++) {
		uint8_t atom = ops[i].atom;
		if ((atom >= DW_OP_reg0 && atom <= DW_OP_reg31) ||
		    atom == DW_OP_regx) {
			Dwarf_Word reg =
				atom == DW_OP_regx
					? ops[i].number
					: (Dwarf_Word)atom - DW_OP_reg0;
			ret->kind = VAR_PIECE_REGISTER;
			ret->reg = (uint8_t)(reg & 15);
			if (reg > 15)
				give_up(m,
					reg <= 32 ? VAR_VECTOR : VAR_COMPLEX);
		} else if (atom == DW_OP_stack_value) {
			ret->kind = VAR_PIECE_VALUE;
		} else if (atom == DW_OP_implicit_value) {
			implicit_value(m, &ops[i], ret);
		} else if (atom == DW_OP_bit_piece) {
			give_up(m, VAR_SPLIT);
		} else {
			step(m, &ops[i]);
		}
	}
	if (i < nr)
		ret->bytes = ops[i++].number;
	if (m->thread && ret->kind == VAR_PIECE_ADDRESS)
		ret->kind = VAR_PIECE_THREAD;
	else if (m->thread)
		give_up(m, VAR_THREAD_LOCAL);
	if (m->depth && ret->kind != VAR_PIECE_REGISTER) {
		struct entry *e = top(m);
		ret->nr_ops = e->nr;
		memcpy(ret->op, e->op, e->nr * sizeof(*e->op));
	}
	if (!m->reason && ret->kind != VAR_PIECE_REGISTER && !ret->nr_ops)
		m->reason = VAR_OPTIMISED_OUT;
	if (m->reason) {
		ret->kind = VAR_PIECE_NONE;
		ret->reason = m->reason;
	}
	return i;
}

size_t var_expr_read(Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t nr,
		     const struct var_frame_base *base,
		     struct var_piece ret[VAR_MAX_PIECES])
{
	struct machine m = {.attr = attr, .base = base};
	size_t pieces = 0, at = 0;
	do { /* no operations at all, perhaps, and then no array */
		const Dwarf_Op *op = ops ? ops + at : NULL;
		at += read_piece(&m, op, nr - at, &ret[pieces++]);
	} while (at < nr && pieces < VAR_MAX_PIECES);
	return pieces;
}

struct var_frame_base var_frame_base_read(Dwarf_Die *die)
{
	struct var_frame_base ret = {0}, none = {0};
	Dwarf_Attribute mem;
	Dwarf_Op *ops;
	size_t nr;
	Dwarf_Addr base, lo, hi;
	/* A list of them is what compilers did before they wrote the CFA. */
	if (!die_expression(dwarf_attr(die, DW_AT_frame_base, &mem)) ||
	    dwarf_getlocations(&mem, 0, &base, &lo, &hi, &ops, &nr) <= 0 ||
	    lo || hi != (Dwarf_Addr)-1)
		return none;
	struct var_piece p[VAR_MAX_PIECES];
	if (var_expr_read(&mem, ops, nr, &none, p) != 1)
		return none;
	if (p->kind == VAR_PIECE_REGISTER) {
		ret.reg = p->reg;
	} else if (p->kind == VAR_PIECE_ADDRESS &&
		   p->op[0].code == VAR_OP_REG &&
		   (p->nr_ops == 1 ||
		    (p->nr_ops == 2 && p->op[1].code == VAR_OP_PLUS_CONST))) {
		ret.reg = (uint8_t)p->op[0].arg;
		ret.offset = p->nr_ops == 2 ? p->op[1].arg : 0;
	} else {
		return none;
	}
	if (ret.reg == 6)
		ret.reg = VAR_REG_FRAME_RBP;
	if (ret.reg == 7)
		ret.reg = VAR_REG_FRAME_RSP;
	ret.known = true;
	return ret;
}
