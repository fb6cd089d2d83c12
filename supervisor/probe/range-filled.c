/* Memory that is filled only where a place says it is, see range-doubt.h. */
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-operand.h"

#define FILL_REACH 64 /* how far before a place a store is looked for */

/* Is some of the memory a place of a variable of at most @widest bytes anywhere
 * in [@lo, @hi)? */
static bool is_place(const struct variables *v,
		     const struct range_index_entry *all, size_t nr,
		     const struct var_place *p, uint64_t bytes, uint64_t widest,
		     uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		uint64_t width = v->vars[all[i].var].type.width;
		if (width <= widest && q->kind == VAR_MEM && q->reg == p->reg &&
		    q->lo < hi && q->hi > lo &&
		    range_overlap(q->offset, width, p->offset, bytes))
			return true;
	}
	return false;
}

/* Does @in move the stack pointer to make room for that? */
static bool makes_room(const struct range_insn *in, uint8_t base,
		       int64_t offset, uint64_t bytes)
{
	return base == RANGE_RSP && in->bits & RB_ADDS &&
	       in->wrote == 1u << RANGE_RSP && in->imm < 0 && offset >= 0 &&
	       bytes <= (uint64_t)-in->imm &&
	       (uint64_t)offset <= (uint64_t)-in->imm - bytes;
}

bool range_doubt_unset(const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct var_place *p, uint64_t bytes, size_t i)
{
	uint8_t base = range_reg_of_dwarf(p->reg);
	size_t k = i;
	while (k < code->nr && code->insns[k].addr < p->hi &&
	       !range_is_operand(&code->insns[k], base, p->offset, bytes) &&
	       range_goes_straight(code, k, base))
		k++;
	if (k == code->nr || code->insns[k].addr >= p->hi ||
	    !range_is_operand(&code->insns[k], base, p->offset, bytes) ||
	    code->insns[k].bits & RB_READS || !i || !range_falls(code, i - 1))
		return false;
	for (k = i; k > 0 && i - k < FILL_REACH && range_falls(code, k - 1);
	     k--) {
		const struct range_insn *in = &code->insns[k - 1];
		if (makes_room(in, base, p->offset, bytes))
			break;
		if (range_is_operand(in, base, p->offset, bytes))
			return false;
	}
	return !is_place(v, all, nr, p, bytes, UINT64_MAX, code->insns[k].addr,
			 code->insns[i].addr);
}

/* Is the memory an operand in what goes straight on to behind instruction @k,
 * as far as the last call (which writes to the stack pointer) or way in? Loads
 * of more than @most bytes are of something else, and so are stores if a wider
 * variable @was_there. */
static bool is_used_up_to(const struct range_code *code, size_t k, uint8_t base,
			  int64_t offset, uint64_t bytes, uint64_t most,
			  bool was_there)
{
	for (size_t n = 0; n < FILL_REACH; k--, n++) {
		const struct range_insn *in = &code->insns[k];
		if (in->wrote >> base & 1)
			return false;
		if (range_is_operand(in, base, offset, bytes) &&
		    ((in->bits & RB_WRITES && !was_there) ||
		     in->mem_size <= most))
			return true;
		if (!k || in->bits & RB_LEADER || !range_falls(code, k - 1))
			return false;
	}
	return true;
}

bool range_doubt_filled(const struct range_edges *e,
			const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *all, size_t nr,
			const struct var_place *p, uint64_t bytes, size_t i)
{
	uint8_t base = range_reg_of_dwarf(p->reg);
	const struct range_insn *in = NULL;
	for (size_t k = i; k < code->nr && code->insns[k].addr < p->hi; k++) {
		in = &code->insns[k];
		if (range_is_operand(in, base, p->offset, bytes))
			break;
		if (!range_goes_straight(code, k, base))
			return false;
	}
	if (!in || !range_is_operand(in, base, p->offset, bytes) ||
	    in->bits & RB_READS || in->addr + in->len != p->hi)
		return false;
	/* As much as is put there was never a wider one's. */
	uint64_t lo = code->insns[i].addr;
	uint64_t widest = in->mem_size == bytes ? bytes : UINT64_MAX;
	if (is_place(v, all, nr, p, bytes, widest, lo - 1, lo))
		return false;
	bool was_there = is_place(v, all, nr, p, bytes, UINT64_MAX, lo - 1, lo);
	uint64_t most = was_there || in == &code->insns[i] ? bytes : UINT64_MAX;
	if (i > 0 && range_falls(code, i - 1) &&
	    is_used_up_to(code, i - 1, base, p->offset, bytes, most, was_there))
		return false;
	for (size_t a = range_edges_first(e, lo);
	     a < e->nr && e->edge[a].to == lo; a++)
		if (is_used_up_to(code, e->edge[a].from, base, p->offset, bytes,
				  most, was_there))
			return false;
	return true;
}

/* Where the next access to the memory of @p ends that those who come from
 * instruction @i get to straight on; 0: there is none. */
static uint64_t next_access(const struct range_code *code,
			    const struct var_place *p, uint64_t bytes, size_t i)
{
	uint8_t base = range_reg_of_dwarf(p->reg);
	for (size_t k = i; k < code->nr && k < i + FILL_REACH; k++) {
		const struct range_insn *in = &code->insns[k];
		if (range_is_operand(in, base, p->offset, bytes))
			return in->addr + in->len;
		if (!range_goes_straight(code, k, base))
			return 0;
	}
	return 0;
}

bool range_doubt_loads(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct var_place *p, size_t i, bool is_led_to)
{
	struct range_load l = {.at = 0};
	while (p->kind == VAR_EXPR && range_next_load(v, p, &l)) {
		struct var_place memory = {.kind = VAR_MEM,
					   .reg = l.reg,
					   .offset = l.disp,
					   .lo = p->lo,
					   .hi = p->hi};
		if (!is_led_to &&
		    range_doubt_unset(code, v, all, nr, &memory, l.bytes, i))
			return true;
		/* It may be filled when the place has ended. */
		uint64_t end = next_access(code, &memory, l.bytes, i);
		if (end > memory.hi)
			memory.hi = end;
		if (range_doubt_filled(e, code, v, all, nr, &memory, l.bytes,
				       i))
			return true;
	}
	return false;
}
