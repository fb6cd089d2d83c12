/* Location attributes of variables, made into places. */
#include "symbols/dwarfdie.h"
#include "symbols/varbuild.h"

#include <dwarf.h>
#include <string.h>

/* A stretch of code, in which one piece is to be placed. */
struct stretch {
	struct var_build *b;
	const struct var_scope *sc;
	uint64_t lo;
	uint64_t hi;   /* exclusive */
	bool begins;   /* lo is a definition site */
	bool ends;     /* at hi it leaves its place */
	bool last;     /* lo is the end of its block */
	bool block;    /* all of it, and it is said of all */
	bool part;     /* other members are in the piece */
	bool arrives;  /* who writes there may mean something else */
	bool among;    /* see VAR_AMONG */
	bool point;    /* hi is lo */
	bool one;      /* of an array one element is meant */
	bool moved;    /* see VAR_MOVED */
	bool anywhere; /* holds at every address, inside and outside */
};

static void missing(struct var_build *b, uint32_t var, enum var_reason why)
{
	b->v->vars[var].missing |= (uint16_t)(1u << why);
}

static void keep(struct stretch *s, uint32_t var, struct var_place place,
		 uint64_t lo, uint64_t hi)
{
	struct var_build *b = s->b;
	place.lo = lo;
	place.hi = hi;
	place.function = s->anywhere ? VAR_NO_FUNCTION : s->sc->function;
	if (s->begins && lo == s->lo)
		place.flags |= VAR_BEGINS;
	if (s->ends && hi == s->hi)
		place.flags |= VAR_ENDS;
	if (s->last)
		place.flags |= VAR_LAST;
	if (s->block)
		place.flags |= VAR_SCOPE;
	if (s->block && s->sc->begins_late && place.flags & VAR_FRAME)
		place.flags |= VAR_LATE;
	if ((s->part || s->arrives) && place.kind == VAR_REG)
		place.flags |= VAR_PART;
	if (s->among)
		place.flags |= VAR_AMONG;
	if (s->point)
		place.flags |= VAR_POINT;
	if (s->one)
		place.flags |= VAR_ONE;
	if (s->moved && lo == s->lo)
		place.flags |= VAR_MOVED;
	if (b->nr_found >= VAR_MAX_PLACES) {
		b->v->cut_short = true;
		return;
	}
	if (var_grow(b, (void **)&b->found, b->nr_found, &b->cap_found,
		     sizeof(*b->found)))
		b->found[b->nr_found++] =
			(struct var_found){.var = var, .place = place};
}

/* The ops of an expression, kept. */
static bool keep_ops(struct var_build *b, const struct var_piece *p,
		     struct var_place *place)
{
	struct variables *v = b->v;
	place->kind = VAR_EXPR;
	place->first_op = (uint32_t)v->nr_ops;
	place->nr_ops = p->nr_ops;
	if (v->nr_ops >= VAR_MAX_PLACES) {
		v->cut_short = true;
		return false;
	}
	for (size_t i = 0; i < p->nr_ops; i++) {
		if (!var_grow(b, (void **)&v->ops, v->nr_ops, &b->cap_ops,
			      sizeof(*v->ops)))
			return false;
		v->ops[v->nr_ops++] = p->op[i];
	}
	return true;
}

/* Register plus constant, the shape that nearly all have. */
static bool is_linear(const struct var_piece *p, uint8_t code)
{
	return p->op[0].code == code &&
	       (p->nr_ops == 1 || (p->nr_ops == 2 && code == VAR_OP_REG &&
				   p->op[1].code == VAR_OP_PLUS_CONST));
}

/* Is what @p makes 0 or 1, whatever the registers hold? */
static bool is_bit(const struct var_piece *p)
{
	bool bit[VAR_MAX_OPS + 1];
	size_t n = 0;
	for (size_t i = 0; i < p->nr_ops; i++) {
		const struct var_op *op = &p->op[i];
		size_t pops = var_op_pops(op->code);
		if (n < pops)
			return false;
		bool a = pops && bit[n - pops], b = pops && bit[n - 1];
		n += 1 - pops;
		if (op->code >= VAR_OP_EQ && op->code <= VAR_OP_GE)
			bit[n - 1] = true;
		else if (op->code == VAR_OP_CONST)
			bit[n - 1] = op->arg == 0 || op->arg == 1;
		else if (op->code == VAR_OP_AND)
			bit[n - 1] = a || b;
		else
			bit[n - 1] = (op->code == VAR_OP_OR ||
				      op->code == VAR_OP_XOR ||
				      op->code == VAR_OP_ZEXT) &&
				     a && b;
	}
	return n == 1 && bit[0];
}

/*
 * The place of what is of @type, @byte into the piece; VAR_FINE or why not. The
 * piece has no frame registers any more.
 */
static enum var_reason to_place(struct var_build *b, const struct var_piece *p,
				uint64_t byte, const struct var_type *type,
				bool framed, struct var_place *ret)
{
	struct var_piece at = *p;
	unsigned width = type->width;
	bool is_bool = type->class_ == VAR_BOOL && !type->bit_size;
	*ret = (struct var_place){0};
	if (p->kind == VAR_PIECE_NONE)
		return p->reason;
	if (p->kind == VAR_PIECE_THREAD) {
		uint64_t at_byte = (uint64_t)p->op[0].arg + byte;
		if (p->nr_ops != 1 || at_byte >= b->tls_bytes)
			return VAR_THREAD_LOCAL;
		ret->kind = VAR_TLS;
		ret->offset = (int64_t)(at_byte - b->tls_bytes);
		return VAR_FINE;
	}
	if (p->kind == VAR_PIECE_REGISTER) {
		if (byte + width > 8)
			return VAR_SPLIT;
		ret->kind = VAR_REG;
		ret->reg = p->reg;
		ret->shift = (uint8_t)(8 * byte);
		return VAR_FINE;
	}
	if (p->kind == VAR_PIECE_VALUE) {
		if (byte)
			return VAR_SPLIT;
		/* gcc computes with a single bit, and leaves the others. */
		if (is_bool && !is_linear(p, VAR_OP_CONST) && !is_bit(p)) {
			if (!var_ops_add(at.op, &at.nr_ops, VAR_OP_CONST, 1) ||
			    !var_ops_add(at.op, &at.nr_ops, VAR_OP_AND, 0) ||
			    !keep_ops(b, &at, ret))
				return VAR_COMPLEX;
			return VAR_FINE;
		}
		if (is_linear(p, VAR_OP_CONST)) {
			ret->kind = VAR_CONST;
			ret->offset = p->op[0].arg;
		} else if (is_linear(p, VAR_OP_REG)) {
			ret->reg = (uint8_t)p->op[0].arg;
			ret->offset = p->nr_ops == 2 ? p->op[1].arg : 0;
			ret->kind = ret->offset ? VAR_VALUE : VAR_REG;
		} else if (!keep_ops(b, p, ret)) {
			return VAR_COMPLEX;
		}
		return VAR_FINE;
	}
	if (!var_ops_add(at.op, &at.nr_ops, VAR_OP_PLUS_CONST, (int64_t)byte))
		return VAR_COMPLEX;
	if (is_linear(&at, VAR_OP_ADDR)) {
		ret->kind = VAR_ADDR;
		ret->offset = at.op[0].arg;
	} else if (is_linear(&at, VAR_OP_REG)) {
		ret->kind = VAR_MEM;
		ret->reg = (uint8_t)at.op[0].arg;
		ret->offset = at.nr_ops == 2 ? at.op[1].arg : 0;
		if (framed || ret->reg == CFI_RSP)
			ret->flags |= VAR_FRAME;
	} else if (!var_ops_add(at.op, &at.nr_ops, VAR_OP_LOAD, width) ||
		   !keep_ops(b, &at, ret)) {
		return VAR_COMPLEX;
	}
	return VAR_FINE;
}

bool var_frame_place(const struct var_build *b, const struct var_scope *sc,
		     const struct var_piece *p, uint64_t lo, uint64_t *next_ret,
		     uint32_t *reg_ret, int64_t *offset_ret)
{
	struct var_piece body = *p, fixed;
	const struct cfi_rule *row = var_frame_row(b->cfi, lo, next_ret);
	var_count_from_body(b, sc, &body);
	if (p->kind != VAR_PIECE_ADDRESS ||
	    !var_place_in_frame(sc, row, &body, &fixed) ||
	    !is_linear(&fixed, VAR_OP_REG))
		return false;
	*reg_ret = (uint32_t)fixed.op[0].arg;
	*offset_ret = fixed.nr_ops == 2 ? fixed.op[1].arg : 0;
	return *reg_ret < 16;
}

/* One member, in one piece, over a stretch: a place for each row of the CFI. */
static void place_member(struct stretch *s, uint32_t var,
			 const struct var_piece *said, uint64_t byte)
{
	struct var_build *b = s->b;
	struct var_piece body = *said;
	const struct var_piece *p = &body;
	const struct var_type *type = &b->v->vars[var].type;
	struct var_place place;
	bool framed = false;
	var_count_from_body(b, s->sc, &body);
	for (size_t i = 0; i < p->nr_ops; i++)
		framed |= p->op[i].code == VAR_OP_REG &&
			  var_is_frame(p->op[i].arg);
	if (!framed) {
		enum var_reason why = to_place(b, p, byte, type, false, &place);
		if (why)
			missing(b, var, why);
		else
			keep(s, var, place, s->lo, s->hi);
		return;
	}
	uint64_t next;
	for (uint64_t lo = s->lo; lo < s->hi; lo = next) {
		const struct cfi_rule *row = var_frame_row(b->cfi, lo, &next);
		struct var_piece fixed;
		if (next > s->hi)
			next = s->hi;
		if (next <= lo || !var_step(b))
			break;
		enum var_reason why = VAR_NO_FRAME;
		if (var_place_in_frame(s->sc, row, p, &fixed))
			why = to_place(b, &fixed, byte, type, true, &place);
		if (!why)
			keep(s, var, place, lo, next);
		else if (!row)
			missing(b, var, why);
	}
}

/* Of an array that is taken apart. */
#define MOST_ELEMENTS 64

/* Is the array @m in pieces, of some of its elements each? */
static bool is_in_pieces(const struct var_type *t, const struct var_member *m,
			 const struct var_piece *p, uint64_t start)
{
	return t->nr_dims == 1 && t->dim[0].stride >= t->width && p->bytes &&
	       t->dim[0].count <= MOST_ELEMENTS &&
	       var_type_bytes(t) > p->bytes - (m->byte - start);
}

/* Its elements, each by itself. */
static void place_elements(struct stretch *s, const struct var_member *m,
			   const struct var_piece *pieces, size_t nr)
{
	struct var_build *b = s->b;
	const struct var_type *t = &b->v->vars[m->var].type;
	uint64_t stride = t->dim[0].stride, start = 0;
	size_t nr_found = b->nr_found;
	s->one = true;
	for (size_t k = 0; k < nr && pieces[k].bytes; k++) {
		const struct var_piece *p = &pieces[k];
		uint64_t i = start > m->byte
				     ? (start - m->byte + stride - 1) / stride
				     : 0;
		uint64_t at = m->byte + i * stride - start;
		s->part = p->bytes > t->width;
		for (; i < t->dim[0].count && at <= p->bytes &&
		       t->width <= p->bytes - at && var_step(b);
		     i++, at += stride)
			place_member(s, m->var, p, at);
		if (__builtin_add_overflow(start, p->bytes, &start))
			break;
	}
	s->one = false;
	if (b->nr_found == nr_found)
		missing(b, m->var, VAR_SPLIT);
}

/* All wanted members of the group, from an object in pieces. */
static void place_group(struct stretch *s, const struct var_group *g,
			const struct var_piece *pieces, size_t nr)
{
	struct var_build *b = s->b;
	for (uint32_t i = 0; i < g->nr; i++) {
		const struct var_member *m = &b->members[g->first + i];
		if (m->var == VAR_NONE)
			continue;
		unsigned width = b->v->vars[m->var].type.width;
		uint64_t start = 0;
		const struct var_piece *in = NULL;
		for (size_t k = 0; k < nr && !in; k++) {
			if (!pieces[k].bytes ||
			    (m->byte >= start &&
			     m->byte - start < pieces[k].bytes))
				in = &pieces[k];
			else
				start += pieces[k].bytes;
		}
		if (!in)
			missing(b, m->var, VAR_OPTIMISED_OUT);
		else if (is_in_pieces(&b->v->vars[m->var].type, m, in, start))
			place_elements(s, m, pieces, nr);
		else if (in->bytes && m->byte - start + width > in->bytes)
			missing(b, m->var, VAR_SPLIT);
		else {
			s->part = in->bytes ? in->bytes > width : g->nr > 1;
			place_member(s, m->var, in, m->byte - start);
		}
	}
}

/* The parts of [lo, hi) that lie in the function's code. */
static void place_in_function(struct stretch *s, const struct var_group *g,
			      const struct var_piece *pieces, size_t nr)
{
	const struct variables *v = s->b->v;
	if (s->sc->function == VAR_NO_FUNCTION)
		return;
	const struct var_function *f = &v->functions[s->sc->function];
	struct stretch part = *s;
	for (uint32_t i = 0; i < f->nr_ranges; i++) {
		const struct var_range *r = &v->ranges[f->first_range + i];
		part.lo = s->lo > r->lo ? s->lo : r->lo;
		part.hi = s->hi < r->hi ? s->hi : r->hi;
		part.begins = s->begins && part.lo == s->lo;
		part.ends = s->ends && part.hi == s->hi;
		part.moved = s->moved && part.lo == s->lo;
		if (part.lo < part.hi ||
		    (s->point && r->lo <= s->lo && s->lo < r->hi))
			place_group(&part, g, pieces, nr);
	}
}

static bool in_block(const struct var_scope *sc, uint64_t addr)
{
	for (size_t i = 0; i < sc->nr_ranges; i++)
		if (addr >= sc->ranges[i].lo && addr < sc->ranges[i].hi)
			return true;
	return false;
}

/*
 * A stretch of a location list. It may go on where the variable's block has
 * ended, in a register that is somebody else's by then: no debugger looks
 * there. Coming back into the block the variable is in its place again.
 */
static void place_in_list(const struct stretch *s, const struct var_group *g,
			  const struct var_piece *pieces, size_t nr)
{
	for (size_t i = 0; i < s->sc->nr_ranges; i++) {
		const struct var_range *r = &s->sc->ranges[i];
		struct stretch part = *s;
		part.begins = true;
		part.lo = s->lo > r->lo ? s->lo : r->lo;
		part.hi = s->hi < r->hi ? s->hi : r->hi;
		part.ends = part.hi == s->hi;
		part.moved = s->moved && part.lo == s->lo;
		part.last = s->lo == r->hi && !in_block(s->sc, s->lo);
		if (part.last)
			part.hi = s->hi;
		if (part.lo < part.hi)
			place_in_function(&part, g, pieces, nr);
	}
}

/*
 * A stretch without an instruction. It may lie outside the block: parameters of
 * what was inlined are given where that stood in the source, and what is left
 * of it, if anything is, may be elsewhere.
 */
static void place_at_point(const struct stretch *s, const struct var_group *g,
			   const struct var_piece *pieces, size_t nr)
{
	struct stretch point = *s;
	point.point = point.begins = point.ends = true;
	point.last = !in_block(s->sc, s->lo);
	place_in_function(&point, g, pieces, nr);
}

/*
 * Is @die a parameter that the caller has put on the stack, and that stays
 * there? It has its value where the function begins: *ret is it, counted from
 * the CFA, for the frame is not set up yet.
 */
static bool is_given(const struct stretch *s, Dwarf_Die *die,
		     const struct var_piece *p, size_t nr,
		     struct var_piece *ret)
{
	const struct variables *v = s->b->v;
	if (nr != 1 || p->kind != VAR_PIECE_ADDRESS ||
	    !is_linear(p, VAR_OP_REG) || !s->sc->nr_ranges ||
	    s->sc->function == VAR_NO_FUNCTION ||
	    dwarf_tag(die) != DW_TAG_formal_parameter)
		return false;
	const struct var_function *f = &v->functions[s->sc->function];
	int64_t offset = p->nr_ops == 2 ? p->op[1].arg : 0;
	struct var_piece body = *p;
	var_count_from_body(s->b, s->sc, &body);
	if (body.op[0].arg == VAR_REG_FRAME_RBP)
		offset -= 16; /* itself, and the address of return */
	else if (body.op[0].arg == VAR_REG_FRAME_RSP)
		offset -= (int64_t)s->sc->body_depth;
	else if (body.op[0].arg != VAR_REG_CFA)
		return false;
	*ret = *p;
	ret->nr_ops = 2;
	ret->op[0].arg = VAR_REG_CFA;
	ret->op[1] = (struct var_op){VAR_OP_PLUS_CONST, offset};
	return offset >= 0 && f->nr_ranges &&
	       v->ranges[f->first_range].lo == s->sc->ranges[0].lo;
}

/* The instructions with which a function begins, if there is an endbr64. */
#define ENTRY_BYTES 5

/*
 * Where gcc has lost track of a variable it names the register that was meant
 * for it, for the whole of its scope; others are in that, too, at other times.
 * If it is a parameter that comes in this register, it is there at least where
 * the function begins.
 */
static bool place_where_it_arrives(struct stretch *s, const struct var_group *g,
				   Dwarf_Die *die,
				   const struct var_piece *piece)
{
	if (g->nr != 1 || !var_arrives_in(s->sc, die, piece->reg))
		return false;
	s->lo = s->b->v->functions[s->sc->function].entry;
	s->hi = s->lo + ENTRY_BYTES;
	s->begins = s->arrives = true;
	/* Said of more, and of code that is not optimised. */
	s->block = s->sc->is_plain;
	place_in_function(s, g, piece, 1);
	return true;
}

/*
 * Is what is said of the whole scope in registers, or computed, and by LLVM? It
 * says so where the variable is there before the scope's first instruction, and
 * until the last one, so the scope is as good as a range of a list.
 */
static bool is_held(const struct var_scope *sc, const struct var_piece *pieces,
		    size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (pieces[i].kind == VAR_PIECE_ADDRESS ||
		    pieces[i].kind == VAR_PIECE_THREAD ||
		    is_linear(&pieces[i], VAR_OP_CONST))
			return false;
	return sc->is_llvm;
}

/*
 * A location that is said to hold in the whole scope. @given: the variable has
 * a value where it begins.
 */
static void place_in_scope(struct stretch *s, const struct var_group *g,
			   Dwarf_Die *die, const struct var_piece *pieces,
			   size_t nr, bool given)
{
	struct var_piece lost = {.reason = VAR_SHARED};
	if (s->sc->is_gcc && nr == 1 && pieces->kind == VAR_PIECE_REGISTER) {
		if (place_where_it_arrives(s, g, die, pieces))
			return;
		s->among = g->nr == 1 && var_is_among(s->sc, pieces, nr);
		s->b->wants_rows |= s->among;
		if (!s->among)
			pieces = &lost;
	}
	if (nr == 1 && (pieces->kind == VAR_PIECE_THREAD ||
			(pieces->kind == VAR_PIECE_ADDRESS &&
			 is_linear(pieces, VAR_OP_ADDR)))) {
		s->lo = 0;
		s->hi = UINT64_MAX;
		s->anywhere = true;
		place_group(s, g, pieces, nr);
		return;
	}
	/* A constant needs no assignment. */
	given |= nr == 1 && pieces->kind == VAR_PIECE_VALUE &&
		 is_linear(pieces, VAR_OP_CONST);
	bool held = is_held(s->sc, pieces, nr);
	s->block &= !held;
	for (size_t i = 0; i < s->sc->nr_ranges; i++) {
		s->lo = s->sc->ranges[i].lo;
		s->hi = s->sc->ranges[i].hi;
		s->begins = held || (given && !i);
		place_in_function(s, g, pieces, nr);
	}
	/* Nothing to place it in, but something to say about it. */
	if (!s->sc->nr_ranges && pieces->kind == VAR_PIECE_NONE)
		place_group(s, g, pieces, nr);
}

static void place_constant(struct stretch *s, const struct var_group *g,
			   Dwarf_Die *die, Dwarf_Attribute *attr)
{
	struct var_piece p = {.kind = VAR_PIECE_VALUE, .nr_ops = 1};
	int64_t value;
	/* Blocks of bytes are strings and structs. */
	if (!die_const_value(attr, &value) || g->nr != 1)
		return;
	p.op[0] = (struct var_op){VAR_OP_CONST, value};
	place_in_scope(s, g, die, &p, 1, true);
}

void var_add_places(struct var_build *b, const struct var_scope *sc,
		    Dwarf_Die *die, uint32_t group)
{
	const struct var_group g = b->groups[group];
	struct stretch s = {.b = b, .sc = sc};
	struct var_piece pieces[VAR_MAX_PIECES];
	Dwarf_Attribute attr;
	struct var_locs l = {.attr = &attr};
	int got;
	uint64_t view;
	struct cursor views = var_views(b, die);
	if (!die_expression(dwarf_attr_integrate(die, DW_AT_location, &attr))) {
		if (dwarf_attr_integrate(die, DW_AT_const_value, &attr))
			place_constant(&s, &g, die, &attr);
		return;
	}
	while ((got = var_next_loc(b, &l)) > 0 && var_step(b)) {
		s.moved = var_views_next(&views, &view) && !view;
		if (!l.nr)
			continue;
		size_t n = var_expr_read(&attr, l.ops, l.nr, &sc->frame_base,
					 pieces);
		if (!l.lo && l.hi == (Dwarf_Addr)-1) {
			s.begins = false;
			s.block = true;
			struct var_piece fixed;
			bool given = is_given(&s, die, pieces, n, &fixed);
			place_in_scope(&s, &g, die, given ? &fixed : pieces, n,
				       given);
			continue;
		}
		s.lo = l.lo;
		s.hi = l.hi;
		s.block = false;
		if (l.lo == l.hi)
			place_at_point(&s, &g, pieces, n);
		else
			place_in_list(&s, &g, pieces, n);
	}
	if (got >= 0)
		return;
	b->v->nr_damaged++;
	for (uint32_t i = 0; i < g.nr; i++)
		if (b->members[g.first + i].var != VAR_NONE)
			missing(b, b->members[g.first + i].var, VAR_COMPLEX);
}
