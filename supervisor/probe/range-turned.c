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
	size_t first;	  /* instruction of state[0] */
	bool is_straight; /* only what goes straight on is followed */
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
	if (!t->is_straight && (in->kind == RK_JUMP || in->kind == RK_BRANCH)) {
		size_t to = range_code_find(t->code, in->target);
		if (to < t->code->nr && t->code->insns[to].addr == in->target)
			come_to(t, to, &s);
	}
	return true;
}

/* What registers are in all of the loop, or as control goes straight on in it.
 * False: that is not known. */
static bool follow(struct turn *t, const struct range_code *code, size_t head,
		   bool is_straight)
{
	size_t left = LOOP_STEPS;
	bool again = true;
	memset(t, 0, sizeof(*t));
	t->code = code;
	t->head = head;
	t->is_straight = is_straight;
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

/* The loop's head: where the branch or jump leads back to with which @p ends,
 * or what is straight on behind a branch. code->nr: it is no loop. */
static size_t head_of(const struct range_code *code, const struct var_place *p)
{
	size_t i = ending_at(code, p->hi);
	if (i == code->nr || (code->insns[i].kind != RK_BRANCH &&
			      code->insns[i].kind != RK_JUMP))
		return code->nr;
	uint64_t to = code->insns[i].target;
	if (to >= p->lo)
		return range_falls(code, i) ? i + 1 : code->nr;
	size_t head = range_code_find(code, to);
	return head < code->nr && code->insns[head].addr == to ? head
							       : code->nr;
}

/* Does control go on from @addr to instruction @head, through padding only? */
static bool leads_to(const struct range_code *code, uint64_t addr, size_t head)
{
	size_t i = range_code_find(code, addr);
	if (i == code->nr || code->insns[i].addr != addr)
		return false;
	while (i < head && code->insns[i].bits & RB_PADDING &&
	       range_falls(code, i))
		i++;
	return i == head;
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
	if (!leads_to(code, q->hi, head)) {
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

/* @p, with the place of the same register that it goes straight on to, as where
 * that is counted. */
static struct var_place whole(const struct range_code *code,
			      const struct variables *v,
			      const struct range_index_entry *own, size_t nr,
			      const struct var_place *p)
{
	struct var_place ret = *p;
	size_t last = ending_at(code, p->hi);
	for (size_t i = 0; last < code->nr && i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == p->kind && q->reg == p->reg && q->lo == p->hi &&
		    code->insns[last].kind == RK_PLAIN &&
		    range_falls(code, last))
			ret.hi = q->hi;
	}
	return ret;
}

/* Does @p say one turn more than the variable is, if that was as @q before the
 * loop? What it is more than the register: *k_ret. */
static bool is_ahead(const struct turn *t, const struct var_place *p,
		     const struct var_place *q, int64_t *k_ret)
{
	int64_t turn, ahead;
	return is_more(t, p, q, k_ret, &turn) &&
	       !__builtin_sub_overflow(p->offset, *k_ret, &ahead) &&
	       ahead == turn;
}

/* The same, or of another place that says as much and ends with the same turn.
 */
static bool is_one_ahead(const struct turn *t, const struct variables *v,
			 const struct range_index_entry *own, size_t nr,
			 const struct var_place *p, const struct var_place *q,
			 int64_t *k_ret)
{
	if (is_ahead(t, p, q, k_ret))
		return true;
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *like = &v->places[own[i].place];
		if (like->kind == p->kind && like->reg == p->reg &&
		    like->offset == p->offset &&
		    head_of(t->code, like) == t->head &&
		    is_ahead(t, like, q, k_ret))
			return true;
	}
	return false;
}

/* The same, where what the variable was before the loop is one of its @own
 * places. */
static bool is_turned(struct turn *t, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, int64_t *k_ret)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_CONST &&
		    is_one_ahead(t, v, own, nr, p, q, k_ret))
			return true;
	}
	return false;
}

/* Is any of the variable's places a constant? */
static bool has_constant(const struct variables *v,
			 const struct range_index_entry *own, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (v->places[own[i].place].kind == VAR_CONST)
			return true;
	return false;
}

bool range_doubt_twice(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, int64_t *k_ret)
{
	struct turn t;
	if (p->kind != VAR_VALUE || !p->offset ||
	    range_reg_of_dwarf(p->reg) >= 16)
		return false;
	struct var_place all = whole(code, v, own, nr, p);
	size_t head = head_of(code, &all);
	/* By any way a turn comes to the same. */
	if (head < code->nr && has_constant(v, own, nr) &&
	    ((follow(&t, code, head, false) &&
	      is_turned(&t, v, own, nr, &all, k_ret)) ||
	     (follow(&t, code, head, true) &&
	      is_turned(&t, v, own, nr, &all, k_ret))))
		return true;
	*k_ret = 0;
	return range_doubt_stepped(code, p);
}
