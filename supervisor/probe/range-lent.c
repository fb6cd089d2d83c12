/*
 * What others put into memory that was lent to them, see range-doubt.h.
 *
 * clang's "f(&x); if (x)": x is in memory up to the call, and then what was
 * loaded. Where the load is part of the comparison there is no register to
 * name, and nothing is said of x.
 */
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-operand.h"

#define LENT_REACH   64 /* instructions */
#define CHOICE_REACH 8

/* The memory of a place as instructions name it from where we are. */
struct lent {
	uint8_t base;
	int64_t offset;
	uint64_t bytes;
};

static bool is_call(const struct range_insn *in)
{
	return in->kind == RK_CALL || in->kind == RK_CALL_TO;
}

/* Does @in make its address? */
static bool hands_out(const struct range_insn *in, const struct lent *l)
{
	return in->bits & RB_LEA && in->base == l->base &&
	       in->index == RANGE_NO_REG && in->disp == l->offset;
}

/* Past @in. False: it is not known any more where the memory is. */
static bool step(const struct range_insn *in, struct lent *l)
{
	int64_t up;
	if (is_call(in) || !(in->wrote >> l->base & 1))
		return true;
	if (l->base != RANGE_RSP || in->kind != RK_PLAIN || in->mem_size)
		return false;
	if (in->bits & RB_ADDS)
		up = in->imm;
	else if (in->bits & RB_POP)
		up = 8;
	else if (in->bits & RB_STORES)
		up = -8;
	else
		return false;
	return !__builtin_sub_overflow(l->offset, up, &l->offset);
}

/* Is the variable said to get another place at @addr? */
static bool is_elsewhere(const struct variables *v,
			 const struct range_index_entry *own, size_t nr,
			 const struct var_place *p, uint64_t addr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q != p && q->lo <= addr && addr < q->hi)
			return true;
	}
	return false;
}

/* Or another one to be in that memory, which it was not said to be at @p? */
static bool is_others(const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      const struct variable *var, const struct var_place *p,
		      const struct lent *l, uint64_t addr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		const struct variable *other = &v->vars[all[i].var];
		if (q->kind == VAR_MEM && q->lo <= addr && addr < q->hi &&
		    q->lo > p->lo && other != var &&
		    range_reg_of_dwarf(q->reg) == l->base &&
		    range_overlap(q->offset, var_type_bytes(&other->type),
				  l->offset, l->bytes))
			return true;
	}
	return false;
}

/* Does instruction @i go straight on to the next, and nobody else come there?
 * What a call comes back to is a leader in any case. */
static bool goes_on(const struct range_edges *e, const struct range_code *code,
		    size_t i)
{
	bool call = is_call(&code->insns[i]);
	return range_falls(code, i) &&
	       (call || !(code->insns[i + 1].bits & RB_LEADER)) &&
	       !range_is_led_to(e, code, i + 1);
}

/* Does @in write a register in part, or perhaps? */
static bool is_choice(const struct range_insn *in)
{
	return in->wrote & ~in->def;
}

/*
 * Is what instruction @i reads only a value if a test says so, as where the
 * call may have failed and put nothing there? Then it is loaded by a cmov, or
 * ahead of one.
 */
static bool is_chosen(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	if (is_choice(in))
		return true;
	for (size_t k = i; in->reg < 16 && k < i + CHOICE_REACH; k++) {
		if (!range_goes_straight(code, k, RANGE_NO_REG))
			break;
		const struct range_insn *next = &code->insns[k + 1];
		if ((next->wrote | next->use) >> in->reg & 1)
			return is_choice(next);
	}
	return false;
}

size_t range_lent_read(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr_all,
		       const struct range_index_entry *own, size_t nr,
		       const struct variable *var, const struct var_place *p)
{
	struct lent l = {.base = range_reg_of_dwarf(p->reg),
			 .offset = p->offset,
			 .bytes = var->type.width};
	bool lent = false, called = false;
	if (!(p->flags & VAR_FRAME) || p->flags & (VAR_SCOPE | VAR_LAST) ||
	    (l.base != RANGE_RSP && l.base != RANGE_RBP) || var->type.nr_dims ||
	    var->type.bit_size || var->flags & VAR_IN_UNION)
		return code->nr;
	size_t i = range_code_find(code, p->lo);
	for (size_t n = 0; i < code->nr && n < LENT_REACH; i++, n++) {
		const struct range_insn *in = &code->insns[i];
		bool behind = in->addr >= p->hi;
		bool makes = hands_out(in, &l);
		if (behind && (makes || is_elsewhere(v, own, nr, p, in->addr)))
			break;
		if (range_is_operand(in, l.base, l.offset, l.bytes) &&
		    (behind || in->bits & RB_WRITES)) {
			bool its = in->disp == l.offset &&
				   in->mem_size == l.bytes &&
				   !(in->bits & RB_WRITES) &&
				   !is_chosen(code, i) &&
				   !is_others(v, all, nr_all, var, p, &l,
					      in->addr);
			return behind && called && its ? i : code->nr;
		}
		lent |= makes;
		called |= lent && is_call(in);
		if (!step(in, &l) || !goes_on(e, code, i))
			break;
	}
	return code->nr;
}
