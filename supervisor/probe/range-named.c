/*
 * Does a number in an enum's hole have a name? Out of the way of the sensors,
 * behind their stub: the part that it lies in is searched for, by comparisons
 * with constants; where a part has both, a bit says it. No register is needed
 * but the one that has the number.
 */
#include "supervisor/probe/range-asm.h"
#include "supervisor/probe/range-hole.h"
#include "supervisor/probe/range-sensor.h"

#define BELOW	 0x2
#define AT_LEAST 0x3

struct named {
	struct code_buf *e;
	const struct var_type *t;
	unsigned width; /* in which numbers are compared */
	uint8_t reg;
	struct range_hole_part part[RANGE_HOLE_PARTS];
	taddr_t data[RANGE_HOLE_PARTS]; /* put_data() */
	taddr_t then[2];		/* by what the number is */
};

static bool is_short(const struct named *n, uint64_t from)
{
	return n->width < 8 || from <= INT32_MAX;
}

/* What does not fit into instructions: where a part starts, its bits. */
static void put_data(struct named *n, const struct variables *v, size_t nr)
{
	struct range_hole hole = range_hole_of(v, n->t);
	static const uint8_t fill[8] = {0xcc, 0xcc, 0xcc, 0xcc,
					0xcc, 0xcc, 0xcc, 0xcc};
	uint8_t bits[RANGE_HOLE_BITS / 8];
	code_put(n->e, fill, -n->e->len & 7);
	for (size_t i = 0; i < nr; i++) {
		uint64_t from = n->part[i].from;
		uint64_t end = i + 1 < nr ? n->part[i + 1].from : hole.nr;
		n->data[i] = n->e->base + n->e->len;
		if (!is_short(n, from))
			code_put(n->e, &from, sizeof(from));
		if (n->part[i].kind != RANGE_SOME)
			continue;
		range_hole_names(v, n->t, from, end, bits);
		code_put(n->e, bits, (end - from + 7) / 8);
	}
}

/* In part @i, some of whose numbers are named. */
static void look_up(struct named *n, size_t i)
{
	uint64_t from = n->part[i].from;
	bool is_far = !is_short(n, from);
	if (is_far)
		asm_rip(n->e, 8, OP_SUB_R_RM, n->reg, n->data[i], 0);
	else if (from)
		asm_mem(n->e, n->width, OP_LEA, n->reg, n->reg, (int32_t)-from);
	asm_rip(n->e, 4, OP_BT, n->reg,
		n->data[i] + (is_far ? sizeof(from) : 0), 0);
	asm_jump_if(n->e, BELOW, n->then[RANGE_NAMED]);
	if (is_far)
		asm_rip(n->e, 8, OP_ADD_R_RM, n->reg, n->data[i], 0);
	else if (from)
		asm_mem(n->e, n->width, OP_LEA, n->reg, n->reg, (int32_t)from);
	code_jump(n->e, n->then[RANGE_UNNAMED]);
}

/* Is the number below part @i, or not? */
static void compare(struct named *n, size_t i)
{
	uint64_t from = n->part[i].from;
	if (is_short(n, from))
		asm_cmp_const(n->e, n->width, n->reg, (int32_t)from);
	else
		asm_rip(n->e, 8, OP_CMP_R_RM, n->reg, n->data[i], 0);
}

/* It is in one of the parts from @a to @b, exclusive. */
static void search(struct named *n, size_t a, size_t b)
{
	size_t mid = a + (b - a) / 2;
	if (mid == a) {
		if (n->part[a].kind == RANGE_SOME)
			look_up(n, a);
		else
			code_jump(n->e, n->then[n->part[a].kind]);
		return;
	}
	compare(n, mid);
	if (mid - a == 1 && n->part[a].kind != RANGE_SOME) {
		asm_jump_if(n->e, BELOW, n->then[n->part[a].kind]);
	} else {
		size_t above = asm_branch(n->e, AT_LEAST);
		search(n, a, mid);
		asm_land(n->e, above);
	}
	search(n, mid, b);
}

/* The longest part that is named, if there are many: it may be the usual one,
 * and is not searched for. */
static void first_guess(struct named *n, size_t nr)
{
	size_t best = 0;
	uint64_t most = 0;
	for (size_t i = 1; i + 1 < nr; i++) {
		uint64_t length = n->part[i + 1].from - n->part[i].from;
		if (n->part[i].kind == RANGE_NAMED && length > most) {
			best = i;
			most = length;
		}
	}
	if (nr <= 3 || most < 2)
		return;
	compare(n, best);
	size_t below = asm_branch(n->e, BELOW);
	compare(n, best + 1);
	asm_jump_if(n->e, BELOW, n->then[RANGE_NAMED]);
	asm_land(n->e, below);
}

void range_named(struct range_sensor *x, const struct range_slow *s,
		 taddr_t unnamed)
{
	struct named n = {
		.e = &x->s->code,
		.t = range_cell_type(x->v, s->var),
		.width = s->width == 8 ? 8 : 4,
		.reg = s->reg,
		.then = {[RANGE_UNNAMED] = unnamed, [RANGE_NAMED] = s->back}};
	size_t nr = range_hole_parts(x->v, n.t, n.part);
	put_data(&n, x->v, nr);
	asm_land(n.e, s->branch);
	range_note_step(x->s, s->insn, s->pushed,
			s->clean ? RANGE_CLEAN : RANGE_DIRTY);
	if (s->width == 1)
		asm_reg(n.e, 1, OP_MOVZX_BYTE, s->reg, s->reg);
	else if (s->width == 2)
		asm_reg(n.e, 4, OP_MOVZX_WORD, s->reg, s->reg);
	first_guess(&n, nr);
	search(&n, 0, nr);
}
