/* See range-doubt.h. */
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-operand.h"

bool range_doubt_store(const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, const struct range_insn *in)
{
	if (!(p->flags & VAR_ENDS) || in->addr + in->len < p->hi)
		return false;
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->lo == p->hi && q->kind == p->kind && q->reg == p->reg &&
		    q->offset == p->offset)
			return false;
	}
	return true;
}

/* Is memory at @reg + @disp, @bytes of it, an operand that is changed? */
static bool is_changed(const struct range_code *code, uint8_t reg, int64_t disp,
		       uint64_t bytes)
{
	for (size_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->bits & RB_READS && in->bits & RB_WRITES &&
		    in->base == reg && in->index == RANGE_NO_REG &&
		    range_overlap(in->disp, in->mem_size, disp, bytes))
			return true;
	}
	return false;
}

bool range_doubt_memory(const struct range_code *code,
			const struct variables *v, const struct var_place *p)
{
	struct range_load l = {.at = 0};
	while (p->kind == VAR_EXPR && range_next_load(v, p, &l))
		if (is_changed(code, range_reg_of_dwarf(l.reg), l.disp,
			       l.bytes))
			return true;
	return false;
}

bool range_doubt_half(const struct range_code *code, size_t i, int64_t offset,
		      uint64_t bytes)
{
	uint8_t base = code->insns[i].base;
	for (size_t k = i; range_goes_straight(code, k, base); k++) {
		const struct range_insn *next = &code->insns[k + 1];
		if (range_is_operand(next, base, offset, bytes))
			return next->bits & RB_READS && next->bits & RB_WRITES;
	}
	return false;
}

/* How far before a store its bits were read. */
#define MASK_REACH 12

/* Has instruction @k masked what was read from where @store writes? */
static bool masks_old(const struct range_code *code, size_t k,
		      const struct range_insn *store)
{
	const struct range_insn *and = &code->insns[k];
	if (!(and->bits & RB_MASKS) || and->mem_size)
		return false;
	for (size_t i = k; i-- > 0 && k - i < MASK_REACH;) {
		const struct range_insn *load = &code->insns[i];
		if (!range_goes_straight(code, i, store->base))
			return false;
		if (load->wrote & and->wrote)
			return load->bits & RB_READS &&
			       !(load->bits & RB_WRITES) &&
			       load->reg != RANGE_NO_REG &&
				       and->wrote == 1u << load->reg &&
			       load->base == store->base &&
			       load->index == store->index &&
			       load->disp == store->disp;
	}
	return false;
}

bool range_doubt_kept(const struct range_code *code, size_t i, uint64_t mask)
{
	const struct range_insn *in = &code->insns[i];
	if (in->bits & RB_MASKS)
		return !(mask & ~(uint64_t)in->imm);
	for (size_t k = i; k-- > 0 && i - k < MASK_REACH;) {
		const struct range_insn *before = &code->insns[k];
		if (!range_goes_straight(code, k, in->base) ||
		    before->bits & RB_STORES)
			return false;
		if (masks_old(code, k, in))
			return !(mask & ~(uint64_t)before->imm);
	}
	return false;
}

bool range_doubt_put_back(const struct range_code *code, size_t i)
{
	const struct range_insn *in = &code->insns[i];
	for (size_t k = i; k < i + MASK_REACH; k++) {
		if (!range_goes_straight(code, k, in->base))
			return false;
		const struct range_insn *next = &code->insns[k + 1];
		if (next->bits & RB_WRITES && next->base == in->base &&
		    next->index == in->index && next->disp == in->disp)
			return true;
	}
	return false;
}

/* Was the variable in register @reg until @p began? */
static bool comes_out_of(const struct variables *v,
			 const struct range_index_entry *own, size_t nr,
			 const struct var_place *p, uint8_t reg)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[own[i].place];
		if (q->kind == VAR_REG && q->hi == p->lo &&
		    range_reg_of_dwarf(q->reg) == reg)
			return true;
	}
	return false;
}

/* Does @in move the stack pointer @base by a constant? Then what was at
 * *@offset lies elsewhere from it. */
static bool moves(const struct range_insn *in, uint8_t base, int64_t *offset)
{
	return base == RANGE_RSP && in->bits & RB_ADDS && !in->mem_size &&
	       in->wrote == 1u << RANGE_RSP &&
	       !__builtin_sub_overflow(*offset, in->imm, offset);
}

bool range_doubt_early(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *own, size_t nr,
		       const struct var_place *p, uint64_t bytes, size_t i)
{
	uint8_t base = range_reg_of_dwarf(p->reg);
	int64_t offset = p->offset;
	uint32_t wrote = 0;
	bool is_cut = !(p->flags & (VAR_ENDS | VAR_SCOPE)) && base < 16;
	for (size_t k = i; k < code->nr; k++) {
		const struct range_insn *in = &code->insns[k];
		bool behind = in->addr >= p->hi;
		if (behind && !is_cut)
			break;
		/* The last one may put somebody else there. */
		if (range_is_operand(in, base, offset, bytes))
			return !(in->bits & RB_READS) &&
			       (behind ? in->reg < 16 && !(wrote >> in->reg & 1)
				       : !range_doubt_store(v, own, nr, p,
							    in) ||
						 comes_out_of(v, own, nr, p,
							      in->reg));
		wrote |= in->wrote;
		if (!range_goes_straight(code, k, RANGE_NO_REG) ||
		    (base < 16 && in->wrote >> base & 1 &&
		     !(is_cut && moves(in, base, &offset))))
			break;
	}
	return false;
}

bool range_doubt_left(const struct range_code *code, const struct var_place *p,
		      size_t i)
{
	const struct range_insn *in = &code->insns[i];
	if (!(p->flags & VAR_SCOPE) || in->addr + in->len != p->hi ||
	    in->reg == RANGE_NO_REG)
		return false;
	for (size_t k = i; k-- > 0 && i - k < MASK_REACH;) {
		const struct range_insn *before = &code->insns[k];
		if (!range_goes_straight(code, k, RANGE_NO_REG))
			return false;
		if (before->wrote >> in->reg & 1)
			return before->bits & RB_LEA &&
			       before->base == RANGE_RSP;
	}
	return false;
}

/* Frames that differ by how far they are from their register, of one block. */
#define MOST_ROWS 64

/* How long the block of scope place @p is: with the places of @var before and
 * behind it. */
static uint64_t block_of(const struct variables *v,
			 const struct range_index_entry *all, size_t nr,
			 uint32_t var, const struct var_place *p)
{
	uint64_t lo = p->lo, hi = p->hi;
	unsigned rows = 0;
	for (size_t i = 0; i < nr && rows < MOST_ROWS; i++) {
		const struct var_place *q = &v->places[all[i].place];
		if (all[i].var != var || !(q->flags & VAR_SCOPE) ||
		    (q->hi != lo && q->lo != hi))
			continue;
		if (q->hi == lo)
			lo = q->lo;
		else
			hi = q->hi;
		rows++;
		i = SIZE_MAX; /* from the first one on */
	}
	return hi - lo;
}

/* The same of what is no variable, if its block is shorter. */
static bool is_other(const struct variables *v,
		     const struct range_index_entry *all, size_t nr_all,
		     uint32_t var, const struct var_place *p, int64_t offset,
		     uint64_t bytes, uint64_t addr)
{
	size_t nr;
	const struct var_memory *m = variables_others(v, p->function, &nr);
	for (size_t i = 0; i < nr; i++)
		if (m[i].bytes && m[i].reg == p->reg && addr >= m[i].lo &&
		    addr < m[i].hi &&
		    range_overlap(offset, bytes, m[i].offset, m[i].bytes) &&
		    m[i].block < block_of(v, all, nr_all, var, p))
			return true;
	return false;
}

bool range_doubt_slot(const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      uint32_t var, const struct var_place *p, int64_t offset,
		      uint64_t bytes, uint64_t addr)
{
	const struct var_place *first = NULL; /* of a struct's members */
	const struct variable *whose = NULL;
	if (!(p->flags & VAR_SCOPE))
		return false;
	if (is_other(v, all, nr, var, p, offset, bytes, addr))
		return true;
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		const struct variable *other = &v->vars[all[i].var];
		if (q->kind != VAR_MEM || q->reg != p->reg || addr < q->lo ||
		    addr >= q->hi)
			continue;
		/* What lies between two of them is the struct's, too. */
		if (!first || first->lo != q->lo || first->hi != q->hi ||
		    first->offset > q->offset ||
		    !range_same_object(whose, other)) {
			first = q;
			whose = other;
		}
		uint64_t between =
			(uint64_t)q->offset - (uint64_t)first->offset;
		if (!range_overlap(offset, bytes, first->offset,
				   between + var_type_bytes(&other->type)) ||
		    range_same_object(other, &v->vars[var]))
			continue;
		if (!(q->flags & VAR_SCOPE) || q->hi - q->lo <= p->hi - p->lo)
			return true;
	}
	return false;
}
