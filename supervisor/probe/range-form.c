/*
 * What registers hold, see range-form.h: abstract interpretation, block by
 * block until nothing changes. A register goes from not seen to a form to
 * unknown, so it ends.
 */
#include "supervisor/probe/range-form.h"

#include <stdlib.h>
#include <string.h>

/* A function of more blocks is generated, or not worth the memory. */
#define MAX_BLOCKS 20000
/* Caller-saved: rax rcx rdx rsi rdi r8-r11. */
#define CALL_CLOBBERS 0x0fc7u

static const struct range_form unknown = {.var = RANGE_FORM_NO_VAR,
					  .from = UINT32_MAX};

static struct range_form number(int64_t n)
{
	return (struct range_form){.known = true,
				   .bits = 64,
				   .var = RANGE_FORM_NO_VAR,
				   .plus = n,
				   .from = UINT32_MAX};
}

static struct range_form of_variable(uint32_t var, unsigned bits, int64_t plus)
{
	struct range_form f = number(plus);
	f.var = var;
	f.times = 1;
	f.bits = (uint8_t)bits;
	return f;
}

static struct range_form frame(uint8_t reg)
{
	struct range_form f = number(0);
	f.base = RANGE_FORM_FRAME;
	f.reg = reg;
	return f;
}

/* Where a program is at a fixed address, one that lies in it is one. */
static struct range_form constant(const struct range_forms *f, int64_t n)
{
	struct range_form c = number(n);
	if (!f->img->nr_segments || !f->img->segment[0].vaddr ||
	    (uint64_t)n < f->img->segment[0].vaddr)
		return c;
	c.base = RANGE_FORM_DATA;
	c.at = n;
	c.plus = 0;
	return c;
}

static struct range_form add_number(struct range_form f, int64_t n)
{
	bool places = f.base == RANGE_FORM_FRAME && !f.placed;
	if (!f.known)
		return unknown;
	if (__builtin_add_overflow(places ? f.at : f.plus, n,
				   places ? &f.at : &f.plus))
		return unknown;
	f.placed |= places;
	return f;
}

static struct range_form multiply(struct range_form f, int64_t n)
{
	if (!f.known || f.base != RANGE_FORM_NUMBER ||
	    __builtin_mul_overflow(f.times, n, &f.times) ||
	    __builtin_mul_overflow(f.plus, n, &f.plus))
		return unknown;
	return f;
}

/* Register @reg, which held @part before instruction @i, is what @f has of a
 * variable. */
static void note_from(struct range_form *f, const struct range_form *part,
		      uint8_t reg, uint32_t i)
{
	f->from = i;
	f->from_reg = reg;
	f->from_times = part->times;
	f->from_plus = part->plus;
}

static struct range_form add(struct range_form a, struct range_form b)
{
	if (!a.known || !b.known ||
	    (a.base != RANGE_FORM_NUMBER && b.base != RANGE_FORM_NUMBER))
		return unknown;
	if (a.base == RANGE_FORM_NUMBER) {
		struct range_form t = a;
		a = b;
		b = t;
	}
	bool both = a.var != RANGE_FORM_NO_VAR && b.var != RANGE_FORM_NO_VAR;
	if (both && (a.var != b.var || a.base != RANGE_FORM_NUMBER))
		return unknown;
	if (__builtin_add_overflow(a.times, b.times, &a.times) ||
	    __builtin_add_overflow(a.plus, b.plus, &a.plus))
		return unknown;
	if (a.var == RANGE_FORM_NO_VAR) {
		a.var = b.var;
		a.bits = b.bits;
	} else if (both && b.bits < a.bits) {
		a.bits = b.bits;
	}
	return a;
}

/* What register @reg holds before instruction @i. */
static struct range_form value_of(const struct range_forms *f, uint8_t reg,
				  uint32_t i)
{
	const struct range_form *have = &f->reg[reg];
	int64_t plus = 0;
	if (reg == RANGE_RSP)
		return frame(RANGE_RSP);
	if (have->known && have->base != RANGE_FORM_NUMBER)
		return *have;
	uint32_t var =
		range_home_reg(f->homes, reg, f->code->insns[i].addr, &plus);
	if (var != RANGE_FORM_NO_VAR && plus != INT64_MIN)
		return of_variable(var, 8u * f->v->vars[var].type.width, -plus);
	if (!have->known && reg == RANGE_RBP)
		return frame(RANGE_RBP);
	return *have;
}

static int general(ZydisRegister r)
{
	r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	if (r < ZYDIS_REGISTER_RAX || r > ZYDIS_REGISTER_R15)
		return -1;
	return (int)(r - ZYDIS_REGISTER_RAX);
}

/* The base of an operand that has no register for it. */
static struct range_form fixed_address(const struct range_forms *f,
				       const struct code_insn *in,
				       const ZydisDecodedOperandMem *m)
{
	int64_t disp = m->disp.has_displacement ? m->disp.value : 0;
	struct range_form a = number(0);
	if (m->base == ZYDIS_REGISTER_RIP)
		disp = (int64_t)((uint64_t)disp + in->addr + in->z.length);
	else if (in->z.mnemonic == ZYDIS_MNEMONIC_LEA)
		return constant(f, disp);
	a.base = RANGE_FORM_DATA;
	a.at = disp;
	return a;
}

struct range_form range_form_address(const struct range_forms *f, uint32_t i,
				     const struct code_insn *in,
				     const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	int base = general(m->base), index = general(m->index);
	struct range_form a, part = unknown;
	if (m->segment == ZYDIS_REGISTER_FS ||
	    m->segment == ZYDIS_REGISTER_GS ||
	    (m->index != ZYDIS_REGISTER_NONE && index < 0) ||
	    in->z.address_width != 64)
		return unknown;
	a = base >= 0 ? value_of(f, (uint8_t)base, i) : fixed_address(f, in, m);
	uint8_t part_reg = (uint8_t)base;
	bool inside = a.known && a.base != RANGE_FORM_NUMBER &&
		      a.var != RANGE_FORM_NO_VAR;
	if (a.known && a.base == RANGE_FORM_NUMBER)
		part = a;
	if (index >= 0) {
		struct range_form x = value_of(f, (uint8_t)index, i);
		if (x.known && x.base == RANGE_FORM_NUMBER &&
		    x.var != RANGE_FORM_NO_VAR) {
			part_reg = (uint8_t)index;
			part = x;
		}
		inside |= x.known && x.base != RANGE_FORM_NUMBER &&
			  x.var != RANGE_FORM_NO_VAR;
		x = m->scale > 1 ? multiply(x, m->scale) : x;
		a = add(a, x);
	}
	if (base >= 0 && m->disp.has_displacement)
		a = a.base == RANGE_FORM_NUMBER
			    ? add(a, constant(f, m->disp.value))
			    : add_number(a, m->disp.value);
	if (a.known && a.base != RANGE_FORM_NUMBER && !inside &&
	    a.var != RANGE_FORM_NO_VAR)
		note_from(&a, &part, part_reg, i);
	return a;
}

/* --- what an instruction makes of it --- */

/* The lowest @bits of it, extended, are still the variable. */
static struct range_form extended(struct range_form f, unsigned bits)
{
	if (!f.known || f.base != RANGE_FORM_NUMBER ||
	    f.var == RANGE_FORM_NO_VAR || f.bits > bits)
		return unknown;
	/* A sum of 8 or 16 bits may not fit them. */
	if (bits < 32 && (f.plus || f.times != 1))
		return unknown;
	return f;
}

/* A sum of 32 bits: it is what it would be in 64, but for what is cut off. */
static struct range_form cut(struct range_form f, unsigned bits)
{
	if (bits == 64)
		return f;
	if (bits != 32 || f.base != RANGE_FORM_NUMBER || f.times != 1)
		return unknown;
	return f;
}

static struct range_form load(const struct range_forms *f, uint32_t i,
			      const struct code_insn *in,
			      const ZydisDecodedOperand *op)
{
	struct range_form a = range_form_address(f, i, in, op);
	unsigned bytes = op->size / 8;
	uint64_t pc = f->code->insns[i].addr;
	uint32_t var = RANGE_FORM_NO_VAR;
	if (!a.known || a.var != RANGE_FORM_NO_VAR || a.plus)
		return unknown;
	if (a.base == RANGE_FORM_DATA)
		var = range_home_data(f->homes, (uint64_t)a.at, bytes, pc);
	else if (a.base == RANGE_FORM_FRAME)
		var = range_home_frame(f->homes, a.reg, a.at, bytes, pc);
	return var == RANGE_FORM_NO_VAR ? unknown
					: of_variable(var, 8 * bytes, 0);
}

static struct range_form moved(const struct range_forms *f, uint32_t i,
			       const struct code_insn *in)
{
	const ZydisDecodedOperand *from = &in->op[1];
	bool plain = in->z.mnemonic == ZYDIS_MNEMONIC_MOV;
	switch (from->type) {
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		return plain ? constant(f, from->imm.value.s) : unknown;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return load(f, i, in, from);
	case ZYDIS_OPERAND_TYPE_REGISTER: {
		int g = general(from->reg.value);
		if (g < 0 || (from->reg.value >= ZYDIS_REGISTER_AH &&
			      from->reg.value <= ZYDIS_REGISTER_BH))
			return unknown;
		struct range_form x = value_of(f, (uint8_t)g, i);
		return plain && from->size == 64 ? x : extended(x, from->size);
	}
	default:
		return unknown;
	}
}

/* add and sub; @in's first operand is register @to. */
static struct range_form summed(const struct range_forms *f, uint32_t i,
				const struct code_insn *in, uint8_t to)
{
	const ZydisDecodedOperand *by = &in->op[1];
	struct range_form x = value_of(f, to, i), y, sum;
	bool imm = by->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	int g = by->type == ZYDIS_OPERAND_TYPE_REGISTER ? general(by->reg.value)
							: -1;
	if (in->z.mnemonic == ZYDIS_MNEMONIC_SUB)
		return imm && by->imm.value.s != INT64_MIN
			       ? add_number(x, -by->imm.value.s)
			       : unknown;
	if (imm && x.base != RANGE_FORM_NUMBER)
		return add_number(x, by->imm.value.s);
	if (!imm && g < 0)
		return unknown;
	y = imm ? constant(f, by->imm.value.s) : value_of(f, (uint8_t)g, i);
	sum = add(x, y);
	if (!sum.known || sum.base == RANGE_FORM_NUMBER ||
	    sum.var == RANGE_FORM_NO_VAR)
		return sum;
	if (x.base == RANGE_FORM_NUMBER && x.var != RANGE_FORM_NO_VAR)
		note_from(&sum, &x, to, i);
	else if (y.base == RANGE_FORM_NUMBER && y.var != RANGE_FORM_NO_VAR)
		note_from(&sum, &y, (uint8_t)g, i);
	return sum;
}

static struct range_form multiplied(const struct range_forms *f, uint32_t i,
				    const struct code_insn *in, uint8_t to)
{
	const ZydisDecodedOperand *op = in->op;
	if (op[0].size != 64)
		return unknown;
	if (in->z.mnemonic == ZYDIS_MNEMONIC_SHL)
		return op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
				       op[1].imm.value.u < 32
			       ? multiply(value_of(f, to, i),
					  INT64_C(1) << op[1].imm.value.u)
			       : unknown;
	int g = op[1].type == ZYDIS_OPERAND_TYPE_REGISTER
			? general(op[1].reg.value)
			: -1;
	if (g < 0 || in->z.operand_count_visible != 3 ||
	    op[2].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return unknown;
	return multiply(value_of(f, (uint8_t)g, i), op[2].imm.value.s);
}

/* What @in leaves in its first operand, register @to. */
static struct range_form result(const struct range_forms *f, uint32_t i,
				const struct code_insn *in, uint8_t to)
{
	unsigned bits = in->op[0].size;
	switch (in->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		return bits >= 32 ? moved(f, i, in) : unknown;
	case ZYDIS_MNEMONIC_CDQE:
		return extended(value_of(f, to, i), 32);
	case ZYDIS_MNEMONIC_LEA:
		return cut(range_form_address(f, i, in, &in->op[1]), bits);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		return cut(summed(f, i, in, to), bits);
	case ZYDIS_MNEMONIC_INC:
		return cut(add_number(value_of(f, to, i), 1), bits);
	case ZYDIS_MNEMONIC_DEC:
		return cut(add_number(value_of(f, to, i), -1), bits);
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_IMUL:
		return multiplied(f, i, in, to);
	default:
		return unknown;
	}
}

/* @in is decoded only if the instruction computes something. */
static void step(struct range_forms *f, uint32_t i, const struct code_insn *in)
{
	const struct range_insn *at = &f->code->insns[i];
	uint32_t wrote = at->wrote;
	bool call = at->kind == RK_CALL || at->kind == RK_CALL_TO;
	int to = at->bits & RB_COMPUTES ? general(in->op[0].reg.value) : -1;
	struct range_form x = unknown;
	if (call) /* the stack pointer is what it was */
		wrote = (wrote | CALL_CLOBBERS) & ~(1u << RANGE_RSP);
	/* rbp is the frame as what the variables' places call it. */
	if (to >= 0 && to != RANGE_RBP && to != RANGE_RSP && wrote >> to & 1)
		x = result(f, i, in, (uint8_t)to);
	for (uint8_t r = 0; r < 16; r++) {
		struct range_form *have = &f->reg[r];
		bool moved_away = have->base == RANGE_FORM_FRAME &&
				  wrote >> have->reg & 1;
		if (wrote >> r & 1 || (have->known && moved_away))
			*have = unknown;
	}
	if (x.known && !(x.base == RANGE_FORM_FRAME && wrote >> x.reg & 1))
		f->reg[to] = x;
}

/* --- blocks --- */

static bool same(const struct range_form *a, const struct range_form *b)
{
	return a->known == b->known && a->base == b->base && a->reg == b->reg &&
	       a->placed == b->placed && a->bits == b->bits &&
	       a->var == b->var && a->times == b->times && a->at == b->at &&
	       a->plus == b->plus;
}

/* Control comes to block @b with what registers hold now; true: that is news
 * there. */
static bool arrive(struct range_forms *f, uint32_t b)
{
	bool news = !f->seen[b];
	f->seen[b] = true;
	for (unsigned r = 0; r < 16; r++) {
		struct range_form *there = &f->block[b][r];
		if (news)
			*there = f->reg[r];
		else if (there->known && !same(there, &f->reg[r])) {
			*there = unknown;
			news = true;
		}
		/* What another way computed is none of this one's. */
		there->from = UINT32_MAX;
	}
	f->fresh[b] |= news;
	return news;
}

static bool decode(const struct range_forms *f, uint32_t i,
		   struct code_insn *ret)
{
	const struct range_insn *in = &f->code->insns[i];
	return code_decode(f->img->text + (in->addr - f->img->lo), in->len,
			   in->addr, ret);
}

static bool arrive_at(struct range_forms *f, uint64_t addr)
{
	size_t i = range_code_find(f->code, addr);
	if (i == f->code->nr || f->code->insns[i].addr != addr ||
	    f->block_of[i] == UINT32_MAX)
		return false;
	return arrive(f, f->block_of[i]);
}

/* Does it access memory at more than a fixed place, in the data or above the
 * stack pointer? */
static bool is_indexed(const struct range_insn *in)
{
	return in->mem_size && !(in->bits & RB_LEA) &&
	       (in->index != RANGE_NO_REG ||
		(in->base != RANGE_RIP && in->base != RANGE_RSP));
}

/* Once through all blocks that were come to; without @see those that something
 * is new of. True: something else is. */
static bool round_of(struct range_forms *f, range_forms_see *see, void *ctx)
{
	bool live = false, news = false;
	struct code_insn in;
	for (uint32_t i = 0; i < f->code->nr; i++) {
		const struct range_insn *at = &f->code->insns[i];
		uint32_t b = f->block_of[i];
		if (b != UINT32_MAX) {
			if (live)
				news |= arrive(f, b);
			live = see ? f->seen[b] : f->fresh[b];
			f->fresh[b] = false;
			memcpy(f->reg, f->block[b], sizeof(f->reg));
		}
		if (!live)
			continue;
		/* Most need not be looked at. */
		bool operand = see && is_indexed(at);
		bool writes = at->wrote || at->kind == RK_CALL ||
			      at->kind == RK_CALL_TO;
		bool computes = at->wrote && at->bits & RB_COMPUTES;
		if ((computes || operand) && !decode(f, i, &in)) {
			live = false;
			continue;
		}
		if (operand)
			see(ctx, f, i, &in);
		if (writes)
			step(f, i, &in);
		if (at->target && at->kind != RK_CALL)
			news |= arrive_at(f, at->target);
		live = range_falls(f->code, i);
	}
	return news;
}

/* Others may come there with anything: entries, tables, landing pads, what is
 * named. A leader behind a call may be one for that alone. */
static bool comes_from_anywhere(const struct range_forms *f, uint32_t i)
{
	const struct range_code *code = f->code;
	const struct range_insn *in = &code->insns[i];
	bool behind_call = i && range_falls(code, i - 1) &&
			   (code->insns[i - 1].kind == RK_CALL ||
			    code->insns[i - 1].kind == RK_CALL_TO);
	if (!i || in->bits & (RB_TABLE | RB_ENDBR) ||
	    (code->free_jumps && in->bits & RB_LEADER))
		return true;
	size_t k = range_edges_first(&f->edges, in->addr);
	if (k < f->edges.nr && f->edges.edge[k].to == in->addr)
		return false;
	return in->bits & RB_LEADER ? !behind_call : !range_falls(code, i - 1);
}

static bool begins_block(const struct range_code *code, uint32_t i)
{
	return !i || code->insns[i].bits & RB_LEADER ||
	       !range_falls(code, i - 1);
}

bool range_forms_init(struct range_forms *f, const struct range_code *code,
		      const struct range_image *img, const struct variables *v,
		      const struct range_index *ix,
		      const struct range_index_entry *all, size_t nr)
{
	*f = (struct range_forms){
		.code = code, .img = img, .v = v, .ix = ix, .all = all};
	f->nr_all = nr;
	for (uint32_t i = 0; i < code->nr; i++)
		f->nr_blocks += begins_block(code, i);
	if (f->nr_blocks > MAX_BLOCKS)
		return false;
	f->homes = range_homes_create(v, ix, all, nr);
	f->block_of = malloc((code->nr + 1) * sizeof(*f->block_of));
	f->block = calloc(f->nr_blocks + 1, sizeof(*f->block));
	f->seen = calloc(f->nr_blocks + 1, sizeof(*f->seen));
	f->fresh = calloc(f->nr_blocks + 1, sizeof(*f->fresh));
	if (!f->homes || !f->block_of || !f->block || !f->seen || !f->fresh ||
	    !range_edges_init(&f->edges, code))
		return false;
	uint32_t b = 0;
	for (uint32_t i = 0; i < code->nr; i++) {
		f->block_of[i] = UINT32_MAX;
		if (!begins_block(code, i))
			continue;
		f->block_of[i] = b;
		f->seen[b] = comes_from_anywhere(f, i);
		f->fresh[b] = f->seen[b];
		for (unsigned r = 0; r < 16; r++)
			f->block[b][r] = unknown;
		b++;
	}
	return true;
}

void range_forms_walk(struct range_forms *f, range_forms_see *see, void *ctx)
{
	while (round_of(f, NULL, NULL))
		;
	round_of(f, see, ctx);
}

void range_forms_deinit(struct range_forms *f)
{
	range_homes_destroy(f->homes);
	range_edges_deinit(&f->edges);
	free(f->block_of);
	free(f->block);
	free(f->seen);
	free(f->fresh);
	*f = (struct range_forms){.nr_blocks = 0};
}
