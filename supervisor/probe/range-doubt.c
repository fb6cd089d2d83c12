/* See range-doubt.h. */
#include "supervisor/probe/range-doubt.h"

#include <string.h>

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

/* Offsets are hostile: no sums of them. */
static bool overlap(int64_t a, uint64_t a_bytes, int64_t b, uint64_t b_bytes)
{
	return a <= b ? (uint64_t)b - (uint64_t)a < a_bytes
		      : (uint64_t)a - (uint64_t)b < b_bytes;
}

/* Is memory at @reg + @disp, @bytes of it, an operand that is changed? */
static bool is_changed(const struct range_code *code, uint8_t reg, int64_t disp,
		       uint64_t bytes)
{
	for (size_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->bits & RB_READS && in->bits & RB_WRITES &&
		    in->base == reg && in->index == RANGE_NO_REG &&
		    overlap(in->disp, in->mem_size, disp, bytes))
			return true;
	}
	return false;
}

/* Memory that an expression reads, at a register plus a constant. */
struct load {
	uint32_t at; /* the next operation to look at */
	uint8_t reg; /* DWARF's */
	int64_t disp;
	uint64_t bytes;
};

static bool next_load(const struct variables *v, const struct var_place *p,
		      struct load *l)
{
	const struct var_op *ops = v->ops + p->first_op;
	while (l->at < p->nr_ops) {
		uint32_t base = l->at++;
		if (!base || ops[base].code != VAR_OP_LOAD)
			continue;
		l->bytes = (uint64_t)ops[base--].arg;
		l->disp = 0;
		if (ops[base].code == VAR_OP_PLUS_CONST && base > 0)
			l->disp = ops[base--].arg;
		l->reg = (uint8_t)ops[base].arg;
		if (ops[base].code == VAR_OP_REG)
			return true;
	}
	return false;
}

bool range_doubt_memory(const struct range_code *code,
			const struct variables *v, const struct var_place *p)
{
	struct load l = {.at = 0};
	while (p->kind == VAR_EXPR && next_load(v, p, &l))
		if (is_changed(code, range_reg_of_dwarf(l.reg), l.disp,
			       l.bytes))
			return true;
	return false;
}

/* Is some of the memory at @base + @offset, @bytes of it, an operand? */
static bool is_operand(const struct range_insn *in, uint8_t base,
		       int64_t offset, uint64_t bytes)
{
	return in->bits & (RB_READS | RB_WRITES) && in->base == base &&
	       in->index == RANGE_NO_REG &&
	       overlap(in->disp, in->mem_size, offset, bytes);
}

/* Control that has come to instruction @i goes on to the next, and comes there
 * from nowhere else; the register is what it was. */
static bool goes_straight(const struct range_code *code, size_t i, uint8_t reg)
{
	const struct range_insn *in = &code->insns[i];
	return in->kind == RK_PLAIN && range_falls(code, i) &&
	       !(code->insns[i + 1].bits & RB_LEADER) &&
	       (reg >= 16 || !(in->wrote >> reg & 1));
}

bool range_doubt_half(const struct range_code *code, size_t i, int64_t offset,
		      uint64_t bytes)
{
	uint8_t base = code->insns[i].base;
	for (size_t k = i; goes_straight(code, k, base); k++) {
		const struct range_insn *next = &code->insns[k + 1];
		if (is_operand(next, base, offset, bytes))
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
		if (!goes_straight(code, i, store->base))
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
		if (!goes_straight(code, k, in->base) ||
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
		if (!goes_straight(code, k, in->base))
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
		if (is_operand(in, base, offset, bytes))
			return !(in->bits & RB_READS) &&
			       (behind ? in->reg < 16 && !(wrote >> in->reg & 1)
				       : !range_doubt_store(v, own, nr, p,
							    in) ||
						 comes_out_of(v, own, nr, p,
							      in->reg));
		wrote |= in->wrote;
		if (!goes_straight(code, k, RANGE_NO_REG) ||
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
		if (!goes_straight(code, k, RANGE_NO_REG))
			return false;
		if (before->wrote >> in->reg & 1)
			return before->bits & RB_LEA &&
			       before->base == RANGE_RSP;
	}
	return false;
}

#define FILL_REACH 64 /* how far before a place a store is looked for */
/* Is some of the memory a place of a variable anywhere in [@lo, @hi)? */
static bool is_place(const struct variables *v,
		     const struct range_index_entry *all, size_t nr,
		     const struct var_place *p, uint64_t bytes, uint64_t lo,
		     uint64_t hi)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		uint64_t width = v->vars[all[i].var].type.width;
		if (q->kind == VAR_MEM && q->reg == p->reg && q->lo < hi &&
		    q->hi > lo && overlap(q->offset, width, p->offset, bytes))
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
	       !is_operand(&code->insns[k], base, p->offset, bytes) &&
	       goes_straight(code, k, base))
		k++;
	if (k == code->nr || code->insns[k].addr >= p->hi ||
	    !is_operand(&code->insns[k], base, p->offset, bytes) ||
	    code->insns[k].bits & RB_READS || !i || !range_falls(code, i - 1))
		return false;
	for (k = i; k > 0 && i - k < FILL_REACH && range_falls(code, k - 1);
	     k--) {
		const struct range_insn *in = &code->insns[k - 1];
		if (makes_room(in, base, p->offset, bytes))
			break;
		if (is_operand(in, base, p->offset, bytes))
			return false;
	}
	return !is_place(v, all, nr, p, bytes, code->insns[k].addr,
			 code->insns[i].addr);
}

/* Is the memory an operand in what goes straight on to behind instruction @k,
 * as far as the last call (which writes to the stack pointer) or way in? Loads
 * of more than @most bytes are of something else. */
static bool is_used_up_to(const struct range_code *code, size_t k, uint8_t base,
			  int64_t offset, uint64_t bytes, uint64_t most)
{
	for (size_t n = 0; n < FILL_REACH; k--, n++) {
		const struct range_insn *in = &code->insns[k];
		if (in->wrote >> base & 1)
			return false;
		if (is_operand(in, base, offset, bytes) &&
		    (in->bits & RB_WRITES || in->mem_size <= most))
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
		if (is_operand(in, base, p->offset, bytes))
			break;
		if (!goes_straight(code, k, base))
			return false;
	}
	if (!in || !is_operand(in, base, p->offset, bytes) ||
	    in->bits & RB_READS || in->addr + in->len != p->hi ||
	    is_place(v, all, nr, p, bytes, code->insns[i].addr - 1,
		     code->insns[i].addr))
		return false;
	uint64_t most = in == &code->insns[i] ? bytes : UINT64_MAX;
	if (i > 0 && range_falls(code, i - 1) &&
	    is_used_up_to(code, i - 1, base, p->offset, bytes, most))
		return false;
	for (size_t a = range_edges_first(e, code->insns[i].addr);
	     a < e->nr && e->edge[a].to == code->insns[i].addr; a++)
		if (is_used_up_to(code, e->edge[a].from, base, p->offset, bytes,
				  most))
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
		if (is_operand(in, base, p->offset, bytes))
			return in->addr + in->len;
		if (!goes_straight(code, k, base))
			return 0;
	}
	return 0;
}

bool range_doubt_loads(const struct range_edges *e,
		       const struct range_code *code, const struct variables *v,
		       const struct range_index_entry *all, size_t nr,
		       const struct var_place *p, size_t i, bool is_led_to)
{
	struct load l = {.at = 0};
	while (p->kind == VAR_EXPR && next_load(v, p, &l)) {
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

/* Members of one struct, or union. */
static bool same_object(const struct variable *a, const struct variable *b)
{
	size_t len = strcspn(a->name, ".[");
	return a->line == b->line && len == strcspn(b->name, ".[") &&
	       !strncmp(a->name, b->name, len) && !strcmp(a->scope, b->scope);
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
		    overlap(offset, bytes, m[i].offset, m[i].bytes) &&
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
		    first->offset > q->offset || !same_object(whose, other)) {
			first = q;
			whose = other;
		}
		uint64_t between =
			(uint64_t)q->offset - (uint64_t)first->offset;
		if (!overlap(offset, bytes, first->offset,
			     between + var_type_bytes(&other->type)) ||
		    same_object(other, &v->vars[var]))
			continue;
		if (!(q->flags & VAR_SCOPE) || q->hi - q->lo <= p->hi - p->lo)
			return true;
	}
	return false;
}

/* Does the variable of @p lie there throughout @q as well? */
static bool is_within(const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      uint32_t var, const struct var_place *p,
		      const struct var_place *q)
{
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *own = &v->places[all[i].place];
		if (all[i].var == var && own->kind == VAR_MEM &&
		    own->reg == p->reg && own->offset == p->offset &&
		    own->lo <= q->lo && q->hi <= own->hi)
			return true;
	}
	return false;
}

/* Does another variable lie in some of the memory of @p, at any time but when
 * that does? */
static bool is_others(const struct variables *v,
		      const struct range_index_entry *all, size_t nr,
		      uint32_t var, const struct var_place *p)
{
	uint64_t bytes = var_type_bytes(&v->vars[var].type);
	for (size_t i = 0; i < nr; i++) {
		const struct var_place *q = &v->places[all[i].place];
		const struct variable *other = &v->vars[all[i].var];
		if (all[i].var != var && q->kind == VAR_MEM &&
		    q->reg == p->reg &&
		    overlap(p->offset, bytes, q->offset,
			    var_type_bytes(&other->type)) &&
		    !same_object(other, &v->vars[var]) &&
		    !is_within(v, all, nr, var, p, q))
			return true;
	}
	return false;
}

/* The stores to be found in [@disp, @disp + @bytes) at register @base. */
struct late {
	const struct range_code *code;
	uint8_t base;
	int64_t disp;
	uint64_t bytes;
	uint32_t *store;
	size_t nr;
};

static bool is_overwritten(const struct late *l, const struct range_insn *in)
{
	for (size_t i = 0; i < l->nr; i++)
		if (is_operand(&l->code->insns[l->store[i]], in->base, in->disp,
			       in->mem_size))
			return true;
	return false;
}

/* The only jump to instruction @k, which nothing else leads to, and control
 * comes to the jump from the instruction before it; 0: there is none. */
static size_t jump_to(const struct range_edges *e,
		      const struct range_code *code, size_t k)
{
	uint64_t to = code->insns[k].addr;
	size_t a = range_edges_first(e, to);
	if (a == e->nr || e->edge[a].to != to ||
	    (a + 1 < e->nr && e->edge[a + 1].to == to))
		return 0;
	uint32_t from = e->edge[a].from;
	return code->insns[from].kind == RK_JUMP && from > 0 &&
			       range_falls(code, from - 1)
		       ? from
		       : 0;
}

/* Those of the instructions up to @i, which control comes from, that go
 * straight on to it. */
static void stores_up_to(const struct range_edges *e, struct late *l, size_t i)
{
	size_t first = l->nr; /* others are on other ways */
	struct late way = *l;
	way.store += first;
	way.nr = 0;
	for (size_t k = i, n = 0; n < FILL_REACH; k--, n++) {
		const struct range_insn *in = &l->code->insns[k];
		bool stores = (in->bits & (RB_STORES | RB_WRITES)) != 0;
		if (in->kind != RK_PLAIN || in->wrote >> l->base & 1 ||
		    (stores &&
		     (in->base != l->base || in->index != RANGE_NO_REG)))
			break;
		if (stores && is_operand(in, l->base, l->disp, l->bytes)) {
			if (first + way.nr == RANGE_DOUBT_LATE)
				break;
			if (!is_overwritten(&way, in))
				way.store[way.nr++] = (uint32_t)k;
		}
		if ((!k || !range_falls(l->code, k - 1)) &&
		    !(k = jump_to(e, l->code, k)))
			break;
	}
	l->nr = first + way.nr;
}

size_t range_doubt_late(const struct range_edges *e,
			const struct range_code *code,
			const struct variables *v,
			const struct range_index_entry *all, size_t nr,
			uint32_t var, const struct var_place *p,
			uint32_t store[RANGE_DOUBT_LATE])
{
	size_t i = range_code_find(code, p->lo);
	struct late l = {
		.code = code,
		.base = range_reg_of_dwarf(p->reg),
		.disp = p->offset,
		.bytes = var_type_bytes(&v->vars[var].type),
		.store = store,
	};
	if (i == code->nr || code->insns[i].addr != p->lo ||
	    l.base == RANGE_NO_REG)
		return 0;
	if (i > 0 && range_falls(code, i - 1))
		stores_up_to(e, &l, i - 1);
	for (size_t a = range_edges_first(e, p->lo);
	     a < e->nr && e->edge[a].to == p->lo; a++) {
		uint32_t from = e->edge[a].from;
		if (code->insns[from].kind == RK_JUMP && from > 0 &&
		    range_falls(code, from - 1))
			stores_up_to(e, &l, from - 1);
	}
	return l.nr && !is_others(v, all, nr, var, p) ? l.nr : 0;
}
