/* What debug registers are for: words in memory that others write to, and
 * instructions at sites where no sensor has room. */
#include <stdlib.h>
#include <string.h>

#include "supervisor/monitor/range-private.h"
#include "supervisor/probe/range-break.h"

/* One that others write to, or that no sensor sees. */
static bool is_wanted(const struct range_unit *u, uint32_t i, bool shared)
{
	/* Of many variables few are: the others are not even looked at. */
	if (!(u->is_polled[i / 8] & 1 << i % 8))
		return false;
	const struct variable *var = &u->vars->vars[i];
	const struct var_place *at = &u->vars->places[var->first_place];
	unsigned width = var->type.width;
	if (var->type.nr_dims || at->kind != VAR_ADDR ||
	    (width & (width - 1)) || width > 8 || (uint64_t)at->offset % width)
		return false;
	return shared ==
	       (u->plan && range_plan_variable(u->plan, i)->shared_out);
}

/* Room for variable @i: with others that are in the same bytes. */
static void add_word(struct range_unit *u, uint32_t i)
{
	const struct variable *var = &u->vars->vars[i];
	uint64_t addr = (uint64_t)u->vars->places[var->first_place].offset;
	struct range_word *w = u->nr_words ? &u->words[u->nr_words - 1] : NULL;
	/* Bit-fields follow each other as they are declared. */
	if (!w || !w->addr || w->addr != addr || w->bytes != var->type.width ||
	    w->nr == WATCH_FIELDS) {
		w = &u->words[u->nr_words++];
		*w = (struct range_word){.addr = addr,
					 .bytes = var->type.width};
	}
	w->var[w->nr++] = i;
	u->word_of[i] = (uint32_t)(w - u->words);
}

static int by_addr(const void *pa, const void *pb)
{
	const struct range_break *a = *(const struct range_break *const *)pa;
	const struct range_break *b = *(const struct range_break *const *)pb;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->site.var < b->site.var ? -1 : a->site.var > b->site.var;
}

static int by_var(const void *pa, const void *pb)
{
	const struct range_insn_use *a = pa, *b = pb;
	if (a->var != b->var)
		return a->var < b->var ? -1 : 1;
	return a->word < b->word ? -1 : a->word > b->word;
}

/* The breakpoints of functions from @f to @end. */
static size_t count_breaks(const struct range_unit *u, uint32_t f, uint32_t end)
{
	size_t nr, sum = 0;
	for (; f < end; f++) {
		range_plan_breaks(u->plan, f, &nr);
		sum += nr;
	}
	return sum;
}

/* Of variables that no register watches where they are. */
static void collect_breaks(struct range_unit *u, uint32_t f, uint32_t end)
{
	size_t nr;
	for (; f < end; f++) {
		const struct range_break *b =
			range_plan_breaks(u->plan, f, &nr);
		for (size_t i = 0; i < nr; i++)
			if (u->word_of[b[i].site.var] == UINT32_MAX)
				u->breaks[u->nr_breaks++] = &b[i];
	}
}

/* Room for @more breakpoints. False: no memory. */
static bool grow(struct range_unit *u, size_t more)
{
	size_t nr = u->nr_breaks + more;
	void *breaks = reallocarray(u->breaks, nr, sizeof(*u->breaks));
	u->breaks = breaks ? breaks : u->breaks;
	void *uses = reallocarray(u->insn_uses, nr, sizeof(*u->insn_uses));
	u->insn_uses = uses ? uses : u->insn_uses;
	void *words =
		reallocarray(u->words, u->nr_words + more, sizeof(*u->words));
	u->words = words ? words : u->words;
	return breaks && uses && words;
}

/* Operations of an expression. */
static unsigned nr_ops(const struct range_unit *u, const struct range_site *s)
{
	if (s->source != RS_EXPR)
		return 0;
	return u->vars->places[s->place].nr_ops + (s->offset != 0);
}

/* A word for all breakpoints at one address, from the @first on. */
static void add_insns(struct range_unit *u, size_t first)
{
	struct range_word *w = NULL;
	unsigned ops = 0;
	for (size_t i = first; i < u->nr_breaks; i++) {
		const struct range_break *b = u->breaks[i];
		unsigned more = nr_ops(u, &b->site);
		if (!w || w->addr != b->addr || w->nr == WATCH_FIELDS ||
		    ops + more > WATCH_OPS) {
			w = &u->words[u->nr_words++];
			*w = (struct range_word){.addr = b->addr,
						 .is_insn = true,
						 .first_break = (uint32_t)i};
			ops = 0;
			u->nr_insns++;
		}
		ops += more;
		w->var[w->nr++] = b->site.var;
		u->insn_uses[i] = (struct range_insn_use){
			.var = b->site.var,
			.word = (uint32_t)(w - u->words),
		};
	}
}

/* The words of breakpoints in functions from @f to @end. */
static int find_insns(struct range_unit *u, uint32_t f, uint32_t end)
{
	size_t nr = u->plan ? count_breaks(u, f, end) : 0;
	size_t first = u->nr_breaks;
	if (!nr)
		return 0;
	if (!grow(u, nr))
		return SMCO_NOMEM;
	collect_breaks(u, f, end);
	qsort(u->breaks + first, u->nr_breaks - first, sizeof(*u->breaks),
	      by_addr);
	add_insns(u, first);
	qsort(u->insn_uses, u->nr_breaks, sizeof(*u->insn_uses), by_var);
	return 0;
}

int range_words_find(struct range_unit *u)
{
	size_t nr = range_unit_nr(u);
	u->words = calloc(u->nr_polls + u->nr_pointees + 1, sizeof(*u->words));
	u->word_of = malloc((nr + 1) * sizeof(*u->word_of));
	if (!u->words || !u->word_of)
		return SMCO_NOMEM;
	memset(u->word_of, 0xff, nr * sizeof(*u->word_of));
	/* Those that were asked for by name come first. */
	for (uint32_t i = (uint32_t)(nr - u->nr_pointees); i < nr; i++) {
		u->word_of[i] = (uint32_t)u->nr_words;
		u->words[u->nr_words++] = (struct range_word){
			.bytes = range_type_at(u, i)->width,
			.nr = 1,
			.var = {i},
		};
	}
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < u->vars->nr_vars; i++)
			if (is_wanted(u, i, pass == 0))
				add_word(u, i);
	return find_insns(u, 0, (uint32_t)u->vars->nr_functions);
}

int range_words_more(struct range_unit *u, uint32_t f)
{
	return find_insns(u, f, f + 1);
}

void range_words_free(struct range_unit *u)
{
	free(u->words);
	free(u->word_of);
	free(u->breaks);
	free(u->insn_uses);
}

const struct range_insn_use *range_insn_uses(const struct range_unit *u,
					     uint32_t var, size_t *nr_ret)
{
	size_t a = 0, b = u->nr_breaks;
	while (a < b) {
		size_t mid = a + (b - a) / 2;
		if (u->insn_uses[mid].var < var)
			a = mid + 1;
		else
			b = mid;
	}
	while (b < u->nr_breaks && u->insn_uses[b].var == var)
		b++;
	*nr_ret = b - a;
	return u->insn_uses + a;
}

/* Of what is loaded for good: what is in its text then does not change. */
static const uint8_t *insn_before(void *part, taddr_t ip, size_t *len_ret)
{
	const struct range_part *rp = part;
	for (size_t i = 0; rp->owner && i < rp->owner->nr; i++) {
		const struct range_part *code = rp->owner->part[i];
		const uint8_t *insn =
			code->can_go || !code->unit->plan
				? NULL
				: range_plan_insn_before(code->unit->plan,
							 ip - code->bias,
							 len_ret);
		if (insn)
			return insn;
	}
	return NULL;
}

/* What the sensor of a site would read, see range-sensor.c. */
static struct watch_field field_of(const struct range_part *rp,
				   const struct range_site *s)
{
	static const enum watch_source source[] = {
		[RS_REG] = WATCH_REG,	  [RS_FRAME] = WATCH_AT_REG,
		[RS_DATA] = WATCH_AT,	  [RS_SUM] = WATCH_SUM,
		[RS_CONST] = WATCH_CONST, [RS_TLS] = WATCH_AT_THREAD,
		[RS_EXPR] = WATCH_EXPR,
	};
	const struct var_type *t = range_type_at(rp->unit, s->var);
	bool has_reg = s->source == RS_REG || s->source == RS_FRAME ||
		       s->source == RS_SUM;
	bool low_bit = s->low_bit && !t->bit_size;
	uint64_t bias = s->source == RS_DATA ? rp->bias : 0;
	return (struct watch_field){
		.shift = (uint8_t)((s->source == RS_REG ? s->shift : 0) +
				   (t->bit_size ? t->bit_offset : 0)),
		.bits = t->bit_size ? t->bit_size
			: low_bit   ? 1
				    : (uint8_t)(8 * t->width),
		.is_signed = t->is_signed && !low_bit,
		.source = source[s->source],
		.reg = has_reg ? s->reg : 0,
		.bytes = t->width,
		.offset = (int64_t)((uint64_t)s->offset + bias),
	};
}

/* The operations of place @p behind those that @what has. */
static void add_ops(const struct range_part *rp, const struct var_place *p,
		    struct watch_what *what, struct watch_field *field)
{
	static const enum watch_op_code code[] = {
		[VAR_OP_REG] = WATCH_PUSH_REG, [VAR_OP_CONST] = WATCH_PUSH,
		[VAR_OP_ADDR] = WATCH_PUSH,    [VAR_OP_PLUS_CONST] = WATCH_PLUS,
		[VAR_OP_ADD] = WATCH_ADD,      [VAR_OP_SUB] = WATCH_SUB,
		[VAR_OP_MUL] = WATCH_MUL,      [VAR_OP_AND] = WATCH_AND,
		[VAR_OP_OR] = WATCH_OR,	       [VAR_OP_XOR] = WATCH_XOR,
		[VAR_OP_SHL] = WATCH_SHL,      [VAR_OP_SHR] = WATCH_SHR,
		[VAR_OP_SAR] = WATCH_SAR,      [VAR_OP_NEG] = WATCH_NEG,
		[VAR_OP_NOT] = WATCH_NOT,      [VAR_OP_LOAD] = WATCH_LOAD,
		[VAR_OP_ZEXT] = WATCH_ZEXT,    [VAR_OP_SEXT] = WATCH_SEXT,
		[VAR_OP_EQ] = WATCH_EQ,	       [VAR_OP_NE] = WATCH_NE,
		[VAR_OP_LT] = WATCH_LT,	       [VAR_OP_LE] = WATCH_LE,
		[VAR_OP_GT] = WATCH_GT,	       [VAR_OP_GE] = WATCH_GE,
	}; /* all that range_expr_ok knows */
	const struct var_op *op = rp->unit->vars->ops + p->first_op;
	field->first_op = (uint8_t)what->nr_ops;
	field->nr_ops = (uint8_t)(p->nr_ops + (field->offset != 0));
	for (uint32_t i = 0; i < p->nr_ops; i++) {
		int64_t arg = op[i].arg;
		if (op[i].code == VAR_OP_REG)
			arg = range_reg_of_dwarf((unsigned)arg);
		else if (op[i].code == VAR_OP_ADDR)
			arg = (int64_t)((uint64_t)arg + rp->bias);
		what->op[what->nr_ops++] =
			(struct watch_op){code[op[i].code], arg};
	}
	if (field->offset)
		what->op[what->nr_ops++] =
			(struct watch_op){WATCH_PLUS, field->offset};
}

static bool what_of_insn(struct range_part *rp, const struct range_word *w,
			 struct watch_what *ret)
{
	*ret = (struct watch_what){
		.addr = w->addr + rp->bias,
		.is_insn = true,
		.nr_fields = w->nr,
	};
	for (uint32_t k = 0; k < w->nr; k++) {
		const struct range_site *s =
			&rp->unit->breaks[w->first_break + k]->site;
		ret->field[k] = field_of(rp, s);
		if (s->source == RS_EXPR)
			add_ops(rp, &rp->unit->vars->places[s->place], ret,
				&ret->field[k]);
	}
	return range_loaded_guard(rp, w->addr, ret);
}

bool range_word_what(struct range_part *rp, uint32_t word,
		     struct watch_what *ret)
{
	const struct range_word *w = &rp->unit->words[word];
	if (w->is_insn)
		return what_of_insn(rp, w, ret);
	const struct pointee *p = range_pointee_at(rp->unit, w->var[0]);
	*ret = (struct watch_what){
		.bytes = w->bytes,
		.nr_fields = w->nr,
		.insn = insn_before,
		.insn_ctx = rp,
	};
	if (!range_loaded_guard(rp, p ? p->root : w->addr, ret) ||
	    (!p && !range_part_static(rp, w->addr, &ret->addr)))
		return false;
	for (uint32_t k = 0; k < w->nr; k++) {
		const struct var_type *t = range_type_at(rp->unit, w->var[k]);
		ret->field[k] = (struct watch_field){
			.shift = t->bit_size ? t->bit_offset : 0,
			.bits = t->bit_size ? t->bit_size
					    : (uint8_t)(8 * t->width),
			.is_signed = t->is_signed,
		};
	}
	return !p || range_pointee_follow(rp, p, ret);
}
