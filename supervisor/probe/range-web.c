/* See range-web.h. */
#include "supervisor/probe/range-web.h"

#include <stdlib.h>
#include <string.h>

/* Steps for one register; more are not taken. */
#define MOST_STEPS  (1u << 22)
#define MOST_ROUNDS 200
/* rax, rcx, rdx, rsi, rdi, r8 to r11 */
#define NOT_KEPT 0x0fc7u
/* rdi, rsi, rdx, rcx, r8, r9 */
#define ARGUMENTS 0x03c6u

/* A write; of the first one of a web what is known of all of it. */
struct web {
	uint32_t parent; /* another one of the web, or itself */
	uint32_t write;	 /* instruction */
	uint32_t nr_reads;
	uint16_t busy; /* registers that hold something meanwhile */
	bool calls, is_pressed, leads_on, is_proven;
	bool is_outside;     /* of the variable's block */
	bool is_only_others; /* all of it is in another one's block */
};

struct webs {
	const struct range_code *code;
	const struct variables *v;
	const struct range_index_entry *all;
	size_t nr_all;
	uint32_t var;
	const struct var_place *p;
	uint8_t reg;
	const struct var_row *rows;
	size_t nr_rows;
	uint32_t *row;	/* of each instruction, counted from 1; 0: none */
	uint16_t *live; /* needed at its beginning; calls know the ABI */
	struct web *web;
	size_t nr;
	uint32_t *read_by; /* the first write whose value is read there; + 1 */
	uint32_t *seen;	   /* the last write whose value came by; + 1 */
	uint32_t *stack;   /* instructions to look at */
	size_t nr_stack;
	uint32_t *read; /* where the value of the write just now is read */
	size_t nr_read;
	uint32_t now; /* that write; + 1 */
	uint32_t steps;
};

/* --- what instructions do --- */

static bool is_call(const struct range_insn *in)
{
	return in->kind == RK_CALL || in->kind == RK_CALL_TO;
}

static uint16_t used_by(const struct range_insn *in)
{
	if (is_call(in))
		return ARGUMENTS | 1;
	return in->kind == RK_RET ? 1 << 0 | 1 << 2 : (uint16_t)in->use;
}

static bool reads(const struct webs *w, size_t i)
{
	return used_by(&w->code->insns[i]) >> w->reg & 1;
}

static bool writes(const struct webs *w, size_t i)
{
	const struct range_insn *in = &w->code->insns[i];
	return !is_call(in) && in->wrote >> w->reg & 1;
}

/* Behind @in nothing is left of what was in these. */
static uint16_t ended_by(const struct webs *w, const struct range_insn *in)
{
	uint32_t reg = 1u << w->reg;
	if (is_call(in))
		return NOT_KEPT;
	return (uint16_t)((in->def & ~reg) | (in->wrote & reg));
}

/* Does @in leave no choice of registers, as a division? What would have been in
 * one of them may be anywhere. */
static bool wants_some(const struct range_insn *in)
{
	return in->kind == RK_PLAIN &&
	       (in->wrote & (in->wrote - 1) ||
		(!in->mem_size && !(in->bits & RB_COMPUTES) &&
		 in->wrote == 1u << 2 && (in->use & RANGE_ALL_REGS) == 1));
}

typedef void (*to_fn)(struct webs *w, size_t from, size_t to);

/* Where control goes from instruction @i. */
static void each_next(struct webs *w, size_t i, to_fn fn)
{
	const struct range_code *code = w->code;
	const struct range_insn *in = &code->insns[i];
	if (in->target && !is_call(in)) {
		size_t to = range_code_find(code, in->target);
		if (to < code->nr && code->insns[to].addr == in->target)
			fn(w, i, to);
	}
	for (size_t k = 0; in->kind == RK_JUMP_TO && k < code->nr; k++)
		if (code->insns[k].bits & RB_TABLE)
			fn(w, i, k);
	if ((in->kind == RK_PLAIN || in->kind == RK_BRANCH || is_call(in)) &&
	    range_falls(code, i))
		fn(w, i, i + 1);
}

/* --- what is needed where --- */

static void need(struct webs *w, size_t from, size_t to)
{
	const struct range_insn *in = &w->code->insns[from];
	w->steps++;
	w->live[from] |= w->live[to] & ~ended_by(w, in);
}

static bool find_live(struct webs *w)
{
	bool changed = true;
	for (unsigned n = 0; changed && n < MOST_ROUNDS; n++) {
		changed = false;
		for (size_t i = w->code->nr; i-- > 0;) {
			uint16_t was = w->live[i];
			w->live[i] |= used_by(&w->code->insns[i]);
			each_next(w, i, need);
			changed |= w->live[i] != was;
		}
		if (w->steps > MOST_STEPS)
			return false;
	}
	return !changed;
}

/* --- where things are --- */

static bool covers(const struct var_place *q, uint64_t addr)
{
	return addr >= q->lo && addr < q->hi;
}

static bool is_of_register(const struct webs *w, const struct var_place *q)
{
	return q->kind == VAR_REG && q->flags & VAR_AMONG &&
	       q->flags & VAR_SCOPE && q->reg == w->p->reg;
}

/* Is the variable in the register there, as it is said? */
static bool is_own(const struct webs *w, uint64_t addr)
{
	for (size_t i = 0; i < w->nr_all; i++) {
		const struct var_place *q = &w->v->places[w->all[i].place];
		if (w->all[i].var == w->var && is_of_register(w, q) &&
		    covers(q, addr))
			return true;
	}
	return false;
}

/* Is another one? */
static bool is_others(const struct webs *w, uint64_t addr)
{
	size_t nr;
	const struct var_memory *m =
		variables_others(w->v, w->p->function, &nr);
	for (size_t i = 0; i < nr; i++)
		if (!m[i].bytes && m[i].reg == w->p->reg && addr >= m[i].lo &&
		    addr < m[i].hi)
			return true;
	for (size_t i = 0; i < w->nr_all; i++) {
		const struct var_place *q = &w->v->places[w->all[i].place];
		if (w->all[i].var != w->var && is_of_register(w, q) &&
		    covers(q, addr))
			return true;
	}
	return false;
}

static void find_rows(struct webs *w)
{
	size_t row = 0;
	for (size_t i = 0; i < w->code->nr; i++) {
		while (row < w->nr_rows &&
		       w->rows[row].addr <= w->code->insns[i].addr)
			row++;
		w->row[i] = (uint32_t)row;
	}
}

static uint32_t line_of(const struct webs *w, size_t i)
{
	return w->row[i] ? w->rows[w->row[i] - 1].line : 0;
}

/* --- webs --- */

static struct web *web_of(struct webs *w, uint32_t i)
{
	while (w->web[i].parent != i)
		i = w->web[i].parent = w->web[w->web[i].parent].parent;
	return &w->web[i];
}

static void join(struct webs *w, uint32_t a, uint32_t b)
{
	struct web *x = web_of(w, a), *y = web_of(w, b);
	if (x == y)
		return;
	y->parent = x->parent;
	x->nr_reads += y->nr_reads;
	x->busy |= y->busy;
	x->calls |= y->calls;
	x->is_pressed |= y->is_pressed;
	x->leads_on |= y->leads_on;
	x->is_proven |= y->is_proven;
	x->is_outside |= y->is_outside;
	x->is_only_others &= y->is_only_others;
}

/* Instruction @i is part of the web. */
static void touch(const struct webs *w, struct web *web, size_t i)
{
	uint64_t addr = w->code->insns[i].addr;
	web->is_outside |= !is_own(w, addr);
	web->is_only_others &= is_others(w, addr);
}

static void read_at(struct webs *w, size_t i)
{
	uint32_t of = w->now - 1;
	struct web *web = web_of(w, of);
	w->read[w->nr_read++] = (uint32_t)i;
	web->leads_on |= line_of(w, w->web[of].write) &&
			 line_of(w, i) > line_of(w, w->web[of].write);
	touch(w, web, i);
	if (w->read_by[i]) {
		join(w, w->read_by[i] - 1, of);
	} else {
		w->read_by[i] = of + 1;
		web->nr_reads++;
	}
}

static void come(struct webs *w, size_t from, size_t to)
{
	(void)from;
	w->steps++;
	if (w->seen[to] == w->now || !(w->live[to] >> w->reg & 1))
		return;
	w->seen[to] = w->now;
	w->stack[w->nr_stack++] = (uint32_t)to;
}

/* Follow the value of the write just now to where it is read. */
static void follow(struct webs *w)
{
	size_t write = w->web[w->now - 1].write;
	w->nr_read = 0;
	touch(w, &w->web[w->now - 1], write);
	each_next(w, write, come);
	while (w->nr_stack) {
		size_t i = w->stack[--w->nr_stack];
		const struct range_insn *in = &w->code->insns[i];
		struct web *web = web_of(w, w->now - 1);
		web->busy |= w->live[i];
		if (is_call(in))
			web->calls = true;
		else
			web->busy |= in->wrote;
		web->is_pressed |= wants_some(in);
		if (reads(w, i))
			read_at(w, i);
		if (!writes(w, i))
			each_next(w, i, come);
	}
}

/* --- what shows whose it is --- */

static bool is_used_within(const struct webs *w, size_t lo, size_t hi)
{
	size_t write = w->web[w->now - 1].write;
	for (size_t i = 0; i < w->nr_read; i++)
		if (w->read[i] >= lo && w->read[i] <= hi)
			return true;
	return write >= lo && write <= hi;
}

/* Does the value go round a loop that it is used in? */
static bool goes_round(const struct webs *w)
{
	const struct range_code *code = w->code;
	for (size_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (w->seen[i] != w->now || !in->target || is_call(in) ||
		    in->target > in->addr)
			continue;
		size_t to = range_code_find(code, in->target);
		if (w->seen[to] == w->now && is_used_within(w, to, i))
			return true;
	}
	return false;
}

/* Is it there at a line behind that of the write, and before that of a read?
 * Not of a read where the function ends: what it returns waits for that. */
static bool leads_past(const struct webs *w)
{
	uint32_t from = line_of(w, w->web[w->now - 1].write), to = 0;
	uint32_t last = w->rows[w->nr_rows - 1].line;
	for (size_t i = 0; i < w->nr_read; i++) {
		uint32_t line = line_of(w, w->read[i]);
		if (line > to && line != last)
			to = line;
	}
	for (size_t i = 0; from && i < w->code->nr; i++) {
		uint32_t line = line_of(w, i);
		if (w->seen[i] == w->now && line > from && line < to)
			return true;
	}
	return false;
}

/* Is it copied from a register that a parameter comes in, before that holds
 * anything else? */
static bool is_given(const struct webs *w)
{
	const struct range_code *code = w->code;
	size_t write = w->web[w->now - 1].write;
	const struct range_insn *in = &code->insns[write];
	uint32_t from = in->use & RANGE_ALL_REGS, wrote = 0;
	if (!(w->v->vars[w->var].flags & VAR_PARAMETER) || in->mem_size ||
	    !(in->bits & RB_COMPUTES) || in->bits & (RB_ADDS | RB_LEA) ||
	    !(from & ARGUMENTS) || from & (from - 1))
		return false;
	for (size_t i = 0; i < write; i++) {
		const struct range_insn *k = &code->insns[i];
		wrote |= k->wrote;
		if (k->kind != RK_PLAIN || !range_falls(code, i) ||
		    (i && k->bits & RB_LEADER))
			return false;
	}
	return !(wrote & from);
}

static bool is_believed(struct webs *w, uint32_t i)
{
	const struct web *web = web_of(w, i);
	uint32_t wrote = w->code->insns[w->web[i].write].wrote;
	bool plain = !web->calls && !web->is_pressed && NOT_KEPT & ~web->busy &&
		     web->leads_on;
	return !web->is_outside && !web->is_only_others && web->nr_reads &&
	       (web->is_proven || plain) && !(wrote & (wrote - 1));
}

/* --- all of it --- */

/* Does the function move its stack pointer? What it restores that from is in a
 * register for longer than a statement. */
static bool has_moving_stack(const struct range_code *code)
{
	for (size_t i = 0; i < code->nr; i++) {
		const struct range_insn *in = &code->insns[i];
		if (in->kind == RK_PLAIN && in->wrote == 1u << RANGE_RSP &&
		    !(in->bits & (RB_POP | RB_ADDS | RB_STORES | RB_LEA)) &&
		    (in->use & RANGE_ALL_REGS) != 1u << RANGE_RBP)
			return true;
	}
	return false;
}

static bool webs_init(struct webs *w)
{
	size_t nr = w->code->nr + 1;
	w->row = calloc(nr, sizeof(*w->row));
	w->live = calloc(nr, sizeof(*w->live));
	w->web = calloc(nr, sizeof(*w->web));
	w->read_by = calloc(nr, sizeof(*w->read_by));
	w->seen = calloc(nr, sizeof(*w->seen));
	w->stack = calloc(nr, sizeof(*w->stack));
	w->read = calloc(nr, sizeof(*w->read));
	return w->row && w->live && w->web && w->read_by && w->seen &&
	       w->stack && w->read;
}

static void webs_deinit(struct webs *w)
{
	free(w->row);
	free(w->live);
	free(w->web);
	free(w->read_by);
	free(w->seen);
	free(w->stack);
	free(w->read);
}

/* False: it would take too long. */
static bool find_webs(struct webs *w)
{
	find_rows(w);
	if (!find_live(w))
		return false;
	for (size_t i = 0; i < w->code->nr; i++)
		if (writes(w, i)) {
			w->web[w->nr] = (struct web){.parent = (uint32_t)w->nr,
						     .write = (uint32_t)i,
						     .is_only_others = true};
			w->nr++;
		}
	for (w->now = 1; w->now <= w->nr; w->now++) {
		follow(w);
		if (w->steps > MOST_STEPS)
			return false;
		web_of(w, w->now - 1)->is_proven |=
			goes_round(w) || leads_past(w) || is_given(w);
	}
	return true;
}

bool range_web_find(const struct range_code *code, const struct variables *v,
		    const struct range_index_entry *all, size_t nr,
		    uint32_t var, const struct var_place *p, bool **ret)
{
	struct webs w = {.code = code,
			 .v = v,
			 .all = all,
			 .nr_all = nr,
			 .var = var,
			 .p = p,
			 .reg = range_reg_of_dwarf(p->reg)};
	*ret = NULL;
	w.rows = variables_rows(v, p->function, &w.nr_rows);
	if (!w.nr_rows || w.reg >= 16 || code->free_jumps ||
	    has_moving_stack(code))
		return true;
	bool *is_own_value = calloc(code->nr + 1, sizeof(*is_own_value));
	bool fine = webs_init(&w) && is_own_value;
	if (fine && find_webs(&w)) {
		for (uint32_t i = 0; i < w.nr; i++)
			is_own_value[w.web[i].write] = is_believed(&w, i);
		*ret = is_own_value;
	} else {
		free(is_own_value);
	}
	webs_deinit(&w);
	return fine;
}
