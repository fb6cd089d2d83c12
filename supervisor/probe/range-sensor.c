/*
 * The sensors of one gap. Free registers hold what is compared; where there
 * are too few, some are saved below the red zone. Flags that are still needed
 * are kept by lahf and seto, which take rax: its value moves to a free register
 * meanwhile, or to the stack.
 */
#include "supervisor/probe/range-sensor.h"
#include "supervisor/probe/range-asm.h"
#include "supervisor/probe/range-hole.h"

#define RED_ZONE 128
#define RAX	 0
#define RCX	 1

/* Conditions of jcc. */
#define BELOW	   0x2
#define AT_LEAST   0x3
#define NOT_EQ	   0x5
#define AT_MOST	   0x6
#define ABOVE	   0x7
#define LESS	   0xc
#define GREATER_EQ 0xd
#define LESS_EQ	   0xe
#define GREATER	   0xf

/* How the gap's registers are used, and given back. */
struct frame {
	uint8_t saved[RANGE_EXPR_DEPTH]; /* pushed, in this order */
	unsigned nr_saved;
	bool flags;	  /* are in ah and al */
	uint8_t rax_in;	  /* rax is kept there; RANGE_NO_REG: see pushed_rax */
	bool pushed_rax;  /* and the flags behind it */
	bool stack_moved; /* by RED_ZONE */
};

static const struct var_type *type_of(const struct range_sensor *x,
				      const struct range_site *s)
{
	return range_cell_type(x->v, s->var);
}

/* The bits of a constant that count, as they are compared. */
static int64_t constant(const struct var_type *t, int64_t value)
{
	unsigned bits = t->bit_size ? t->bit_size : 8 * range_compare_width(t);
	unsigned spare = 64 - bits;
	uint64_t v = (uint64_t)value;
	if (t->bit_size)
		v >>= t->bit_offset;
	v <<= spare;
	if (t->is_signed)
		return (int64_t)v >> spare;
	return (int64_t)(v >> spare);
}

static uint64_t into_hole(const struct range_sensor *x,
			  const struct var_type *t, int64_t value)
{
	return (uint64_t)value - (uint64_t)range_hole_of(x->v, t).first;
}

/* cmp with a constant of 32 bits, which is extended by its sign. */
static bool short_constant(const struct range_sensor *x,
			   const struct range_site *s, int64_t value)
{
	const struct var_type *t = type_of(x, s);
	return range_compare_width(t) < 8 ||
	       (value == (int32_t)value &&
		(!range_has_hole(x->v, s->var) ||
		 into_hole(x, t, value) <= INT32_MAX));
}

static unsigned registers_wanted(const struct range_sensor *x,
				 const struct range_site *s)
{
	const struct var_type *t = type_of(x, s);
	if (s->within.extent)
		return 1;
	switch (s->source) {
	case RS_REG:
		return s->shift || t->bit_size || s->low_bit ||
		       s->reg == RANGE_RSP || range_has_hole(x->v, s->var);
	case RS_CONST:
		return !short_constant(x, s, constant(t, s->offset));
	case RS_EXPR:
		return RANGE_EXPR_DEPTH;
	default:
		return 1;
	}
}

static void choose_scratch(struct range_sensor *x, struct frame *f,
			   unsigned wanted, uint32_t *free_regs, uint32_t used,
			   bool flags)
{
	uint32_t saveable =
		~used & RANGE_ALL_REGS & ~*free_regs & ~(1u << RANGE_RSP);
	if (flags) /* they are in rax */
		saveable &= ~(1u << RAX);
	/* Last those whose encoding is longer, and somebody's frame. */
	static const uint8_t order[] = {1,  2, 6, 7,  3,  8,  9, 10,
					11, 0, 5, 12, 13, 14, 15};
	for (unsigned i = 0; i < wanted; i++) {
		uint32_t from = *free_regs ? *free_regs : saveable;
		for (size_t k = 0; k < sizeof(order); k++) {
			if (!(from >> order[k] & 1))
				continue;
			x->scratch[i] = order[k];
			if (!*free_regs)
				f->saved[f->nr_saved++] = order[k];
			*free_regs &= ~(1u << order[k]);
			saveable &= ~(1u << order[k]);
			break;
		}
	}
}

static void push(struct range_sensor *x, uint8_t reg)
{
	asm_push(&x->s->code, reg);
	x->pushed += 8;
	range_note_step(x->s, x->insn, x->pushed, RANGE_DIRTY);
}

static void keep_flags(struct code_buf *e)
{
	CODE(e, 0x9f, 0x0f, 0x90, 0xc0); /* lahf; seto %al */
}

static void enter(struct range_sensor *x, struct frame *f, uint32_t live,
		  uint32_t used, uint32_t free_regs)
{
	struct code_buf *e = &x->s->code;
	bool rax_busy = (live | used) & 1u << RAX;
	f->rax_in = RANGE_NO_REG;
	f->flags = live & RANGE_FLAGS;
	if (f->flags && rax_busy && free_regs)
		f->rax_in = (uint8_t)__builtin_ctz(free_regs);
	f->pushed_rax = f->flags && rax_busy && !free_regs;
	f->stack_moved = f->nr_saved || f->pushed_rax;
	if (f->stack_moved) {
		asm_move_stack(e, -RED_ZONE);
		x->pushed = RED_ZONE;
		range_note_step(x->s, x->insn, x->pushed, RANGE_DIRTY);
	}
	for (unsigned i = 0; i < f->nr_saved; i++)
		push(x, f->saved[i]);
	if (!f->flags)
		return;
	if (f->pushed_rax) {
		x->shape->saved++;
		push(x, RAX);
		keep_flags(e);
		push(x, RAX);
		asm_load(e, 8, RAX, RANGE_RSP, 8);
		return;
	}
	if (f->rax_in != RANGE_NO_REG) {
		asm_reg(e, 8, OP_MOV_R_RM, f->rax_in, RAX);
		x->alias[RAX] = f->rax_in;
	}
	keep_flags(e);
}

static void pop(struct range_sensor *x, uint8_t reg)
{
	asm_pop(&x->s->code, reg);
	x->pushed -= 8;
	range_note_step(x->s, x->insn, x->pushed, RANGE_DIRTY);
}

static void leave(struct range_sensor *x, const struct frame *f)
{
	struct code_buf *e = &x->s->code;
	if (f->pushed_rax)
		pop(x, RAX);
	if (f->flags)
		CODE(e, 0x04, 0x7f, 0x9e); /* add $127, %al; sahf */
	if (f->pushed_rax)
		pop(x, RAX);
	if (f->rax_in != RANGE_NO_REG)
		asm_reg(e, 8, OP_MOV_R_RM, RAX, f->rax_in);
	for (unsigned i = f->nr_saved; i-- > 0;)
		pop(x, f->saved[i]);
	if (f->stack_moved) {
		asm_move_stack(e, RED_ZONE);
		x->pushed = 0;
		range_note_step(x->s, x->insn, 0, RANGE_DIRTY);
	}
}

static void only_bits(struct code_buf *e, uint8_t reg, unsigned width,
		      unsigned offset, unsigned size, bool is_signed)
{
	asm_shift(e, width, SHIFT_LEFT, reg, 8 * width - offset - size);
	asm_shift(e, width, is_signed ? SHIFT_RIGHT_SIGN : SHIFT_RIGHT, reg,
		  8 * width - size);
}

/* The value of @s, with nothing but what counts in as many bytes as are
 * compared; the register it is in. */
static uint8_t fetch(struct range_sensor *x, const struct range_site *s)
{
	struct code_buf *e = &x->s->code;
	const struct var_type *t = type_of(x, s);
	const struct var_place *p = &x->v->places[s->place];
	uint8_t to = x->scratch[0];
	int64_t off = s->offset;
	unsigned width = range_compare_width(t);

	if (s->source == RS_FRAME || s->source == RS_SUM ||
	    s->source == RS_ELEMENT) {
		off += s->reg == RANGE_RSP ? x->pushed : 0;
		if (off != (int32_t)off)
			e->failed = true;
	}
	switch (s->source) {
	case RS_REG:
		if (!s->shift && !t->bit_size && !s->low_bit &&
		    s->reg != RANGE_RSP)
			return x->alias[s->reg];
		if (s->reg == RANGE_RSP)
			asm_mem(e, 8, OP_LEA, to, RANGE_RSP,
				(int32_t)x->pushed);
		else
			asm_reg(e, 8, OP_MOV_R_RM, to, x->alias[s->reg]);
		if (s->shift)
			asm_shift(e, 8, SHIFT_RIGHT, to, s->shift);
		break;
	case RS_FRAME:
		asm_load(e, t->width, to,
			 s->reg == RANGE_RSP ? RANGE_RSP : x->alias[s->reg],
			 (int32_t)off);
		break;
	case RS_ELEMENT: /* which one, leave_out() has put there */
		asm_sum(e, to,
			s->reg == RANGE_RSP ? RANGE_RSP : x->alias[s->reg], to,
			s->within.base == RANGE_NO_REG ? 1 : s->within.step,
			(int32_t)off);
		asm_load(e, t->width, to, to, 0);
		break;
	case RS_DATA:
		asm_rip(e, t->width == 8 ? 8 : 4,
			t->width == 1	? OP_MOVZX_BYTE
			: t->width == 2 ? OP_MOVZX_WORD
					: OP_MOV_R_RM,
			to, (uint64_t)off + x->at->bias, 0);
		break;
	case RS_TLS:
		if (off != (int32_t)off)
			e->failed = true;
		asm_fs(e, t->width, to, (int32_t)off);
		break;
	case RS_SUM:
		asm_mem(e, 8, OP_LEA, to,
			s->reg == RANGE_RSP ? RANGE_RSP : x->alias[s->reg],
			(int32_t)off);
		break;
	case RS_CONST:
		asm_const(e, to, constant(t, off));
		return to;
	default:
		range_expression(x, x->v->ops + p->first_op, p->nr_ops);
		if (off)
			asm_mem(e, 8, OP_LEA, to, to, (int32_t)off);
		break;
	}
	if (t->bit_size)
		only_bits(e, to, width, t->bit_offset, t->bit_size,
			  t->is_signed);
	else if (s->low_bit)
		only_bits(e, to, 4, 0, 1, false);
	return to;
}

static void to_slow(struct range_sensor *x, uint8_t condition,
		    struct range_slow slow)
{
	slow.branch = asm_branch(&x->s->code, condition);
	slow.back = x->s->code.base + x->s->code.len;
	slow.insn = x->insn;
	slow.pushed = (uint16_t)x->pushed;
	slow.clean = x->clean;
	x->slow[x->nr_slow++] = slow;
}

static void compare_constant(struct code_buf *e, unsigned width, taddr_t word,
			     int64_t value)
{
	/* cmp $value, word */
	if (width == 1) {
		asm_rip(e, 4, 0x80, 7, word, 1);
		CODE(e, (uint8_t)value);
	} else if (width == 2) {
		asm_rip(e, 2, 0x81, 7, word, 2);
		CODE(e, (uint8_t)value, (uint8_t)((uint64_t)value >> 8));
	} else {
		asm_rip(e, width, 0x81, 7, word, 4);
		code_put32(e, (uint32_t)value);
	}
}

/* Which element it is, to scratch[0]; a lot where it is between two. Returns
 * how many there are. */
static uint32_t by_pointer(struct range_sensor *x, const struct range_within *w)
{
	struct code_buf *e = &x->s->code;
	uint8_t at = x->scratch[0];
	bool is_sp = w->frame == RANGE_RSP;
	unsigned log2 = (unsigned)__builtin_ctz(w->step);
	asm_sum(e, at, x->alias[w->base],
		w->scale ? x->alias[w->index] : RANGE_NO_REG, w->scale,
		w->delta - (is_sp ? (int32_t)x->pushed : 0));
	asm_reg(e, 8, OP_SUB_R_RM, at, is_sp ? RANGE_RSP : x->alias[w->frame]);
	if (log2)
		asm_shift(e, 8, ROTATE_RIGHT, at, log2);
	return w->extent >> log2;
}

/* Past the sensor, if the element is not in its array: where that branches. */
static size_t leave_out(struct range_sensor *x, const struct range_within *w)
{
	struct code_buf *e = &x->s->code;
	uint8_t at = x->scratch[0];
	uint32_t extent = w->extent;
	if (w->base == RANGE_NO_REG) {
		asm_scaled(e, at, x->alias[w->index], w->scale, w->delta);
	} else {
		extent = by_pointer(x, w);
	}
	asm_cmp_const(e, 8, at, (int32_t)extent);
	return asm_branch(e, AT_LEAST);
}

/* How far the value in @from is into the hole, to scratch[0], which may be
 * @from. */
static void subtract_first(struct range_sensor *x, const struct range_slow *s,
			   int64_t first, uint8_t from)
{
	struct code_buf *e = &x->s->code;
	uint64_t by = 0 - (uint64_t)first;
	if (s->width < 8 || (int64_t)by == (int32_t)by) {
		asm_mem(e, 8, OP_LEA, x->scratch[0], from, (int32_t)by);
		return;
	}
	if (from != x->scratch[0])
		asm_reg(e, 8, OP_MOV_R_RM, x->scratch[0], from);
	asm_rip(e, 8, OP_ADD_R_RM, x->scratch[0],
		s->word + offsetof(struct range_cell, largest), 0);
}

/* How far the value is into the hole, if it was never less: in @slow.reg or a
 * constant. Not wanted in scratch[0] any more. */
static void hole_sensor(struct range_sensor *x, const struct var_type *t,
			struct range_slow slow)
{
	struct code_buf *e = &x->s->code;
	struct range_hole hole = range_hole_of(x->v, t);
	struct range_hole_part part[RANGE_HOLE_PARTS];
	uint64_t in = (uint64_t)slow.value - (uint64_t)hole.first;
	if (!hole.nr || (slow.is_const && !range_hole_has(x->v, t, in)))
		return;
	slow.is_signed = slow.is_largest = false;
	if (slow.is_const) {
		slow.value = (int64_t)in;
		compare_constant(e, slow.width, slow.word, slow.value);
		to_slow(x, ABOVE, slow);
		return;
	}
	slow.has_names = range_hole_parts(x->v, t, part) > 1 ||
			 part[0].kind != RANGE_UNNAMED;
	subtract_first(x, &slow, hole.first, slow.reg);
	slow.reg = x->scratch[0];
	asm_rip(e, slow.width, OP_CMP_R_RM, slow.reg, slow.word, 0);
	to_slow(x, BELOW, slow);
}

static void one_sensor(struct range_sensor *x, const struct range_site *s)
{
	struct code_buf *e = &x->s->code;
	const struct var_type *t = type_of(x, s);
	taddr_t word = x->at->cells +
		       x->at->cell_of[s->var] * sizeof(struct range_cell);
	struct range_slow slow = {.width = (uint8_t)range_compare_width(t),
				  .is_signed = t->is_signed,
				  .var = s->var,
				  .word = word};
	slow.value = s->source == RS_CONST ? constant(t, s->offset) : 0;
	slow.is_const =
		s->source == RS_CONST && short_constant(x, s, slow.value);
	size_t past = s->within.extent ? leave_out(x, &s->within) : 0;
	if (!slow.is_const)
		slow.reg = fetch(x, s);
	for (int largest = 0; largest < 2; largest++) {
		slow.is_largest = largest;
		/* With a constant the cell is on the left. */
		bool less = largest == slow.is_const;
		if (slow.is_const)
			compare_constant(e, slow.width, word, slow.value);
		else
			asm_rip(e, slow.width, OP_CMP_R_RM, slow.reg, word, 0);
		to_slow(x,
			t->is_signed ? (less ? LESS : GREATER)
				     : (less ? BELOW : ABOVE),
			slow);
		word += sizeof(uint64_t);
		slow.word = word;
	}
	hole_sensor(x, t, slow);
	if (past)
		asm_land(e, past);
}

static void note_value(const struct range_sensor *x, const struct range_site *s)
{
	struct range_shape *to = x->shape;
	to->regs += range_hole_price(x->v, s->var);
	to->regs += s->within.extent != 0; /* the subscript */
	if (s->source == RS_EXPR)
		to->exprs++;
	else if (s->source == RS_FRAME || s->source == RS_DATA ||
		 s->source == RS_TLS || s->source == RS_ELEMENT)
		to->memory++;
	else
		to->regs++;
}

void range_sensors(struct range_sensor *x, uint32_t gap,
		   const struct range_site *site, size_t n)
{
	uint32_t live = x->code->insns[gap].live, used = 0;
	struct frame f = {.nr_saved = 0};
	unsigned wanted = 0;

	x->insn = gap;
	x->pushed = 0;
	for (unsigned i = 0; i < 16; i++)
		x->alias[i] = (uint8_t)i;
	for (unsigned i = 0; i < RANGE_EXPR_DEPTH; i++)
		x->scratch[i] = RANGE_NO_REG;
	for (size_t i = 0; i < n; i++) {
		unsigned w = registers_wanted(x, &site[i]);
		note_value(x, &site[i]);
		wanted = w > wanted ? w : wanted;
		used |= range_site_regs(&site[i], x->v);
	}
	uint32_t free_regs =
		~live & ~used & RANGE_ALL_REGS & ~(1u << RANGE_RSP);
	bool flags = live & RANGE_FLAGS;
	if (flags)
		free_regs &= ~(1u << RAX);
	choose_scratch(x, &f, wanted, &free_regs, used, flags);
	x->shape->flags += flags;
	x->shape->saved += f.nr_saved;
	x->clean = !flags && !f.nr_saved;
	if (x->clean)
		range_note_step(x->s, gap, 0, RANGE_CLEAN);
	else
		range_note_step(x->s, gap, 0, RANGE_DIRTY);
	enter(x, &f, live, used, free_regs);
	if (x->counter) {
		asm_rip(&x->s->code, 8, 0xff, 0, x->counter, 0); /* inc */
		x->counter = 0;
	}
	for (size_t i = 0; i < n; i++)
		one_sensor(x, &site[i]);
	leave(x, &f);
}

/*
 * Two registers are saved, the value compared again with what is there now and
 * put in its place if nobody else was faster.
 */
static void slow_path(struct range_sensor *x, const struct range_slow *s)
{
	struct code_buf *e = &x->s->code;
	unsigned below = s->pushed ? 0 : RED_ZONE;
	uint8_t enough = s->is_signed ? (s->is_largest ? LESS_EQ : GREATER_EQ)
				      : (s->is_largest ? AT_MOST : AT_LEAST);

	x->insn = s->insn;
	x->pushed = s->pushed;
	if (!s->has_names)
		asm_land(e, s->branch);
	taddr_t start = e->base + e->len;
	range_note_step(x->s, x->insn, x->pushed,
			s->clean ? RANGE_CLEAN : RANGE_DIRTY);
	if (below) {
		asm_move_stack(e, -RED_ZONE);
		x->pushed += below;
		range_note_step(x->s, x->insn, x->pushed, RANGE_DIRTY);
	}
	push(x, RAX);
	push(x, RCX);
	if (s->is_const)
		asm_const(e, RCX, s->value);
	else if (s->reg != RCX)
		asm_reg(e, 8, OP_MOV_R_RM, RCX, s->reg);
	asm_rip(e, s->width, OP_MOV_R_RM, RAX, s->word, 0);
	size_t again = e->len;
	asm_reg(e, s->width, OP_CMP_R_RM, RCX, RAX);
	size_t done = asm_branch(e, enough);
	CODE(e, 0xf0); /* lock */
	asm_rip(e, s->width, OP_CMPXCHG, RCX, s->word, 0);
	size_t retry = asm_branch(e, NOT_EQ);
	size_t here = e->len;
	e->len = again;
	asm_land(e, retry);
	e->len = here;
	asm_land(e, done);
	pop(x, RCX);
	pop(x, RAX);
	if (below) {
		asm_move_stack(e, RED_ZONE);
		x->pushed -= below;
		range_note_step(x->s, x->insn, x->pushed, RANGE_DIRTY);
	}
	code_jump(e, s->back);
	if (s->has_names)
		range_named(x, s, start);
}

void range_slow_paths(struct range_sensor *x)
{
	for (size_t i = 0; i < x->nr_slow; i++)
		slow_path(x, &x->slow[i]);
	x->nr_slow = 0;
}
