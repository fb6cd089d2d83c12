/* Places that another one of the same variable contradicts, because nothing
 * writes to that meanwhile, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

/* Instructions that are gone through. */
#define SAME_REACH 32
#define HOME_REACH 1024

/* Registers and memory that can be written to, and are all of the variable. */
static bool is_held(const struct var_place *q)
{
	return (q->kind == VAR_REG
			? !q->shift && !(q->flags & VAR_PART)
			: q->kind == VAR_MEM && q->flags & VAR_FRAME) &&
	       q->lo < q->hi &&
	       !(q->flags & (VAR_SCOPE | VAR_AMONG | VAR_ONE)) &&
	       range_reg_of_dwarf(q->reg) < 16;
}

static bool is_alike(const struct var_place *a, const struct var_place *b)
{
	return a->kind == b->kind && a->reg == b->reg &&
	       a->offset == b->offset && a->shift == b->shift;
}

/* May instruction @in change what is in @q, of 8 bytes at most, which nobody
 * else has the address of? */
static bool changes(const struct range_insn *in, const struct var_place *q)
{
	uint8_t reg = range_reg_of_dwarf(q->reg);
	if (in->wrote >> reg & 1)
		return true;
	return q->kind == VAR_MEM && in->bits & RB_WRITES && in->base == reg &&
	       (in->index != RANGE_NO_REG ||
		(in->disp < q->offset + 8 &&
		 q->offset < in->disp + in->mem_size));
}

/* Is the variable in a place like @q before instruction @i ends, and left
 * there? */
static bool stays_in(const struct range_code *code, const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *q, size_t i)
{
	uint64_t addr = code->insns[i].addr;
	for (size_t k = 0; k < nr; k++) {
		const struct var_place *r = &v->places[own[k].place];
		if (addr >= r->lo && addr < r->hi && is_alike(r, q))
			return !changes(&code->insns[i], q);
	}
	return false;
}

/* The same of all instructions that control comes from to instruction @i. */
static bool comes_in(const struct range_edges *e, const struct range_code *code,
		     const struct variables *v,
		     const struct range_index_entry *own, size_t nr,
		     const struct var_place *q, size_t i)
{
	uint64_t addr = code->insns[i].addr;
	bool any = i > 0 && range_falls(code, i - 1);
	if (code->insns[i].bits & (RB_TABLE | RB_ENDBR) ||
	    (any && !stays_in(code, v, own, nr, q, i - 1)))
		return false;
	for (size_t a = range_edges_first(e, addr);
	     a < e->nr && e->edge[a].to == addr; a++, any = true)
		if (!stays_in(code, v, own, nr, q, e->edge[a].from))
			return false;
	return any;
}

/* Does control go from instruction @i straight on to address @to, with @q left
 * alone, and comes in by no other way? */
static bool goes_to(const struct range_edges *e, const struct range_code *code,
		    const struct var_place *q, size_t i, uint64_t to)
{
	for (size_t n = 0; n < SAME_REACH && i < code->nr; n++, i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->addr == to)
			return true;
		if ((n && range_is_led_to(e, code, i)) || changes(in, q) ||
		    (in->kind != RK_PLAIN && in->kind != RK_BRANCH) ||
		    !range_falls(code, i))
			return false;
	}
	return false;
}

/* What straight on to instruction @at was put in register @reg last; NULL: it
 * is not known. */
static const struct range_insn *put_in(const struct range_code *code, size_t at,
				       uint8_t reg)
{
	for (size_t k = at, n = 0; k > 0 && n < SAME_REACH; k--, n++) {
		if (code->insns[k].bits & RB_LEADER ||
		    !range_falls(code, k - 1))
			break;
		if (code->insns[k - 1].wrote >> reg & 1)
			return &code->insns[k - 1];
	}
	return NULL;
}

/* Is @p, which begins with instruction @at, a copy of what is in @q? */
static bool is_copied(const struct range_code *code, const struct var_place *p,
		      const struct var_place *q, size_t at)
{
	uint8_t from = range_reg_of_dwarf(q->reg);
	const struct range_insn *in =
		p->kind == VAR_REG
			? put_in(code, at, range_reg_of_dwarf(p->reg))
			: NULL;
	if (!in || in->kind != RK_PLAIN)
		return false;
	if (q->kind == VAR_MEM)
		return in->bits & RB_READS && in->base == from &&
		       in->disp == q->offset && in->reg < 16;
	return !in->mem_size && in->bits & RB_COMPUTES &&
	       !(in->bits & RB_LEA) && !(in->def & RANGE_FLAGS) &&
	       (in->use & RANGE_ALL_REGS) == 1u << from;
}

/* Is the variable in another place on all ways to @p, and straight on behind
 * it, and nothing is put there meanwhile, and @p is no copy of that? A
 * statement may give it what it has, also a constant: where the compiler says
 * which places are moves, only those are asked. */
static bool returns(const struct range_edges *e, const struct range_code *code,
		    const struct variables *v,
		    const struct range_index_entry *own, size_t nr,
		    const struct var_place *p)
{
	size_t at = range_code_find(code, p->lo);
	bool views = false;
	for (size_t k = 0; k < nr; k++)
		views |= v->places[own[k].place].flags & VAR_MOVED;
	if (at == code->nr || code->insns[at].addr != p->lo || p->lo == p->hi ||
	    p->kind == VAR_CONST || (views && !(p->flags & VAR_MOVED)))
		return false;
	for (size_t k = 0; k < nr; k++) {
		const struct var_place *q = &v->places[own[k].place];
		if (!is_held(q) || q->lo < p->hi || is_alike(p, q) ||
		    is_copied(code, p, q, at) ||
		    !goes_to(e, code, q, at, q->lo))
			continue;
		for (size_t i = at, n = 0; n < SAME_REACH; i--, n++) {
			if (comes_in(e, code, v, own, nr, q, i))
				return true;
			if (!i || range_is_led_to(e, code, i) ||
			    !range_falls(code, i - 1) ||
			    changes(&code->insns[i - 1], q))
				break;
		}
	}
	return false;
}

/* Does @p, a constant or what would have to be computed, lead by one way only
 * to where the variable is in a register that is needed, and that nothing is
 * put in meanwhile? Not if it was put there before. */
static bool is_followed(const struct range_edges *e,
			const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *own, size_t nr,
			const struct var_place *p)
{
	size_t i = range_code_find(code, p->lo), first = i;
	uint64_t to = p->hi;
	uint32_t wrote = 0;
	if ((p->kind != VAR_CONST && p->kind != VAR_VALUE &&
	     p->kind != VAR_EXPR) ||
	    p->flags & VAR_SCOPE || i == code->nr ||
	    code->insns[i].addr != p->lo || p->lo == p->hi)
		return false;
	for (size_t n = 0; i < code->nr && code->insns[i].addr < p->hi;
	     i++, n++) {
		const struct range_insn *in = &code->insns[i];
		if (n == SAME_REACH || (n && range_is_led_to(e, code, i)))
			return false;
		wrote |= in->wrote;
		if (in->kind == RK_JUMP) {
			to = in->target;
			break;
		}
		if (in->kind != RK_PLAIN || !range_falls(code, i))
			return false;
	}
	size_t at = range_code_find(code, to);
	if (at == code->nr || code->insns[at].addr != to)
		return false;
	for (size_t k = 0; k < nr; k++) {
		const struct var_place *q = &v->places[own[k].place];
		uint8_t reg = range_reg_of_dwarf(q->reg);
		if (q->kind != VAR_REG || !is_held(q) || to < q->lo ||
		    to >= q->hi || wrote >> reg & 1 ||
		    !(code->insns[at].live >> reg & 1))
			continue;
		const struct range_insn *in = put_in(code, first, reg);
		unsigned width = v->vars[own[k].var].type.width;
		if (range_doubt_walk(code, v, own, nr, q, width, at))
			continue;
		return !in || !(in->bits & RB_IMM) || p->kind != VAR_CONST ||
		       in->imm != p->offset;
	}
	return false;
}

bool range_doubt_same(const struct range_edges *e,
		      const struct range_code *code, const struct variables *v,
		      const struct range_index_entry *own, size_t nr,
		      const struct var_place *p, bool taken)
{
	return (!taken && returns(e, code, v, own, nr, p)) ||
	       is_followed(e, code, v, own, nr, p);
}

/* Does control get from behind instruction @from to where the variable is in
 * memory like @q, and nothing is put there on the way? */
static bool gets_to(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *own, size_t nr,
		    const struct var_place *p, const struct var_place *q,
		    size_t from)
{
	uint32_t todo[HOME_REACH];
	size_t done = 0, nr_todo = 0;
	if (range_falls(code, from))
		todo[nr_todo++] = (uint32_t)from + 1;
	while (done < nr_todo) {
		size_t i = todo[done++];
		const struct range_insn *in = &code->insns[i];
		bool elsewhere = false;
		for (size_t k = 0; k < nr; k++) {
			const struct var_place *r = &v->places[own[k].place];
			if (r == p || in->addr < r->lo || in->addr >= r->hi)
				continue;
			if (is_alike(r, q))
				return true;
			elsewhere = true;
		}
		bool call = in->kind == RK_CALL || in->kind == RK_CALL_TO;
		if (elsewhere || (!call && changes(in, q)))
			continue;
		size_t next[2] = {i + 1, code->nr};
		if (!range_falls(code, i))
			next[0] = code->nr;
		if (in->target && in->kind != RK_CALL)
			next[1] = range_code_find(code, in->target);
		for (unsigned n = 0; n < 2; n++) {
			size_t k = 0;
			while (k < nr_todo && todo[k] != next[n])
				k++;
			if (k == nr_todo && next[n] < code->nr &&
			    nr_todo < HOME_REACH)
				todo[nr_todo++] = (uint32_t)next[n];
		}
	}
	return false;
}

uint64_t range_doubt_end(const struct range_code *code,
			 const struct variables *v,
			 const struct range_index_entry *own, size_t nr,
			 const struct var_place *p, bool taken)
{
	uint8_t reg = range_reg_of_dwarf(p->reg);
	if (taken || p->kind != VAR_REG || !is_held(p))
		return p->hi;
	for (size_t k = 0; k < nr; k++) {
		const struct var_place *q = &v->places[own[k].place];
		if (q->kind != VAR_MEM || !is_held(q) || q->hi != p->lo)
			continue;
		for (size_t i = range_code_find(code, p->lo);
		     i < code->nr && code->insns[i].addr < p->hi; i++) {
			const struct range_insn *in = &code->insns[i];
			bool loads = in->bits & RB_READS && in->reg == reg &&
				     in->base == range_reg_of_dwarf(q->reg) &&
				     in->disp == q->offset;
			bool call =
				in->kind == RK_CALL || in->kind == RK_CALL_TO;
			if (in->wrote >> reg & 1 && !loads &&
			    !(in->use >> reg & 1) &&
			    gets_to(code, v, own, nr, p, q, i))
				return in->addr;
			if (!call && changes(in, q))
				break;
		}
	}
	return p->hi;
}
