/*
 * A register plus a constant, in which a loop's turn is counted twice, see
 * range-doubt.h. What registers are is followed through the loop: each is what
 * one was at the loop's head, plus a constant, or not known.
 */
#include <string.h>

#include "supervisor/probe/range-doubt.h"

#define TURN_REACH  24	/* before a loop, for what a register is set to */
#define LOOP_BEFORE 64	/* instructions before a loop's head that are of it */
#define LOOP_INSNS  448 /* of a loop that is looked at, those included */
#define LOOP_STEPS  4096
#define UNKNOWN	    0xff

/* Registers that calls do not keep: rax, rcx, rdx, rsi, rdi, r8 to r11. */
#define CALL_CHANGES 0x0fc7u

/* What a register is: register @of at the head, plus @plus. */
struct turn_sum {
	uint8_t of; /* UNKNOWN */
	int8_t plus;
};

struct turn_state {
	struct turn_sum at[16];
	bool is_seen, is_next; /* it has been come to; it is to be looked at */
};

struct turn {
	const struct range_code *code;
	size_t first; /* instruction of state[0] */
	size_t head;
	struct turn_state state[LOOP_INSNS];
};

/* A whole register, or its lower half, is copied: from which; RANGE_NO_REG. */
static uint8_t copied_from(const struct range_insn *in)
{
	uint32_t from = in->use & RANGE_ALL_REGS;
	if (in->kind != RK_PLAIN || in->mem_size || in->bits & RB_LEA ||
	    !(in->bits & RB_COMPUTES) || in->def & RANGE_FLAGS ||
	    __builtin_popcount(from) != 1 || __builtin_popcount(in->wrote) != 1)
		return RANGE_NO_REG;
	return (uint8_t)__builtin_ctz(from);
}

static struct turn_sum sum_of(struct turn_sum a, int64_t k)
{
	if (a.of != UNKNOWN && !__builtin_add_overflow(a.plus, k, &a.plus))
		return a;
	return (struct turn_sum){.of = UNKNOWN};
}

/* What @s is behind instruction @in. */
static void go_through(const struct range_insn *in, struct turn_state *s)
{
	const struct turn_state was = *s;
	bool calls = in->kind == RK_CALL || in->kind == RK_CALL_TO;
	uint32_t wrote = in->wrote | (calls ? CALL_CHANGES : 0);
	uint8_t to = in->wrote ? (uint8_t)__builtin_ctz(in->wrote) : 0;
	uint8_t from = copied_from(in);

	for (uint8_t r = 0; r < 16; r++)
		if (wrote >> r & 1)
			s->at[r] = (struct turn_sum){.of = UNKNOWN};
	if (from < 16)
		s->at[to] = was.at[from];
	else if (in->bits & RB_LEA && in->base < 16 &&
		 in->index == RANGE_NO_REG && in->wrote == 1u << to)
		s->at[to] = sum_of(was.at[in->base], in->disp);
	else if (in->bits & RB_ADDS && in->wrote == 1u << to)
		s->at[to] = sum_of(was.at[to], in->imm);
}

/* @s comes to where @to is: what differs from others is not known. */
static void join(struct turn_state *to, const struct turn_state *s)
{
	if (!to->is_seen) {
		*to = *s;
		to->is_seen = to->is_next = true;
		return;
	}
	for (unsigned i = 0; i < 16; i++) {
		struct turn_sum *a = &to->at[i];
		if (a->of == UNKNOWN ||
		    (a->of == s->at[i].of && a->plus == s->at[i].plus))
			continue;
		a->of = UNKNOWN;
		to->is_next = true;
	}
}

/* @s goes on to instruction @i: in the loop, or out of it. */
static void come_to(struct turn *t, size_t i, const struct turn_state *s)
{
	if (i != t->head && i >= t->first && i - t->first < LOOP_INSNS)
		join(&t->state[i - t->first], s);
}

/* Instruction @i has been come to as @s. False: where it goes is not known. */
static bool goes_on(struct turn *t, size_t i, struct turn_state s)
{
	const struct range_insn *in = &t->code->insns[i];
	if (in->kind == RK_JUMP_TO || in->kind == RK_BAD)
		return false;
	go_through(in, &s);
	if (range_falls(t->code, i))
		come_to(t, i + 1, &s);
	if (in->kind == RK_JUMP || in->kind == RK_BRANCH) {
		size_t to = range_code_find(t->code, in->target);
		if (to < t->code->nr && t->code->insns[to].addr == in->target)
			come_to(t, to, &s);
	}
	return true;
}

/* What registers are in all of the loop. False: that is not known. */
static bool follow(struct turn *t, const struct range_code *code, size_t head)
{
	size_t left = LOOP_STEPS;
	bool again = true;
	memset(t, 0, sizeof(*t));
	t->code = code;
	t->head = head;
	t->first = head > LOOP_BEFORE ? head - LOOP_BEFORE : 0;
	struct turn_state s = {.is_seen = true};
	for (uint8_t i = 0; i < 16; i++)
		s.at[i].of = i;
	if (!goes_on(t, head, s))
		return false;
	while (again) {
		again = false;
		for (size_t i = 0; i < LOOP_INSNS; i++) {
			struct turn_state *at = &t->state[i];
			if (!at->is_next)
				continue;
			at->is_next = false;
			again = true;
			if (!left-- || !goes_on(t, t->first + i, *at))
				return false;
		}
	}
	return true;
}

/* What register @reg was set to before instruction @i, to which control comes
 * straight on, or as a copy of what another one was. */
static bool set_to(const struct range_code *code, size_t i, uint8_t reg,
		   int64_t *k_ret)
{
	for (size_t n = 0; i > 0 && n < TURN_REACH; i--, n++) {
		const struct range_insn *in = &code->insns[i - 1];
		if (!range_falls(code, i - 1) || in->kind != RK_PLAIN)
			return false;
		if (in->wrote >> reg & 1) {
			uint8_t from = copied_from(in);
			if (in->bits & RB_IMM && in->wrote == 1u << reg) {
				*k_ret = in->imm;
				return true;
			}
			if (from >= 16)
				return false;
			reg = from;
		}
		if (in->bits & RB_LEADER)
			return false;
	}
	return false;
}

/* The instruction that ends at @addr; code->nr: there is none. */
static size_t ending_at(const struct range_code *code, uint64_t addr)
{
	size_t i = range_code_find(code, addr);
	return i && code->insns[i - 1].addr + code->insns[i - 1].len == addr
		       ? i - 1
		       : code->nr;
}

/* The loop's head: where the branch leads back to with which @p ends, or what
 * is straight on behind that. code->nr: it is no loop. */
static size_t head_of(const struct range_code *code, const struct var_place *p)
{
	size_t i = ending_at(code, p->hi);
	if (i == code->nr || code->insns[i].kind != RK_BRANCH)
		return code->nr;
	uint64_t to = code->insns[i].target;
	if (to >= p->lo)
		return range_falls(code, i) ? i + 1 : code->nr;
	size_t head = range_code_find(code, to);
	return code->insns[head].addr == to ? head : code->nr;
}

/* How much more than register @reg the variable was, of which @q is a place,
 * where control came from there to the loop's head. */
static bool began_with(const struct range_code *code, size_t head,
		       const struct var_place *q, uint8_t reg, int64_t *more)
{
	size_t last = ending_at(code, q->hi), from = head;
	int64_t was;
	if (q->kind != VAR_CONST || last == code->nr)
		return false;
	if (q->hi != code->insns[head].addr) {
		if (code->insns[last].kind != RK_JUMP ||
		    code->insns[last].target != code->insns[head].addr)
			return false;
		from = last;
	}
	return set_to(code, from, reg, &was) &&
	       !__builtin_sub_overflow(q->offset, was, more);
}

/* How much more than its register the variable is at place @p, if that is as
 * *@t, and was as place @q before the loop. False: that is not known. */
static bool is_more(const struct turn *t, const struct var_place *p,
		    const struct var_place *q, int64_t *more, int64_t *turn)
{
	const struct range_code *code = t->code;
	size_t at = range_code_find(code, p->lo), last = ending_at(code, p->hi);
	/* The place may begin with its block's padding. */
	while (at < last && code->insns[at].bits & RB_PADDING)
		at++;
	if (at < t->first || last >= t->first + LOOP_INSNS)
		return false;
	const struct turn_state *s = &t->state[at - t->first],
				*e = &t->state[last - t->first];
	struct turn_sum now = s->at[range_reg_of_dwarf(p->reg)];
	if (!s->is_seen || !e->is_seen || now.of == UNKNOWN ||
	    e->at[now.of].of != now.of || !e->at[now.of].plus ||
	    !began_with(code, t->head, q, now.of, more))
		return false;
	*turn = e->at[now.of].plus;
	return !__builtin_add_overflow(*more, *turn - now.plus, more);
}

/* Do both end with the same loop's turn, and say the same? */
static bool is_alike(const struct range_code *code, const struct var_place *p,
		     const struct var_place *q, size_t head)
{
	return q->kind == p->kind && q->reg == p->reg &&
	       q->offset == p->offset && head_of(code, q) == head;
}

static bool is_turned(const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, int64_t *k_ret)
{
	uint8_t reg = range_reg_of_dwarf(p->reg);
	bool is_followed = false;
	size_t head;
	struct turn t;
	if (p->kind != VAR_VALUE || reg >= 16 || !p->offset ||
	    (head = head_of(code, p)) == code->nr)
		return false;
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		int64_t turn, ahead;
		if (q->kind != VAR_CONST)
			continue;
		if (!is_followed && !follow(&t, code, head))
			return false;
		is_followed = true;
		for (size_t n = 0; n < nr; n++) {
			const struct var_place *like = &v->places[own[n].place];
			if (is_alike(code, p, like, head) &&
			    is_more(&t, like, q, k_ret, &turn) &&
			    !__builtin_sub_overflow(p->offset, *k_ret,
						    &ahead) &&
			    ahead == turn)
				return true;
		}
	}
	return false;
}

bool range_doubt_twice(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, int64_t *k_ret)
{
	if (is_turned(code, v, own, nr, p, k_ret))
		return true;
	*k_ret = 0;
	return range_doubt_stepped(code, p);
}
