/*
 * Definition sites, see range-site.h.
 *
 * Registers: where a range begins, and behind each instruction in it that
 * writes the register. Memory: behind each store that covers the variable.
 * Memory whose address somebody else may have is written out of sight: there
 * the program's own loads are looked at as well, since what it reads it takes
 * for a value, which a look after every call would not know.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/probe/range-cover.h"
#include "supervisor/probe/range-window.h"
#include "supervisor/probe/range-doubt.h"
#include "supervisor/probe/range-lead.h"
#include "supervisor/probe/range-point.h"
#include "supervisor/probe/range-read.h"
#include "supervisor/probe/range-site.h"
#include "supervisor/probe/range-taken.h"
#include "supervisor/probe/range-web.h"

struct finder {
	const struct range_code *code;
	const struct range_image *img;
	const struct variables *v;
	const struct range_index *ix;
	struct range_sites *out;
	struct range_edges edges;
	/* Of the variable just now: its places in the function. */
	const struct range_index_entry *own;
	size_t nr_own;
	const struct range_index_entry *all; /* those of all */
	size_t nr_all;
	bool plain; /* not optimised */
	struct range_givers givers;
	struct range_leads leads;
	bool failed;
};

static void add(struct finder *f, struct range_site site)
{
	if (site.gap < f->code->nr)
		f->failed |= !range_sites_add(f->out, &site);
}

/* --- memory --- */

/* An access at instruction @i that covers @var: its site, or two. */
static void touched(struct finder *f, size_t i, struct range_site s,
		    struct range_cover c, bool loads)
{
	const struct range_insn *in = &f->code->insns[i];
	const struct variable *var = &f->v->vars[s.var];
	/* Otherwise it is another member that is meant. */
	if (var->flags & VAR_IN_UNION &&
	    (c.delta != 0 || in->mem_size != var->type.width))
		return;
	bool same = c.whole && c.delta == 0 && in->reg != RANGE_NO_REG;
	s.offset = c.offset;
	s.gap = (uint32_t)i + 1;
	s.fall = true;
	if (in->bits & RB_WRITES) {
		if (!range_falls(f->code, i) ||
		    range_doubt_kept_field(f->code, i, &var->type, c.delta))
			return;
		if (!var->type.is_volatile &&
		    (f->plain ? range_doubt_quotient(f->code, i)
			      : range_doubt_half(f->code, i, c.offset,
						 var->type.width)))
			return;
		if (in->bits & RB_IMM && c.whole && c.delta < 8) {
			s.source = RS_CONST;
			s.offset = in->imm >> (8 * c.delta);
		} else if (same) {
			s.source = RS_REG;
			s.reg = in->reg;
			s.shift = 0;
		} else if (s.source == RS_FRAME && in->wrote >> s.reg & 1) {
			return;
		}
		add(f, s);
	} else if (loads && in->bits & RB_READS &&
		   !(var->type.bit_size && range_doubt_put_back(f->code, i))) {
		if (same && range_falls(f->code, i)) {
			s.source = RS_REG;
			s.reg = in->reg;
			s.shift = 0;
		} else {
			s.gap = (uint32_t)i;
			s.fall = false;
		}
		add(f, s);
	}
}

/* What of @s->var, @t at @offset, instruction @i accesses: elements, too. */
static void covered(struct finder *f, size_t i, struct range_site s,
		    const struct var_place *p, const struct var_type *t,
		    int64_t offset, bool loads)
{
	const struct range_insn *in = &f->code->insns[i];
	struct range_cover c = range_covers(in, t, offset, 0);
	for (unsigned n = range_cover_most(in, t); c.yes && n; n--) {
		if (p->kind != VAR_MEM ||
		    !range_doubt_slot(f->v, f->all, f->nr_all, s.var, p,
				      c.offset, t->width, in->addr))
			touched(f, i, s, c, loads);
		c = range_covers(in, t, offset, c.next);
	}
}

/* --- one function --- */

/* Does nobody come to instruction @i, behind a call, but from that? */
static bool is_behind_call(const struct finder *f, size_t i)
{
	uint8_t last = i ? f->code->insns[i - 1].kind : RK_BAD;
	return (last == RK_CALL || last == RK_CALL_TO) &&
	       !range_is_led_to(&f->edges, f->code, i) &&
	       !range_image_is_leader(f->img, f->code->insns[i].addr);
}

static void begin(struct finder *f, struct range_site s,
		  const struct var_place *p)
{
	size_t i = range_code_find(f->code, p->lo);
	if (i == f->code->nr || f->code->insns[i].addr != p->lo)
		return;
	/* gcc's label stands before the padding of the block it means. */
	while (i < f->code->nr && f->code->insns[i].bits & RB_UNREACHED)
		i++;
	/* Jumps land on it: it must stay. */
	if (i < f->code->nr && f->code->insns[i].bits & RB_ENDBR) {
		s.fall = true;
		i++;
	}
	if (i == f->code->nr || f->code->insns[i].addr >= p->hi)
		return;
	unsigned width = f->v->vars[s.var].type.width;
	if (range_doubt_sum(f->code, f->v, f->own, f->nr_own, p) ||
	    range_doubt_moved(&f->edges, f->code, f->v, f->own, f->nr_own, p) ||
	    range_doubt_walk(f->code, f->v, f->own, f->nr_own, p, width, i) ||
	    range_doubt_empty(&f->edges, f->code, f->v, f->own, f->nr_own,
			      f->all, f->nr_all, p, width, i))
		return;
	/* What is left of it in the block is padding. */
	size_t k = i;
	while (k < f->code->nr && f->code->insns[k].bits & RB_PADDING)
		k++;
	if (p->kind != VAR_CONST && !(p->flags & VAR_ENDS) && k > i &&
	    k < f->code->nr && f->code->insns[k].addr >= p->hi)
		return;
	/* A block that ends with a jump nobody leaves this way. */
	if (p->flags & VAR_LAST && !(i && range_falls(f->code, i - 1)))
		return;
	s.fall |= p->flags & VAR_LAST && !is_behind_call(f, i);
	if (p->flags & VAR_BEGINS && !s.fall &&
	    range_goes_on(&f->edges, f->code, f->v, f->own, f->nr_own, p,
			  (uint32_t)i))
		return;
	if (range_doubt_bare(&f->edges, f->code, f->v, p, &f->v->vars[s.var], i,
			     &s.fall))
		return;
	size_t j = i;
	switch (range_doubt_ways(f->code, f->v, f->own, f->nr_own, p, &j)) {
	case RANGE_NEITHER_WAY:
		return;
	case RANGE_STRAIGHT_ON:
		s.fall = true;
		i = j + 1;
		break;
	case RANGE_BOTH_WAYS:
		break;
	}
	s.gap = (uint32_t)i;
	add(f, s);
}

/* A place that is no memory begins, too, where a branch leads into it. */
static void enter(struct finder *f, size_t i, struct range_site s,
		  const struct var_place *p, uint32_t regs)
{
	const struct variable *var = &f->v->vars[s.var];
	if (p->flags & VAR_SCOPE || var->flags & VAR_IN_UNION ||
	    var->type.nr_dims || f->code->insns[i].addr == p->lo ||
	    !range_is_entered(&f->edges, f->code, f->v, f->own, f->nr_own, p,
			      regs, (uint32_t)i) ||
	    range_is_others(&f->edges, f->code, f->v, f->all, f->nr_all, f->own,
			    f->nr_own, p, (uint32_t)i) ||
	    range_doubt_sum(f->code, f->v, f->own, f->nr_own, p) ||
	    range_doubt_walk(f->code, f->v, f->own, f->nr_own, p,
			     var->type.width, i) ||
	    range_doubt_bare(&f->edges, f->code, f->v, p, var, i, &s.fall) ||
	    range_doubt_ways(f->code, f->v, f->own, f->nr_own, p,
			     &(size_t){i}) != RANGE_BOTH_WAYS)
		return;
	if (range_sites_goes_on(f->out, f->code, i, &s, regs))
		f->out->nr--;
	s.gap = (uint32_t)i;
	add(f, s);
}

/* Perhaps of an array at @p, by a subscript or a pointer? */
static bool is_of_array(struct finder *f, size_t i, struct range_site *s,
			const struct var_place *p)
{
	const struct range_insn *in = &f->code->insns[i];
	const struct var_type *t = &f->v->vars[s->var].type;
	if (in->base == s->reg)
		return range_covers_one(in, t, p->offset, &s->within);
	return range_covers_through(in, t, s->reg, p->offset, &s->within) &&
	       range_leads_by(&f->leads, f->code, (uint32_t)i);
}

/* A store at instruction @i to an element of an array at @p. Which one, its
 * sensor is told, and whether it is one at all. */
static void stored_to_one(struct finder *f, size_t i, struct range_site s,
			  const struct var_place *p)
{
	const struct range_insn *in = &f->code->insns[i];
	const struct variable *var = &f->v->vars[s.var];
	if (!(in->bits & RB_WRITES) || !range_falls(f->code, i) ||
	    var->flags & VAR_IN_UNION || !is_of_array(f, i, &s, p) ||
	    range_doubt_slot(f->v, f->all, f->nr_all, s.var, p, p->offset,
			     s.within.extent, in->addr) ||
	    (!f->plain && !var->type.is_volatile &&
	     range_cover_half(f->code, i)))
		return;
	s.shift = 0;
	s.gap = (uint32_t)i + 1;
	s.fall = true;
	if (!(in->bits & RB_READS) &&
	    (in->bits & RB_IMM || in->reg != RANGE_NO_REG)) {
		s.source = in->bits & RB_IMM ? RS_CONST : RS_REG;
		s.reg = in->reg;
		s.offset = in->imm;
		add(f, s);
		return;
	}
	/* Changed where it lies, or what is stored is in no such register. */
	s.source = RS_ELEMENT;
	s.offset = p->offset;
	if (!(in->wrote & range_site_regs(&s, f->v)))
		add(f, s);
}

/* An access to the memory of @p at instruction @i, if it is the variable's. */
static void local_access(struct finder *f, size_t i, struct range_site s,
			 const struct var_place *p, bool taken)
{
	const struct range_insn *in = &f->code->insns[i];
	struct var_type type = f->v->vars[s.var].type;
	if (p->flags & VAR_ONE)
		type.nr_dims = 0;
	bool array = type.nr_dims;
	if ((in->base != s.reg && !array) || in->bits & RB_LEA ||
	    range_doubt_longer(&f->v->vars[s.var], p, in) ||
	    range_doubt_wide(f->code, f->v, f->all, f->nr_all,
			     &f->v->vars[s.var], p, i) ||
	    (in->bits & RB_WRITES &&
	     range_doubt_store(f->v, f->own, f->nr_own, p, in) &&
	     (taken || array ||
	      !range_doubt_again(f->code, f->v, f->own, f->nr_own, p, i))))
		return;
	if (in->index != RANGE_NO_REG || in->base != s.reg) {
		stored_to_one(f, i, s, p);
		return;
	}
	if (f->plain || !range_doubt_left(f->code, p, i))
		covered(f, i, s, p, &type, p->offset, taken);
}

/* Behind place @p, memory, what others have put there since is read. */
static void read_behind(struct finder *f, struct range_site s,
			const struct var_place *p)
{
	size_t i = range_lent_read(&f->edges, f->code, f->v, f->all, f->nr_all,
				   f->own, f->nr_own, &f->v->vars[s.var], p);
	if (i == f->code->nr)
		return;
	struct range_cover c = {
		.yes = true, .whole = true, .offset = f->code->insns[i].disp};
	touched(f, i, s, c, true);
}

/* Is the variable not at @p, as far as is known? */
static bool is_in_doubt(const struct finder *f, const struct variable *variable,
			const struct var_place *p, bool taken)
{
	int64_t k;
	return range_doubt_beyond(&variable->type, p) ||
	       range_doubt_cancels(f->v, p) || range_doubt_below(p) ||
	       range_doubt_memory(f->code, f->v, p) ||
	       range_doubt_address(f->code, f->v, p) ||
	       range_doubt_case(&f->edges, f->code, f->v, f->own, f->nr_own, p,
				&variable->type,
				variable->flags & VAR_PARAMETER) ||
	       range_doubt_fork(&f->edges, f->code, f->v, f->own, f->nr_own,
				variable, p) ||
	       range_doubt_extended(f->v, variable, p) ||
	       range_doubt_shifted(f->v, &variable->type, p) ||
	       range_doubt_shrunk(f->v, &variable->type, p) ||
	       range_doubt_reached(f->code, f->v, p, variable->type.width) ||
	       range_doubt_linear(f->code, f->v, f->own, f->nr_own, p) ||
	       range_doubt_way(f->code, f->v, f->own, f->nr_own, p) ||
	       (range_doubt_tested(f->code, p, &k) && !k) ||
	       range_doubt_round(f->code, f->v, f->all, f->nr_all, f->own,
				 f->nr_own, p) ||
	       range_doubt_same(&f->edges, f->code, f->v, f->own, f->nr_own, p,
				taken);
}

/* In a register that others are in, too: where what is written is the
 * variable's. */
static void among_others(struct finder *f, uint32_t var, uint32_t place)
{
	const struct var_place *p = &f->v->places[place];
	struct range_site s = {.var = var, .place = place, .fall = true};
	uint32_t regs;
	bool *is_its _cleanup_free_ = NULL;
	if (!f->plain || !range_source_of(f->v, p, &s, &regs)) {
		f->out->nr_unreadable++;
		return;
	}
	f->failed |= !range_web_find(f->code, f->v, f->all, f->nr_all, var, p,
				     &is_its);
	size_t end = range_code_find(f->code, p->hi);
	for (size_t i = range_code_find(f->code, p->lo); i < end; i++) {
		const struct range_insn *in = &f->code->insns[i];
		s.gap = (uint32_t)i + 1;
		if (is_its && is_its[i] && in->kind == RK_PLAIN &&
		    range_falls(f->code, i) && in->addr + in->len < p->hi)
			add(f, s);
	}
}

/* How the value is read from @p where that is not quite as it says: of a @mask
 * a bit. */
static void read_as(const struct finder *f, const struct var_place *p,
		    bool mask, struct range_site *s)
{
	int64_t k;
	if (range_doubt_behind(f->code, f->v, f->own, f->nr_own, p, &k)) {
		s->source = RS_SUM;
		s->offset = k;
	} else if (range_doubt_tested(f->code, p, &k)) {
		s->source = RS_SUM;
		s->offset = -k;
	} else if (range_doubt_twice(f->code, f->v, f->own, f->nr_own, p, &k)) {
		s->offset = k;
	} else if (range_doubt_unrolled(f->code, f->v, f->own, f->nr_own, p)) {
		s->offset = -1;
	}
	if (mask && p->kind == VAR_CONST)
		s->offset &= 1;
}

static void local_place(struct finder *f, uint32_t var, uint32_t place,
			bool taken)
{
	const struct var_place *p = &f->v->places[place];
	const struct variable *variable = &f->v->vars[var];
	struct range_site s = {.var = var, .place = place};
	uint32_t regs;
	bool comes_in = range_comes_in(f->v, variable, p);
	bool bit = !f->plain && !comes_in;
	bool mask =
		bit && range_doubt_mask(f->v, f->own, f->nr_own, variable, p);
	bool whose =
		(p->flags & VAR_PART && !(variable->flags & VAR_PARAMETER)) ||
		variable->flags & VAR_MIXED ||
		(variable->flags & VAR_IN_UNION && p->kind != VAR_MEM &&
		 p->kind != VAR_ADDR);
	bool believed = !whose && !is_in_doubt(f, variable, p, taken);
	if (!range_source_of(f->v, p, &s, &regs) || !believed) {
		size_t nr_before = f->out->nr;
		if (believed)
			range_read_sites(f->code, f->v, &s, f->out, &f->failed);
		f->out->nr_unreadable += f->out->nr == nr_before;
		return;
	}
	read_as(f, p, mask, &s);
	/* An array has no one value that could be read anywhere. Memory that
	 * others are to fill begins when it gets its place, with nothing; a
	 * parameter begins when it is given. */
	if ((p->flags & VAR_BEGINS || comes_in) &&
	    !(comes_in && range_doubt_led_back(&f->edges, f->code, p)) &&
	    (!variable->type.nr_dims || p->flags & VAR_ONE) &&
	    !(p->kind == VAR_MEM && taken &&
	      !(variable->flags & VAR_PARAMETER)) &&
	    !(variable->flags & VAR_IN_UNION)) {
		size_t i = range_code_find(f->code, p->lo);
		s.low_bit = mask ||
			    (bit && range_doubt_bit(f->code, variable, p, i));
		begin(f, s, p);
	}
	/* By address, below; nothing more; or of a parameter that came in
	 * parts, which gcc goes on saying when the register holds something
	 * else. */
	if (p->kind == VAR_ADDR || p->flags & VAR_LAST ||
	    (p->flags & VAR_PART && p->kind != VAR_MEM))
		return;
	uint32_t store[RANGE_DOUBT_LATE];
	size_t nr = (p->flags & VAR_LATE ? range_doubt_late : range_led_by)(
		&f->edges, f->code, f->v, f->all, f->nr_all, var, p, store);
	for (size_t i = 0; i < nr; i++)
		local_access(f, store[i], s, p, false);
	if (p->kind == VAR_MEM && taken)
		read_behind(f, s, p);
	size_t end =
		range_code_find(f->code, range_doubt_end(f->code, f->v, f->own,
							 f->nr_own, p, taken));
	for (size_t i = range_code_find(f->code, p->lo); i < end; i++) {
		const struct range_insn *in = &f->code->insns[i];
		if (p->kind == VAR_MEM) {
			local_access(f, i, s, p, taken);
			continue;
		}
		s.low_bit = mask ||
			    (bit && range_doubt_bit(f->code, variable, p, i));
		enter(f, i, s, p, regs);
		if (!(in->wrote & regs) || !range_falls(f->code, i) ||
		    in->addr + in->len >= p->hi || in->kind != RK_PLAIN ||
		    range_doubt_restore(f->code, i) ||
		    range_doubt_called(f->code, p, i) ||
		    range_doubt_inner(f->v, f->all, f->nr_all, var, p,
				      in->addr) ||
		    range_doubt_added(f->code, p, i) ||
		    range_doubt_walk(f->code, f->v, f->own, f->nr_own, p,
				     variable->type.width, i + 1))
			continue;
		struct range_site after = s;
		after.gap = (uint32_t)i + 1;
		after.fall = true;
		after.low_bit =
			mask ||
			(bit && range_doubt_bit(f->code, variable, p, i + 1));
		int64_t k;
		if (range_doubt_counted(f->code, p, i, &k)) {
			after.source = RS_SUM;
			after.offset = -k;
		}
		add(f, after);
	}
}

/* Where no instruction runs while the variable is there. What it is given
 * where a function was inlined is in a register just then; of others that are
 * said to be in one it may be what a merged block has left of another. */
static void at_point(struct finder *f, uint32_t var, uint32_t place)
{
	const struct var_place *p = &f->v->places[place];
	const struct variable *variable = &f->v->vars[var];
	struct range_site s = {.var = var, .place = place};
	uint32_t regs;
	bool given = variable->flags & VAR_PARAMETER && !(p->flags & VAR_PART);
	bool known = p->kind == VAR_CONST ||
		     (given && (p->kind == VAR_REG || p->kind == VAR_VALUE ||
				p->kind == VAR_EXPR || p->kind == VAR_MEM));
	if (!known || variable->type.nr_dims ||
	    variable->flags & (VAR_IN_UNION | VAR_MIXED) ||
	    range_doubt_beyond(&variable->type, p) ||
	    range_doubt_cancels(f->v, p) ||
	    range_doubt_memory(f->code, f->v, p) ||
	    range_doubt_address(f->code, f->v, p) ||
	    !range_point_gap(&f->edges, f->code, f->img, p, &s.gap, &s.fall))
		return;
	if (p->kind != VAR_MEM && range_source_of(f->v, p, &s, &regs)) {
		s.low_bit = !f->plain &&
			    range_doubt_bit(f->code, variable, p, s.gap);
		add(f, s);
	} else if (given && !s.fall && range_read_point(f->code, f->v, &s)) {
		add(f, s);
	}
}

static void points(struct finder *f, uint32_t function)
{
	size_t nr;
	const struct range_index_entry *all =
		range_index_points(f->ix, function, &nr);
	for (size_t i = 0; i < nr; i++)
		at_point(f, all[i].var, all[i].place);
}

static void locals(struct finder *f, uint32_t function)
{
	const struct range_index_entry *all =
		range_index_locals(f->ix, function, &f->nr_all);
	f->all = all;
	f->plain = range_not_optimised(f->code, f->v, all, f->nr_all);
	for (size_t a = 0, b; a < f->nr_all; a = b) {
		uint32_t var = all[a].var;
		bool taken = false;
		for (b = a; b < f->nr_all && all[b].var == var; b++) {
			const struct var_place *p = &f->v->places[all[b].place];
			taken |= p->kind == VAR_MEM &&
				 range_frame_taken(&f->givers, p,
						   &f->v->vars[var]);
		}
		f->own = &all[a];
		f->nr_own = b - a;
		for (size_t k = a; k < b; k++) {
			const struct var_place *p = &f->v->places[all[k].place];
			if (p->kind == VAR_REG && p->flags & VAR_AMONG)
				among_others(f, var, all[k].place);
			else
				local_place(f, var, all[k].place, taken);
		}
	}
}

/* Accesses to the file's own data. */
static void data(struct finder *f)
{
	const struct range_index *ix = f->ix;
	for (size_t i = 0; i < f->code->nr; i++) {
		const struct range_insn *in = &f->code->insns[i];
		bool thread = in->base == RANGE_FS, apart = false;
		uint64_t by = thread ? RANGE_TLS : 0;
		if (!in->mem_size || in->index != RANGE_NO_REG ||
		    !(in->bits & (RB_READS | RB_WRITES)))
			continue;
		if (in->base != RANGE_RIP && !thread) {
			if (!range_by_slot(f->code, f->img, i, &by))
				continue;
			apart = true;
		}
		uint64_t lo = (uint64_t)in->disp + by;
		uint64_t hi = lo + in->mem_size;
		size_t a = 0, b = ix->nr_data;
		while (a < b) { /* the first that begins behind it */
			size_t mid = a + (b - a) / 2;
			if (ix->data[mid].lo < hi)
				a = mid + 1;
			else
				b = mid;
		}
		while (a-- > 0 && ix->data[a].hi_most > lo) {
			const struct range_index_data *e = &ix->data[a];
			const struct var_place *p = &f->v->places[e->place];
			const struct variable *var = &f->v->vars[e->var];
			if (e->hi <= lo || in->addr < p->lo ||
			    in->addr >= p->hi)
				continue;
			struct range_site s = {
				.var = e->var,
				.place = e->place,
				.source = apart	   ? RS_FRAME
					  : thread ? RS_TLS
						   : RS_DATA,
				.reg = apart ? in->base : RANGE_NO_REG,
				.apart = apart,
			};
			int64_t at = p->offset - (apart ? (int64_t)by : 0);
			if (!(var->flags & VAR_MIXED) &&
			    !range_doubt_data(p, in))
				covered(f, i, s, p, &var->type, at,
					thread || range_data_taken(f->img, p,
								   var));
		}
	}
}

int range_sites_find(struct range_sites *ret, const struct range_code *code,
		     const struct range_image *img, const struct variables *v,
		     const struct range_index *ix, uint32_t function,
		     struct smco_err *err)
{
	struct finder f = {
		.code = code, .img = img, .v = v, .ix = ix, .out = ret};
	memset(ret, 0, sizeof(*ret));
	if (range_edges_init(&f.edges, code)) {
		f.failed |= !range_givers_init(&f.givers, code);
		locals(&f, function);
		points(&f, function);
		data(&f);
	} else {
		f.failed = true;
	}
	range_edges_deinit(&f.edges);
	range_leads_deinit(&f.leads);
	range_givers_deinit(&f.givers);
	if (f.failed) {
		range_sites_deinit(ret);
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	}
	range_sites_sort(ret, v);
	return 0;
}
