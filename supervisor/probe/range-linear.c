/* Places that are sums of registers, and what they come to as instructions move
 * and add: where what is said of one place contradicts the next one, see
 * range-doubt.h. */
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-operand.h"

/* A sum of registers, each as often as of says, of what lies in the frame, and
 * k. */
struct sum {
	int64_t of[16];
	int64_t of_memory;
	struct range_load memory; /* then: where, as far as disp and bytes */
	int64_t k;
	bool known;
};
/* What registers hold, as sums of what they held where the walk began; or since
 * they were written to, if it is not known with what and that is asked for. */
struct held {
	struct sum reg[16];
	bool since;
	uint32_t wrote; /* registers, since the walk began */
	bool stored;	/* to memory, perhaps to that of the frame */
};

/* How many instructions are walked through. */
#define SUM_REACH  32
#define LOOP_REACH 64

static bool is_same_memory(const struct sum *a, const struct sum *b)
{
	return a->memory.reg == b->memory.reg &&
	       a->memory.disp == b->memory.disp &&
	       a->memory.bytes == b->memory.bytes;
}

static struct sum add(struct sum a, const struct sum *b, int64_t times)
{
	uint64_t n = (uint64_t)times;
	a.known &= !a.of_memory || !b->of_memory || is_same_memory(&a, b);
	if (!a.of_memory)
		a.memory = b->memory;
	a.of_memory =
		(int64_t)((uint64_t)a.of_memory + n * (uint64_t)b->of_memory);
	for (unsigned i = 0; i < 16; i++)
		a.of[i] = (int64_t)((uint64_t)a.of[i] + n * (uint64_t)b->of[i]);
	a.k = (int64_t)((uint64_t)a.k + n * (uint64_t)b->k);
	a.known &= b->known;
	return a;
}

static struct sum constant(int64_t k)
{
	return (struct sum){.k = k, .known = true};
}

static struct sum of_register(uint8_t reg)
{
	struct sum s = {.known = reg < 16};
	if (s.known)
		s.of[reg] = 1;
	return s;
}

static bool has_register(const struct sum *s)
{
	for (unsigned i = 0; i < 16; i++)
		if (s->of[i])
			return true;
	return s->of_memory;
}

/* What lies at address @at, @bytes of it, if that is of the frame. */
static struct sum of_frame(const struct sum *at, int64_t bytes)
{
	struct sum s = {.of_memory = 1, .known = at->known && !at->of_memory};
	unsigned nr = 0;
	for (uint8_t i = 0; i < 16; i++) {
		nr += at->of[i] != 0;
		if (at->of[i])
			s.memory.reg = i;
		s.known &= !at->of[i] || at->of[i] == 1;
	}
	s.memory.disp = at->k;
	s.memory.bytes = (uint64_t)bytes;
	s.known &= nr == 1 &&
		   (s.memory.reg == RANGE_RSP || s.memory.reg == RANGE_RBP);
	return s;
}

/* Are @a and @b the same but for a constant? */
static bool differs_by(const struct sum *a, const struct sum *b, int64_t *k_ret)
{
	struct sum d = add(*a, b, -1);
	*k_ret = d.k;
	return d.known && !has_register(&d);
}

static bool is_same(const struct sum *a, const struct sum *b)
{
	int64_t k;
	return differs_by(a, b, &k) && !k;
}

/* What the operations of @p add up to. */
static struct sum of_ops(const struct variables *v, const struct var_place *p)
{
	struct sum stack[VAR_MAX_OPS], zero = constant(0);
	size_t n = 0;
	for (uint32_t i = 0; i < p->nr_ops && n < VAR_MAX_OPS; i++) {
		const struct var_op *op = &v->ops[p->first_op + i];
		if (n < var_op_pops(op->code))
			return (struct sum){0};
		switch (op->code) {
		case VAR_OP_REG:
			stack[n++] = of_register(
				range_reg_of_dwarf((unsigned)op->arg));
			break;
		case VAR_OP_CONST:
			stack[n++] = constant(op->arg);
			break;
		case VAR_OP_PLUS_CONST:
			zero = constant(op->arg);
			stack[n - 1] = add(stack[n - 1], &zero, 1);
			break;
		case VAR_OP_ADD:
		case VAR_OP_SUB:
			n--;
			stack[n - 1] = add(stack[n - 1], &stack[n],
					   op->code == VAR_OP_ADD ? 1 : -1);
			break;
		case VAR_OP_LOAD:
			stack[n - 1] = of_frame(&stack[n - 1], op->arg);
			break;
		case VAR_OP_NEG:
		case VAR_OP_NOT:
			zero = constant(op->code == VAR_OP_NOT ? -1 : 0);
			stack[n - 1] = add(zero, &stack[n - 1], -1);
			break;
		default:
			return (struct sum){0};
		}
	}
	return n == 1 ? stack[0] : (struct sum){0};
}

static struct sum of_place(const struct variables *v, const struct var_place *p)
{
	struct sum s = of_register(range_reg_of_dwarf(p->reg));
	if (p->kind == VAR_EXPR)
		return of_ops(v, p);
	if (p->kind == VAR_CONST)
		return constant(p->offset);
	s.known &= p->kind == VAR_VALUE || (p->kind == VAR_REG && !p->shift);
	s.k = p->kind == VAR_VALUE ? p->offset : 0;
	return s;
}

/* May the memory of @s have changed since the walk began? */
static bool is_changed(const struct held *h, const struct sum *s)
{
	return h->stored || h->wrote >> s->memory.reg & 1;
}

/* What @p is where registers hold @h. */
static struct sum value_of(const struct variables *v, const struct var_place *p,
			   const struct held *h)
{
	struct sum said = of_place(v, p), s = constant(said.k);
	s.known = said.known && !(said.of_memory && is_changed(h, &said));
	s.of_memory = said.of_memory;
	s.memory = said.memory;
	for (unsigned i = 0; i < 16 && s.known; i++)
		if (said.of[i])
			s = add(s, &h->reg[i], said.of[i]);
	return s;
}

static void begin_walk(struct held *h)
{
	h->since = h->stored = false;
	h->wrote = 0;
	for (uint8_t i = 0; i < 16; i++)
		h->reg[i] = of_register(i);
}

/* From here on others are told by what register @reg holds, and no more by what
 * it has held. */
static void begin_at(struct held *h, uint8_t reg)
{
	for (unsigned i = 0; i < 16; i++)
		h->reg[i].known &= !h->reg[i].of[reg];
	h->reg[reg] = of_register(reg);
}

/* What calls leave in no register. */
#define CALLED (7u << 0 | 3u << 6 | 15u << 8)

/* The registers behind instruction @in. Of a lower half that is moved it is
 * assumed that no more is wanted. */
static void step(struct held *h, const struct range_insn *in)
{
	uint32_t from = in->use & RANGE_ALL_REGS, wrote = in->wrote;
	struct sum s = {.known = false};
	uint8_t to = wrote ? (uint8_t)__builtin_ctz(wrote) : 0;
	bool one = in->kind == RK_PLAIN && wrote == 1u << to;
	if (one && in->bits & RB_LEA && in->base < 16) {
		s = constant(in->disp);
		s = add(s, &h->reg[in->base], 1);
		if (in->index < 16)
			s = add(s, &h->reg[in->index], in->scale);
	} else if (one && !in->mem_size && in->bits & RB_ADDS) {
		s = constant(in->imm);
		s = add(s, &h->reg[to], 1);
	} else if (one && !in->mem_size && in->bits & RB_IMM) {
		s = constant(in->imm);
	} else if (one && !in->mem_size && in->bits & RB_COMPUTES &&
		   !(in->def & RANGE_FLAGS) && __builtin_popcount(from) == 1) {
		s = h->reg[__builtin_ctz(from)];
	}
	if (in->kind == RK_CALL || in->kind == RK_CALL_TO)
		wrote |= CALLED;
	h->wrote |= wrote;
	h->stored |= in->kind == RK_CALL || in->kind == RK_CALL_TO ||
		     in->bits & (RB_STORES | RB_WRITES);
	for (uint8_t i = 0; i < 16; i++)
		if (wrote >> i & 1)
			h->reg[i] = s;
	for (uint8_t i = 0; h->since && !s.known && i < 16; i++)
		if (wrote >> i & 1)
			begin_at(h, i);
}

/* The variable's place that holds at @addr; NULL: none. */
static const struct var_place *place_at(const struct variables *v,
					const struct range_index_entry *own,
					size_t nr, uint64_t addr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (addr >= q->lo && addr < q->hi)
			return q;
	}
	return NULL;
}

/* From where on control goes straight on to instruction @i, as far as is
 * looked.
 */
static size_t way_up(const struct range_code *code, size_t i)
{
	size_t k = i;
	while (k > 0 && i - k < SUM_REACH && range_falls(code, k - 1) &&
	       (k == i || !(code->insns[k].bits & RB_LEADER)))
		k--;
	return k;
}

/* The registers at instruction @i, to which control comes so. */
static void walk_up(const struct range_code *code, size_t i, struct held *h)
{
	begin_walk(h);
	h->since = true;
	for (size_t k = way_up(code, i); k < i; k++)
		step(h, &code->insns[k]);
	h->since = false;
}

/* The place straight behind @p, to which control goes on. */
static const struct var_place *behind(const struct range_code *code,
				      const struct variables *v,
				      const struct range_index_entry *own,
				      size_t nr, const struct var_place *p)
{
	size_t i = range_code_find(code, p->hi);
	if (!i || i == code->nr || code->insns[i].addr != p->hi ||
	    !range_falls(code, i - 1))
		return NULL;
	const struct var_place *q = place_at(v, own, nr, p->hi);
	return q && q->lo == p->hi ? q : NULL;
}

/* From instruction @i to the end of @p, straight on. */
static bool walk_out(const struct range_code *code, const struct var_place *p,
		     size_t i, struct held *h)
{
	size_t n = 0;
	for (; i < code->nr && code->insns[i].addr < p->hi; i++) {
		if ((code->insns[i].kind != RK_PLAIN &&
		     code->insns[i].kind != RK_BRANCH) ||
		    n++ == SUM_REACH || !range_falls(code, i))
			return false;
		step(h, &code->insns[i]);
	}
	return true;
}

/* Is a register of @s, or perhaps its memory, written from instruction @i to
 * address @hi? */
static bool writes_to(const struct range_code *code, const struct sum *s,
		      size_t i, uint64_t hi)
{
	struct held h;
	begin_walk(&h);
	for (; i < code->nr && code->insns[i].addr < hi; i++) {
		step(&h, &code->insns[i]);
		if (s->of_memory && is_changed(&h, s))
			return true;
		for (unsigned reg = 0; reg < 16; reg++)
			if (s->of[reg] && code->insns[i].wrote >> reg & 1)
				return true;
	}
	return false;
}

/* Does @p say what is not so before it, nor behind it? */
static bool is_away(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *own, size_t nr,
		    const struct var_place *p)
{
	size_t i = range_code_find(code, p->lo);
	if (!i || i == code->nr || code->insns[i].addr != p->lo ||
	    !range_falls(code, i - 1))
		return false;
	const struct range_insn *last = &code->insns[i - 1];
	const struct var_place *before = place_at(v, own, nr, last->addr);
	const struct var_place *next = behind(code, v, own, nr, p);
	struct held h;
	int64_t k = 0;
	if (p->kind == VAR_REG || !before || before->hi != p->lo || !next ||
	    !(next->flags & VAR_MOVED))
		return false;
	walk_up(code, i, &h);
	struct sum was = value_of(v, before, &h), said = value_of(v, p, &h);
	struct sum regs = of_place(v, before);
	bool differs = p->kind == VAR_CONST ? !is_same(&said, &was)
					    : differs_by(&said, &was, &k) && k;
	if (!has_register(&regs) || !said.known || !differs ||
	    writes_to(code, &regs, i - 1, p->lo) || !walk_out(code, p, i, &h))
		return false;
	struct sum is = value_of(v, next, &h);
	return is_same(&was, &is);
}

/* Are @a plus @b, which is something, as much as @sum? */
static bool makes(const struct sum *a, const struct sum *b,
		  const struct sum *sum)
{
	struct sum made = add(*a, b, 1);
	return (b->k || has_register(b)) && is_same(&made, sum);
}

/* Has the variable been in register @reg before @p? */
static bool was_in(const struct variables *v,
		   const struct range_index_entry *own, size_t nr,
		   const struct var_place *p, uint8_t reg)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_REG && q->hi <= p->lo &&
		    range_reg_of_dwarf(q->reg) == reg)
			return true;
	}
	return false;
}

/* Is @p the sum of two registers one of which has become, straight before it,
 * as much more than the variable was as the other one is? It is that already.
 */
static bool is_twice(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p)
{
	struct sum said = of_place(v, p), was = {.known = false};
	size_t i = range_code_find(code, p->lo);
	uint8_t two[2], n = 0;
	struct held h;
	for (uint8_t reg = 0; reg < 16; reg++) {
		if (said.of[reg] && (said.of[reg] != 1 || n == 2))
			return false;
		if (said.of[reg])
			two[n++] = reg;
	}
	if (n != 2 || said.k || said.of_memory)
		return false;
	begin_walk(&h);
	for (size_t k = way_up(code, i); k < i; k++) {
		const struct range_insn *in = &code->insns[k];
		const struct var_place *q = place_at(v, own, nr, in->addr);
		if (q)
			was = value_of(v, q, &h);
		step(&h, in);
	}
	for (n = 0; n < 2; n++) {
		const struct sum *sum = &h.reg[two[n]];
		struct sum in = of_register(two[n]);
		in.known = was_in(v, own, nr, p, two[n]);
		if (makes(&was, &h.reg[two[!n]], sum) ||
		    makes(&in, &h.reg[two[!n]], sum))
			return true;
	}
	return false;
}

/* Once round a loop, from where @next begins at instruction @i: straight on up
 * to a branch into @q, which goes on to @next. What @q is there: *at_ret;
 * false: that is not how the loop is. */
static bool walk_round(const struct range_code *code, const struct variables *v,
		       const struct var_place *q, size_t i, struct held *h,
		       struct sum *at_ret)
{
	for (size_t n = 0; i < code->nr && n < LOOP_REACH; n++) {
		const struct range_insn *in = &code->insns[i];
		bool leads = in->kind == RK_BRANCH || in->kind == RK_JUMP;
		if (leads && in->target >= q->lo && in->target < q->hi) {
			*at_ret = value_of(v, q, h);
			i = range_code_find(code, in->target);
			return walk_out(code, q, i, h);
		}
		if (!range_falls(code, i))
			return false;
		step(h, in);
		i++;
	}
	return false;
}

/*
 * Is what @q says less than what is in registers straight behind it, and that
 * more, or the other way round, as a loop goes on, though nothing changes those
 * registers in @q? Then the one step would take back some of the other one: the
 * register has been counted already.
 */
static bool is_counted(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *q)
{
	const struct var_place *next = behind(code, v, own, nr, q);
	struct sum plain = next ? of_place(v, next) : constant(0);
	struct sum at, was, is, said = of_place(v, q);
	struct held h;
	int64_t down, up;
	if (!plain.known || plain.k || !has_register(&plain) || !said.k ||
	    writes_to(code, &plain, range_code_find(code, q->lo), q->hi))
		return false;
	size_t i = range_code_find(code, next->lo);
	begin_walk(&h);
	if (!walk_round(code, v, q, i, &h, &at))
		return false;
	was = value_of(v, next, &h);
	if (!walk_round(code, v, q, i, &h, &at))
		return false;
	is = value_of(v, next, &h);
	return differs_by(&at, &was, &down) && differs_by(&is, &at, &up) &&
	       ((down < 0 && up > 0) || (down > 0 && up < 0));
}

/* Is @p counted so, or another place where the same goes on behind a branch? */
static bool is_counted_on(const struct range_code *code,
			  const struct variables *v,
			  const struct range_index_entry *own, size_t nr,
			  const struct var_place *p)
{
	struct sum said = of_place(v, p);
	size_t i = range_code_find(code, p->lo);
	struct held h;
	if (!said.known || !said.k || !has_register(&said))
		return false;
	if (is_counted(code, v, own, nr, p))
		return true;
	begin_walk(&h);
	for (size_t n = 0;
	     i < code->nr && code->insns[i].addr < p->hi && n < SUM_REACH;
	     n++, i++) {
		const struct range_insn *in = &code->insns[i];
		const struct var_place *q = NULL;
		if (in->kind == RK_BRANCH)
			q = place_at(v, own, nr, in->target);
		else if (in->kind != RK_PLAIN)
			break;
		struct sum on = q ? value_of(v, q, &h) : said;
		if (q && q != p && is_same(&said, &on) &&
		    is_counted(code, v, own, nr, q))
			return true;
		if (!range_falls(code, i))
			break;
		step(&h, in);
	}
	return false;
}

/* The same, or straight behind it. */
static bool is_ahead(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *p)
{
	const struct var_place *next = behind(code, v, own, nr, p);
	size_t i = range_code_find(code, p->lo);
	struct held h;
	if (is_counted_on(code, v, own, nr, p))
		return true;
	if (!next || !is_counted_on(code, v, own, nr, next))
		return false;
	walk_up(code, i, &h);
	h.stored = false;
	h.wrote = 0;
	struct sum said = value_of(v, p, &h);
	if (!walk_out(code, p, i, &h))
		return false;
	struct sum on = value_of(v, next, &h);
	return is_same(&said, &on);
}

/* Is @p a register plus k, and straight on, by no statement, the variable in
 * one that is made in @p of that plus one less? It has not gone back. */
static bool is_back(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *own, size_t nr,
		    const struct var_place *p)
{
	const struct var_place *next = behind(code, v, own, nr, p);
	size_t i = range_code_find(code, p->lo);
	struct held h;
	int64_t k, less = p->offset > 0 ? 1 : -1;
	if (p->kind != VAR_VALUE || !p->offset || !next ||
	    next->kind != VAR_REG || !(next->flags & VAR_MOVED))
		return false;
	begin_walk(&h);
	struct sum said = value_of(v, p, &h);
	if (!walk_out(code, p, i, &h))
		return false;
	struct sum is = value_of(v, next, &h);
	return h.wrote >> range_reg_of_dwarf(next->reg) & 1 &&
	       differs_by(&said, &is, &k) && k == less;
}

bool range_doubt_linear(const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *own, size_t nr,
			const struct var_place *p)
{
	struct sum said = of_place(v, p);
	size_t i = range_code_find(code, p->lo);
	struct held h;
	if (!said.known || !(p->flags & VAR_BEGINS) ||
	    p->flags & (VAR_SCOPE | VAR_LAST | VAR_ONE) || i == code->nr ||
	    code->insns[i].addr != p->lo)
		return false;
	if (is_away(code, v, own, nr, p) || is_twice(code, v, own, nr, p) ||
	    is_ahead(code, v, own, nr, p) || is_back(code, v, own, nr, p))
		return true;
	/* It says what such a place before it does. */
	if (!i || !range_falls(code, i - 1))
		return false;
	const struct var_place *before =
		place_at(v, own, nr, code->insns[i - 1].addr);
	if (!before || before->hi != p->lo)
		return false;
	walk_up(code, i - 1, &h);
	struct sum was = value_of(v, before, &h);
	step(&h, &code->insns[i - 1]);
	said = value_of(v, p, &h);
	return is_same(&was, &said) && is_ahead(code, v, own, nr, before);
}
