/*
 * Range sensors run in this process: code is made up, planted, and run with
 * every register and flag known. What the function still needs is as it was,
 * the red zone too, and the cells hold exactly the smallest and the largest
 * value, for each width, sign, place, and whatever is free or not; of an enum
 * also the smallest that lies between its names and is none.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "supervisor/probe/range-hole.h"
#include "supervisor/probe/range-stub.h"
#include "t/unit/tap.h"

struct state {
	uint64_t reg[16]; /* in the processor's order; rsp is the host's */
	uint64_t flags;
};
struct state in, out;
uint64_t host_sp, code_sp;
void *code_at;

/* Loads everything from in, runs the code, stores everything to out. */
__asm__(".text\n"
	".globl range_run\n"
	"range_run:\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"mov %rsp, host_sp(%rip)\n"
	"push in+128(%rip); popfq\n"
	"mov code_sp(%rip), %rsp\n"
	"mov in+8(%rip), %rcx; mov in+16(%rip), %rdx; mov in+24(%rip), %rbx\n"
	"mov in+40(%rip), %rbp; mov in+48(%rip), %rsi; mov in+56(%rip), %rdi\n"
	"mov in+64(%rip), %r8; mov in+72(%rip), %r9; mov in+80(%rip), %r10\n"
	"mov in+88(%rip), %r11; mov in+96(%rip), %r12; mov in+104(%rip), %r13\n"
	"mov in+112(%rip), %r14; mov in+120(%rip), %r15; mov in(%rip), %rax\n"
	"jmp *code_at(%rip)\n"
	".globl range_back\n"
	"range_back:\n"
	"mov %rax, out(%rip); mov %rcx, out+8(%rip); mov %rdx, out+16(%rip)\n"
	"mov %rbx, out+24(%rip); mov %rsp, out+32(%rip)\n"
	"mov %rbp, out+40(%rip); mov %rsi, out+48(%rip)\n"
	"mov %rdi, out+56(%rip); mov %r8, out+64(%rip); mov %r9, out+72(%rip)\n"
	"mov %r10, out+80(%rip); mov %r11, out+88(%rip)\n"
	"mov %r12, out+96(%rip); mov %r13, out+104(%rip)\n"
	"mov %r14, out+112(%rip); mov %r15, out+120(%rip)\n"
	"mov host_sp(%rip), %rsp; pushfq; pop out+128(%rip)\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n");
void range_run(void);
void range_back(void);

#define ARENA	 (1 << 20)
#define CODE_OFF 0
#define STUB_OFF 0x10000
#define CELL_OFF 0x80000
#define DATA_OFF 0x90000

static uint8_t *arena;
static unsigned seed = 1;
static uint64_t stack[512];

static unsigned any(unsigned below)
{
	return (unsigned)(rand_r(&seed) >> 4) % below;
}
static uint64_t any64(void)
{
	uint64_t v = 0;
	for (int i = 0; i < 8; i++)
		v = v << 8 | (unsigned)(rand_r(&seed) >> 7 & 0xff);
	return any(3) ? v : (uint64_t)(int64_t)(int8_t)v;
}

#define MAX_VARS 4
#define NAMES	 48 /* of an enum, at most */
struct scene {
	struct variable var[MAX_VARS];
	struct var_place place[MAX_VARS];
	struct var_op op[MAX_VARS * VAR_MAX_OPS];
	struct var_enumerator name[MAX_VARS * NAMES];
	struct variables v;
	struct range_site site[MAX_VARS];
	uint32_t cell_of[MAX_VARS];
	unsigned nr;
	uint32_t live;
	struct range_code code;
	struct range_image img;
	struct range_stubs stubs;
};

/* Two moves of registers to themselves, then back to the harness. */
static bool make_code(struct scene *s)
{
	static const uint8_t moves[] = {0x48, 0x89, 0xff, 0x4d, 0x89, 0xf6};
	struct code_buf e = {.buf = arena, .cap = 64, .base = (taddr_t)arena};
	code_put(&e, moves, sizeof(moves));
	CODE(&e, 0xff, 0x25, 0, 0, 0, 0); /* jmp *0(%rip) */
	uint64_t back = (uint64_t)range_back;
	code_put(&e, &back, sizeof(back));
	s->img = (struct range_image){.nr_segments = 1};
	s->img.segment[0] = (struct range_segment){.vaddr = (taddr_t)arena,
						   .len = 64,
						   .bytes = arena,
						   .exec = true};
	uint64_t start = (taddr_t)arena;
	struct range_chunk chunk = {start, start + 12};
	return range_image_scan(&s->img, &start, 1, NULL) == 0 &&
	       range_code_init(&s->code, &s->img, &chunk, 1, NULL) == 0 &&
	       s->code.nr == 3 && !s->code.refused;
}

/* One window over both moves, all sites between them. */
static bool plant(struct scene *s)
{
	struct range_window window = {.first = 0, .end = 2, .nr_sites = s->nr};
	struct range_windows w = {
		.window = &window, .nr = 1, .site = s->site, .nr_sites = s->nr};
	struct range_stub_place at = {.cells = (taddr_t)arena + CELL_OFF,
				      .counters = (taddr_t)arena + CELL_OFF - 8,
				      .cell_of = s->cell_of};
	for (size_t i = 0; i < s->code.nr; i++)
		s->code.insns[i].live = s->live;
	if (range_stubs_build(&s->stubs, (taddr_t)arena + STUB_OFF, &s->code,
			      &s->img, &s->v, &w, &at, NULL))
		return false;
	memcpy(arena + STUB_OFF, s->stubs.code.buf, s->stubs.code.len);
	struct code_buf e = {.buf = arena, .cap = 5, .base = (taddr_t)arena};
	code_jump(&e, (taddr_t)arena + STUB_OFF + s->stubs.start[0]);
	struct range_cell *cells = (void *)(arena + CELL_OFF);
	memset(cells - 1, 0, sizeof(*cells));
	for (unsigned i = 0; i < s->nr; i++) {
		const struct var_type *t = &s->var[i].type;
		cells[s->cell_of[i]] = range_cell_empty(t);
		cells[s->cell_of[i] + 1] = range_hole_empty(&s->v, t);
	}
	return !e.failed;
}

static uint64_t cut(uint64_t v, const struct var_type *t)
{
	unsigned bits = t->bit_size ? t->bit_size : 8u * t->width;
	v = v >> (t->bit_size ? t->bit_offset : 0) << (64 - bits);
	return t->is_signed ? (uint64_t)((int64_t)v >> (64 - bits))
			    : v >> (64 - bits);
}

static uint64_t program_reg(unsigned reg)
{
	return reg == RANGE_RSP ? code_sp : in.reg[reg];
}

static unsigned dwarf_of(unsigned reg)
{
	for (unsigned d = 0; d < 16; d++)
		if (range_reg_of_dwarf(d) == reg)
			return d;
	return 99;
}

/* "a + constant" beside another. */
static uint64_t compared(const struct var_op *op)
{
	int64_t a =
		(int64_t)(program_reg(range_reg_of_dwarf((unsigned)op[0].arg)) +
			  (uint64_t)op[1].arg);
	int64_t b = op[2].code == VAR_OP_CONST
			    ? op[2].arg
			    : (int64_t)program_reg(
				      range_reg_of_dwarf((unsigned)op[2].arg));
	switch (op[3].code) {
	case VAR_OP_EQ:
		return a == b;
	case VAR_OP_NE:
		return a != b;
	case VAR_OP_LT:
		return a < b;
	case VAR_OP_LE:
		return a <= b;
	case VAR_OP_GT:
		return a > b;
	default:
		return a >= b;
	}
}

/* What the site's value is, from the state before. */
static uint64_t expected(const struct scene *s, unsigned i)
{
	const struct range_site *site = &s->site[i];
	const struct var_type *t = &s->var[i].type;
	uint64_t v = 0;
	switch (site->source) {
	case RS_REG:
		v = program_reg(site->reg) >> site->shift;
		break;
	case RS_SUM:
		v = program_reg(site->reg) + (uint64_t)site->offset;
		break;
	case RS_CONST:
		v = (uint64_t)site->offset;
		break;
	case RS_FRAME:
		memcpy(&v,
		       (void *)(program_reg(site->reg) +
				(uint64_t)site->offset),
		       t->width);
		break;
	case RS_DATA:
		memcpy(&v, (void *)site->offset, t->width);
		break;
	default: { /* ((a - b) * 4 >> 3) ^ a, 32 bits of it; or compared */
		const struct var_op *op = &s->op[i * VAR_MAX_OPS];
		if (s->place[i].nr_ops == 4) {
			v = compared(op);
			break;
		}
		uint64_t a = program_reg(range_reg_of_dwarf(op[0].arg));
		uint64_t b = program_reg(range_reg_of_dwarf(op[1].arg));
		v = (uint64_t)((int64_t)((a - b) << 2) >> 3) ^ a;
		v = (uint64_t)(int64_t)(int32_t)v + 77;
		break;
	}
	}
	return cut(v, t);
}

/* Is the element that the site is of in its array? */
static bool is_within(const struct range_within *w)
{
	uint64_t at = (uint64_t)(int64_t)w->delta;
	if (!w->extent)
		return true;
	if (w->scale)
		at += program_reg(w->index) * w->scale;
	if (w->base != RANGE_NO_REG)
		at += program_reg(w->base) - program_reg(w->frame);
	return at < w->extent && (w->base == RANGE_NO_REG || !(at % w->step));
}

static void of_element(struct range_within *w)
{
	static const uint8_t index[] = {0, 1,  2,  3,  5,  6,  7, 8,
					9, 10, 11, 12, 13, 14, 15};
	*w = (struct range_within){
		.index = index[any(ARRAY_SIZE(index))],
		.scale = (uint8_t)(1u << any(4)),
		.base = RANGE_NO_REG,
		.delta = (int32_t)any(400) - 200,
		.extent = 1 + any(500),
	};
	if (any(2))
		return;
	/* By a pointer. */
	w->scale = any(2) ? w->scale : 0;
	w->base = index[any(ARRAY_SIZE(index))];
	w->frame = any(2) ? RANGE_RSP : RANGE_RBP;
	w->step = (uint8_t)(1u << any(4));
	w->extent = w->step * (1 + any(500 / w->step));
}

static void expression(struct scene *s, unsigned i)
{
	struct var_op *op = &s->op[i * VAR_MAX_OPS];
	int64_t a = dwarf_of(any(16)), b = dwarf_of(any(16));
	const struct var_op ops[] = {{VAR_OP_REG, a}, {VAR_OP_REG, b},
				     {VAR_OP_SUB, 0}, {VAR_OP_CONST, 2},
				     {VAR_OP_SHL, 0}, {VAR_OP_CONST, 3},
				     {VAR_OP_SAR, 0}, {VAR_OP_REG, a},
				     {VAR_OP_XOR, 0}, {VAR_OP_PLUS_CONST, 77}};
	memcpy(op, ops, sizeof(ops));
	/* The low word, then 77, as the model above. */
	op[10] = op[9];
	op[9] = (struct var_op){VAR_OP_SEXT, 4};
	s->place[i].first_op = i * VAR_MAX_OPS;
	s->place[i].nr_ops = 11;
}

static void comparison(struct scene *s, unsigned i)
{
	struct var_op *op = &s->op[i * VAR_MAX_OPS];
	int64_t a = dwarf_of(any(16)), b = any(4) ? dwarf_of(any(16)) : a;
	op[0] = (struct var_op){VAR_OP_REG, a};
	op[1] = (struct var_op){VAR_OP_PLUS_CONST, any(3)   ? 0
						   : any(2) ? (int64_t)any64()
							    : (int32_t)any64()};
	op[2] = any(2) ? (struct var_op){VAR_OP_REG, b}
		       : (struct var_op){VAR_OP_CONST, (int64_t)any64()};
	op[3] = (struct var_op){(uint8_t)(VAR_OP_EQ + any(6)), 0};
	s->place[i].first_op = i * VAR_MAX_OPS;
	s->place[i].nr_ops = 4;
}

static int by_value(const void *a, const void *b)
{
	const struct var_enumerator *x = a, *y = b;
	return (x->value > y->value) - (x->value < y->value);
}

/* Some numbers of the type's, near each other, in heaps, or not. */
static void make_enum(struct scene *s, unsigned i)
{
	struct var_enumerator *e = &s->name[i * NAMES];
	struct var_type *t = &s->var[i].type;
	unsigned all = 8u * t->width, bits = any(3) ? all - any(5) : 3 + any(4);
	unsigned nr = any(3) ? 1 + any(6) : 1 + any(NAMES);
	for (unsigned k = 0; k < nr; k++) {
		uint64_t value = any64() >> (64 - bits);
		if (k && any(2))
			value = (uint64_t)e[k - 1].value + 1 + any(9) / 6;
		value <<= 64 - all;
		e[k].value = t->is_signed ? (int64_t)value >> (64 - all)
					  : (int64_t)(value >> (64 - all));
	}
	qsort(e, nr, sizeof(*e), by_value);
	t->class_ = VAR_ENUM;
	t->first_enumerator = i * NAMES;
	t->nr_enumerators = nr;
}

/* Its names, if there are any between which some number has none. */
static const struct var_enumerator *names_of(const struct scene *s, unsigned i)
{
	const struct var_enumerator *e = &s->name[i * NAMES];
	const struct var_type *t = &s->var[i].type;
	if (t->class_ != VAR_ENUM || range_bits_of(e, t->nr_enumerators))
		return NULL; /* of bits all have a meaning */
	for (unsigned k = 1; k < t->nr_enumerators; k++)
		if (e[k].value != e[k - 1].value &&
		    e[k].value != e[k - 1].value + 1)
			return e;
	return NULL;
}

static void make_site(struct scene *s, unsigned i, unsigned kind)
{
	static const uint8_t widths[] = {1, 2, 4, 8};
	struct var_type *t = &s->var[i].type;
	struct range_site *site = &s->site[i];
	*t = (struct var_type){.width = widths[any(4)], .is_signed = any(2)};
	if (!any(4) && kind != RS_CONST) {
		t->bit_size = (uint8_t)(1 + any(8u * t->width - 1));
		t->bit_offset = (uint8_t)any(8u * t->width - t->bit_size + 1);
	}
	*site = (struct range_site){.gap = 1,
				    .var = i,
				    .place = i,
				    .source = (uint8_t)kind,
				    .reg = (uint8_t)any(16)};
	s->cell_of[i] = 2 * i;
	if (!any(3))
		make_enum(s, i);
	if ((kind == RS_REG || kind == RS_CONST) && any(2))
		of_element(&site->within);
	switch (kind) {
	case RS_REG:
		site->shift = any(4) ? 0 : 8;
		break;
	case RS_SUM:
		site->offset = (int64_t)any(100000) - 50000;
		break;
	case RS_CONST:
		site->offset = (int64_t)any64();
		if (t->class_ == VAR_ENUM && any(4))
			site->offset =
				s->name[i * NAMES + any(t->nr_enumerators)]
					.value +
				(int64_t)any(3) - 1;
		break;
	case RS_FRAME:
		/* Frame pointers that the state has to hold. */
		site->reg = any(2) ? RANGE_RSP : RANGE_RBP;
		site->offset = (int64_t)any(30) * 8 - 120;
		break;
	case RS_DATA:
		site->offset = (int64_t)arena + DATA_OFF + any(1000);
		break;
	default:
		(any(2) ? expression : comparison)(s, i);
		break;
	}
}

static void random_state(void)
{
	for (unsigned r = 0; r < 16; r++)
		in.reg[r] = any(3) ? any64() : (uint64_t)&stack[300] + any(800);
	for (size_t i = 0; i < ARRAY_SIZE(stack); i++)
		stack[i] = any64();
	for (size_t i = 0; i < 1024; i++)
		arena[DATA_OFF + i] = (uint8_t)any(256);
	code_sp = (uint64_t)&stack[300];
	in.reg[RANGE_RBP] = (uint64_t)&stack[350];
	in.flags = 0x202 | (any(2) ? 1 : 0) | (any(2) ? 4 : 0) |
		   (any(2) ? 0x10 : 0) | (any(2) ? 0x40 : 0) |
		   (any(2) ? 0x80 : 0) | (any(2) ? 0x800 : 0);
}

/* Often the value is a name, or next to one. */
static void near_names(const struct scene *s)
{
	for (unsigned i = 0; i < s->nr; i++) {
		const struct range_site *site = &s->site[i];
		const struct var_type *t = &s->var[i].type;
		if (t->class_ != VAR_ENUM || !any(4) ||
		    site->reg == RANGE_RSP || site->reg == RANGE_RBP)
			continue; /* frames are there */
		uint64_t value =
			(uint64_t)s->name[i * NAMES + any(t->nr_enumerators)]
				.value +
			any(3) - 1;
		value <<= t->bit_size ? t->bit_offset : 0;
		if (site->source == RS_DATA)
			memcpy((void *)site->offset, &value, t->width);
		else if (site->source == RS_REG)
			in.reg[site->reg] = value << site->shift;
		else if (site->source == RS_SUM)
			in.reg[site->reg] = value - (uint64_t)site->offset;
	}
}

struct bad {
	unsigned reg, flags, red, cell, hits, shape, odd;
};
static unsigned nr_odd; /* seen */

/* Everything that is needed is as it was. */
static void compare(const struct scene *s, const uint64_t *before,
		    struct bad *bad)
{
	for (unsigned r = 0; r < 16; r++)
		if (r == RANGE_RSP
			    ? out.reg[r] != code_sp
			    : s->live >> r & 1 && out.reg[r] != in.reg[r])
			bad->reg++;
	uint64_t mask = 0x8d5;
	if (s->live & RANGE_FLAGS && (out.flags & mask) != (in.flags & mask))
		bad->flags++;
	/* 128 bytes below the stack pointer, and all above. */
	if (memcmp(before + 284, stack + 284,
		   (ARRAY_SIZE(stack) - 284) * sizeof(*stack)) != 0)
		bad->red++;
}

/* All of it, once; a bound that is the type's end may not have been stored. */
static bool takes(struct range_cell *cell, const struct var_type *t, int64_t lo,
		  int64_t hi)
{
	int64_t got[2] = {lo, lo};
	unsigned nr = range_cell_take(cell, t, got);
	bool ok = nr && (nr == 1 ? lo == hi && got[0] == lo
				 : got[0] == lo && got[1] == hi);
	return ok && !range_cell_take(cell, t, got) &&
	       !range_cell_read(cell, t, &lo, &hi);
}

/* What the stub is said to do is what it was made from. */
static bool right_shape(const struct scene *s)
{
	const struct range_shape *shape = &s->stubs.shape[0];
	unsigned of[3] = {0}, pushes = 0;
	for (unsigned i = 0; i < s->nr; i++) {
		unsigned source = s->site[i].source;
		struct range_hole_part part[RANGE_HOLE_PARTS];
		if (names_of(s, i))
			of[0] += range_hole_parts(&s->v, &s->var[i].type,
						  part) > 3
					 ? 3
					 : 1;
		of[0] += s->site[i].within.extent != 0;
		of[source == RS_EXPR			     ? 2
		   : source == RS_FRAME || source == RS_DATA ? 1
							     : 0]++;
	}
	for (size_t i = 0; i < s->stubs.nr_steps; i++)
		if (s->stubs.step[i].pushed > 128)
			pushes = 1;
	return shape->regs == of[0] && shape->memory == of[1] &&
	       shape->exprs == of[2] && !shape->call &&
	       shape->flags == !!(s->live & RANGE_FLAGS) &&
	       (pushes || !shape->saved);
}

/* The smallest between names that it had. */
struct odd {
	int64_t value;
	bool had;
};

static void note_odd(const struct scene *s, unsigned i, int64_t v,
		     struct odd *odd)
{
	const struct var_enumerator *e = names_of(s, i);
	unsigned nr = s->var[i].type.nr_enumerators;
	if (!e || v < e[0].value || v > e[nr - 1].value)
		return;
	for (unsigned k = 0; k < nr; k++)
		if (e[k].value == v)
			return;
	if (!odd->had || v < odd->value)
		odd->value = v;
	odd->had = true;
}

static bool right_odd(const struct scene *s, unsigned i,
		      const struct range_cell *cell, const struct odd *odd)
{
	int64_t got;
	bool had = range_hole_read(cell, &s->v, &s->var[i].type, &got);
	return had == odd->had && (!had || got == odd->value);
}

static void run_scene(struct scene *s, struct bad *bad)
{
	static uint64_t before[ARRAY_SIZE(stack)];
	struct range_cell *cells = (void *)(arena + CELL_OFF);
	int64_t lo[MAX_VARS] = {0}, hi[MAX_VARS] = {0};
	bool had[MAX_VARS] = {false};
	struct odd odd[MAX_VARS] = {0};
	unsigned rounds = 1 + any(6);

	code_at = arena;
	for (unsigned n = 0; n < rounds; n++) {
		random_state();
		near_names(s);
		for (unsigned i = 0; i < s->nr; i++) {
			int64_t v = (int64_t)expected(s, i);
			if (!is_within(&s->site[i].within))
				continue;
			bool u = !s->var[i].type.is_signed;
			if (!had[i] ||
			    (u ? (uint64_t)v < (uint64_t)lo[i] : v < lo[i]))
				lo[i] = v;
			if (!had[i] ||
			    (u ? (uint64_t)v > (uint64_t)hi[i] : v > hi[i]))
				hi[i] = v;
			had[i] = true;
			note_odd(s, i, v, &odd[i]);
		}
		memcpy(before, stack, sizeof(before));
		range_run();
		compare(s, before, bad);
	}
	for (unsigned i = 0; i < s->nr; i++) {
		int64_t got_lo = 0, got_hi = 0;
		struct range_cell *cell = &cells[s->cell_of[i]];
		bool seen = range_cell_read(cell, &s->var[i].type, &got_lo,
					    &got_hi);
		bad->odd += !right_odd(s, i, cell + 1, &odd[i]);
		nr_odd += odd[i].had;
		if (!seen && !had[i])
			continue;
		if (seen && had[i] && got_lo == lo[i] && got_hi == hi[i] &&
		    takes(cell, &s->var[i].type, lo[i], hi[i]))
			continue;
		if (!bad->cell++)
			printf("# source %u, width %u, signed %d, bits %u at "
			       "%u: [%jd, %jd], not [%jd, %jd]\n",
			       s->site[i].source, s->var[i].type.width,
			       s->var[i].type.is_signed,
			       s->var[i].type.bit_size,
			       s->var[i].type.bit_offset, (intmax_t)got_lo,
			       (intmax_t)got_hi, (intmax_t)lo[i],
			       (intmax_t)hi[i]);
	}
	uint64_t hits;
	memcpy(&hits, (uint8_t *)cells - 8, sizeof(hits));
	bad->hits += hits != rounds;
	bad->shape += !right_shape(s);
}

/* @kind of source, or RS_EXPR + 1: any mixture. */
static void sources(unsigned kind, const char *name)
{
	struct bad bad = {0};
	unsigned failed = 0;
	for (unsigned n = 0; n < 3000; n++) {
		static struct scene s;
		memset(&s, 0, sizeof(s));
		s.nr = 1 + any(kind > RS_EXPR ? MAX_VARS : 1);
		for (unsigned i = 0; i < s.nr; i++)
			make_site(&s, i, kind > RS_EXPR ? any(6) : kind);
		/* Nothing is free, something is, or only the flags. */
		s.live = any(3) ? (uint32_t)any64() : 0x3fffff;
		s.live |= any(3) ? 0 : RANGE_FLAGS;
		s.live |= 1u << RANGE_RSP;
		s.live &= any(4) ? 0x3fffff : ~RANGE_FLAGS & 0x3fffff;
		s.v = (struct variables){.vars = s.var,
					 .nr_vars = s.nr,
					 .places = s.place,
					 .nr_places = s.nr,
					 .ops = s.op,
					 .nr_ops = ARRAY_SIZE(s.op),
					 .enumerators = s.name,
					 .nr_enumerators = ARRAY_SIZE(s.name)};
		if (make_code(&s) && plant(&s))
			run_scene(&s, &bad);
		else
			failed++;
		range_stubs_deinit(&s.stubs);
		range_code_deinit(&s.code);
		range_image_deinit(&s.img);
	}
	printf("# %s\n", name);
	check_int(failed, 0);
	check_int(bad.reg, 0);
	check_int(bad.flags, 0);
	check_int(bad.red, 0);
	check_int(bad.cell, 0);
	check_int(bad.odd, 0);
	printf("# %u between names\n", nr_odd);
	check(nr_odd > 50);
	nr_odd = 0;
	check_int(bad.hits, 0);
	check_int(bad.shape, 0);
}

/* Threads that are moved in and out find their instruction. */
static void steps(void)
{
	static struct scene s;
	memset(&s, 0, sizeof(s));
	s.nr = 1;
	s.live = 0x3fffff;
	make_site(&s, 0, RS_DATA);
	s.v = (struct variables){.vars = s.var,
				 .nr_vars = 1,
				 .places = s.place,
				 .nr_places = 1,
				 .enumerators = s.name};
	struct range_window window = {.first = 0, .end = 2, .nr_sites = 1};
	struct range_windows w = {
		.window = &window, .nr = 1, .site = s.site, .nr_sites = 1};
	check(make_code(&s) && plant(&s));
	uint32_t first = range_stubs_moved(&s.stubs, &w, 0, 0);
	uint32_t second = range_stubs_moved(&s.stubs, &w, 0, 1);
	check_int(first, s.stubs.start[0]);
	check(second > first);
	check_int(range_stubs_moved(&s.stubs, &w, 0, 2), UINT32_MAX);
	const struct range_step *step = range_stubs_step(&s.stubs, first);
	check_int(step->insn, 0);
	check_int(step->at_insn, true);
	step = range_stubs_step(&s.stubs, second);
	check_int(step->insn, 1);
	check_int(step->pushed, 0);
	step = range_stubs_step(&s.stubs, second + 1);
	check_int(step->insn, 1);
	check(!step->clean && !step->at_insn);
	/* Nothing is free: somewhere in between registers are on the stack. */
	unsigned most = 0;
	for (size_t i = 0; i < s.stubs.nr_steps; i++)
		if (s.stubs.step[i].pushed > most)
			most = s.stubs.step[i].pushed;
	check(most > 128);
	check(s.stubs.shape[0].saved > 0);
	range_stubs_deinit(&s.stubs);
	/* Everything is: who is there can leave at any time. */
	s.live = 1u << RANGE_RSP;
	range_code_deinit(&s.code);
	range_image_deinit(&s.img);
	check(make_code(&s) && plant(&s));
	step = range_stubs_step(&s.stubs, second + 1);
	check_int(step->insn, 1);
	check(step->clean);
	check_int(s.stubs.shape[0].saved, 0);
	range_stubs_deinit(&s.stubs);
	range_code_deinit(&s.code);
	range_image_deinit(&s.img);
}

int main(void)
{
	arena = mmap((void *)0x10000000000, ARENA,
		     PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED)
		return 1;
	sources(RS_REG, "registers");
	sources(RS_FRAME, "the frame");
	sources(RS_DATA, "data");
	sources(RS_SUM, "sums");
	sources(RS_CONST, "constants");
	sources(RS_EXPR, "expressions");
	sources(RS_EXPR + 1, "several at once");
	steps();
	return tap_done();
}
