#include "symbols/cfi.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/ehframe.h"

/* Bounds on what a hostile file can make us build. */
/* Compiled at a stretch: some 100 us. */
#define PAUSE_FDES     128
#define MAX_ROWS       (16u << 20)
#define MAX_RULES      (1u << 20)
#define MAX_REMEMBERED 32

/* --- equal things stored once --- */

struct pool {
	void *items;
	size_t item; /* bytes */
	size_t nr, cap;
	uint32_t *hash; /* index + 1 */
	size_t hash_size;
};

static uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0x9e3779b97f4a7c15ULL;
	for (; len >= 8; len -= 8, p += 8) {
		uint64_t w;
		memcpy(&w, p, 8);
		h = (h ^ w) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	for (; len; len--, p++)
		h = (h ^ *p) * 0xff51afd7ed558ccdULL;
	return h ^ (h >> 29);
}

static void *pool_item(const struct pool *p, size_t i)
{
	return (char *)p->items + i * p->item;
}

static bool pool_grow(struct pool *p)
{
	size_t cap = p->cap ? p->cap * 2 : 64;
	void *items = realloc(p->items, cap * p->item);
	if (!items)
		return false;
	p->items = items;
	p->cap = cap;
	free(p->hash);
	p->hash_size = cap * 4;
	p->hash = calloc(p->hash_size, sizeof(*p->hash));
	if (!p->hash)
		return false;
	for (size_t i = 0; i < p->nr; i++) {
		size_t at = hash_bytes(pool_item(p, i), p->item);
		while (p->hash[at & (p->hash_size - 1)])
			at++;
		p->hash[at & (p->hash_size - 1)] = (uint32_t)i + 1;
	}
	return true;
}

/* The index of what equals @item; -1 if there is no room for it. */
static int64_t pool_intern(struct pool *p, const void *item)
{
	if (p->nr == p->cap && (p->nr >= MAX_RULES || !pool_grow(p)))
		return -1;
	size_t at = hash_bytes(item, p->item);
	for (;; at++) {
		uint32_t *slot = &p->hash[at & (p->hash_size - 1)];
		if (!*slot) {
			memcpy(pool_item(p, p->nr), item, p->item);
			*slot = (uint32_t)++p->nr;
			return (int64_t)p->nr - 1;
		}
		if (!memcmp(pool_item(p, *slot - 1), item, p->item))
			return *slot - 1;
	}
}

/* --- executing the instructions --- */

struct state {
	bool known; /* in cie_states: was computed, @usable says how it went */
	bool usable;
	uint8_t cfa_kind;
	uint64_t cfa_reg;
	int64_t cfa_off; /* or the expression's place in the section */
	struct cfi_full regs;
};

struct compiler {
	const struct ehframe_section *section;
	const struct ehframe_cie *cie;
	uint64_t loc, end, clip;
	struct state state;
	const struct state *initial;
	struct state *cie_states; /* by CIE; a used one has set @known */
	struct state remembered[MAX_REMEMBERED];
	unsigned nr_remembered;

	uint64_t base;
	uint32_t *pc, *rule;
	size_t nr, cap;
	struct pool rules, fulls;
	bool uses_section;
	bool no_memory;
};

/* A full description as a compact rule; false if it does not fit. */
static bool make_compact(const struct state *s, struct cfi_rule *r)
{
	unsigned n = 0;
	for (unsigned i = 0; i < CFI_RA; i++) {
		int64_t val = s->regs.val[i];
		if (s->regs.kind[i] == CFI_SAME ||
		    s->regs.kind[i] == CFI_UNDEFINED)
			continue;
		if (s->regs.kind[i] != CFI_OFFSET || i == CFI_RSP ||
		    n == CFI_NR_SAVED || val != (int32_t)val)
			return false;
		r->mask |= (uint16_t)(1u << i);
		r->off[n++] = (int32_t)val;
	}
	switch (s->regs.kind[CFI_RA]) {
	case CFI_SAME:
	case CFI_UNDEFINED:
		r->flags |= CFI_OUTERMOST;
		return true;
	case CFI_OFFSET:
		r->ra_off = (int32_t)s->regs.val[CFI_RA];
		return r->ra_off == s->regs.val[CFI_RA];
	default:
		return false;
	}
}

/* Index of the rule for the present state; 0, the empty rule, if unusable. */
static uint32_t rule_of(struct compiler *c)
{
	const struct state *s = &c->state;
	struct cfi_rule r;
	memset(&r, 0, sizeof(r));
	if (s->cfa_kind == CFI_CFA_NONE || s->cfa_reg >= CFI_RA ||
	    s->cfa_off != (int32_t)s->cfa_off)
		return 0;
	r.cfa_kind = s->cfa_kind;
	r.cfa_reg = (uint8_t)s->cfa_reg;
	r.cfa_off = (int32_t)s->cfa_off;
	if (c->cie->is_signal_frame)
		r.flags |= CFI_SIGNAL;
	if (s->cfa_kind == CFI_CFA_EXPR)
		c->uses_section = true;
	if (!make_compact(s, &r)) {
		int64_t full = pool_intern(&c->fulls, &s->regs);
		if (full < 0)
			return 0;
		r.flags |= CFI_FULL;
		r.full = (uint32_t)full;
		r.mask = 0;
		r.ra_off = 0;
		memset(r.off, 0, sizeof(r.off));
		for (unsigned i = 0; i < CFI_NR_REGS; i++)
			if (s->regs.kind[i] >= CFI_EXPR)
				c->uses_section = true;
	}
	int64_t index = pool_intern(&c->rules, &r);
	return index < 0 ? 0 : (uint32_t)index;
}

/* From @loc on @rule holds. Locations come in order, up to equal ones. */
static void add_row(struct compiler *c, uint64_t loc, uint32_t rule)
{
	uint64_t rel = loc - c->base;
	if (rel > UINT32_MAX || c->nr >= MAX_ROWS)
		return;
	if (c->nr && c->pc[c->nr - 1] == rel) {
		c->rule[c->nr - 1] = rule;
		return;
	}
	if (c->nr && c->rule[c->nr - 1] == rule)
		return;
	if (c->nr == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 4096;
		uint32_t *pc = realloc(c->pc, cap * sizeof(*pc));
		if (pc)
			c->pc = pc;
		uint32_t *rules = realloc(c->rule, cap * sizeof(*rules));
		if (rules)
			c->rule = rules;
		if (!pc || !rules) {
			c->no_memory = true;
			return;
		}
		c->cap = cap;
	}
	c->pc[c->nr] = (uint32_t)rel;
	c->rule[c->nr++] = rule;
}

/* The state so far holds up to @loc. */
static bool advance_to(struct compiler *c, uint64_t loc)
{
	if (loc < c->loc)
		return false;
	if (loc > c->end)
		loc = c->end;
	if (loc > c->loc && loc > c->clip)
		add_row(c, c->loc > c->clip ? c->loc : c->clip, rule_of(c));
	c->loc = loc;
	return true;
}

static void set_reg(struct compiler *c, uint64_t reg, enum cfi_reg_kind kind,
		    int64_t val)
{
	/* The column of the return address is 16 but for exotic producers. */
	if (reg == c->cie->ra_reg)
		reg = CFI_RA;
	if (reg >= CFI_NR_REGS)
		return; /* vector registers: never needed for unwinding */
	c->state.regs.kind[reg] = (uint8_t)kind;
	c->state.regs.val[reg] = val;
}

static void restore_reg(struct compiler *c, uint64_t reg)
{
	if (reg == c->cie->ra_reg)
		reg = CFI_RA;
	if (reg >= CFI_NR_REGS)
		return;
	c->state.regs.kind[reg] = c->initial->regs.kind[reg];
	c->state.regs.val[reg] = c->initial->regs.val[reg];
}

/* Pass over a block; its place in the section, length included. */
static int64_t take_block(struct compiler *c, struct cursor *p)
{
	int64_t at = p->p - c->section->data;
	cursor_take(p, cursor_uleb(p));
	return at;
}

static int64_t scaled(const struct compiler *c, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)c->cie->data_align);
}

static bool step_loc(struct compiler *c, uint64_t delta)
{
	uint64_t by;
	if (__builtin_mul_overflow(delta, c->cie->code_align, &by) ||
	    __builtin_add_overflow(c->loc, by, &by))
		return false;
	return advance_to(c, by);
}

/* The instructions that change how the CFA is computed. */
static bool execute_cfa(struct compiler *c, uint8_t op, struct cursor *p)
{
	struct state *s = &c->state;
	switch (op) {
	case DW_CFA_def_cfa:
		s->cfa_kind = CFI_CFA_REG;
		s->cfa_reg = cursor_uleb(p);
		s->cfa_off = (int64_t)cursor_uleb(p);
		return true;
	case DW_CFA_def_cfa_sf:
		s->cfa_kind = CFI_CFA_REG;
		s->cfa_reg = cursor_uleb(p);
		s->cfa_off = scaled(c, cursor_sleb(p));
		return true;
	case DW_CFA_def_cfa_register:
		s->cfa_reg = cursor_uleb(p);
		return s->cfa_kind == CFI_CFA_REG;
	case DW_CFA_def_cfa_offset:
		s->cfa_off = (int64_t)cursor_uleb(p);
		return s->cfa_kind == CFI_CFA_REG;
	case DW_CFA_def_cfa_offset_sf:
		s->cfa_off = scaled(c, cursor_sleb(p));
		return s->cfa_kind == CFI_CFA_REG;
	case DW_CFA_def_cfa_expression:
		s->cfa_kind = CFI_CFA_EXPR;
		s->cfa_reg = 0;
		s->cfa_off = take_block(c, p);
		return true;
	default:
		return false;
	}
}

/* The instructions that say where a register was saved. */
static bool execute_reg(struct compiler *c, uint8_t op, struct cursor *p)
{
	uint64_t reg = cursor_uleb(p);
	switch (op) {
	case DW_CFA_offset_extended:
		set_reg(c, reg, CFI_OFFSET, scaled(c, (int64_t)cursor_uleb(p)));
		return true;
	case DW_CFA_offset_extended_sf:
		set_reg(c, reg, CFI_OFFSET, scaled(c, cursor_sleb(p)));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		set_reg(c, reg, CFI_OFFSET,
			(int64_t) -
				(uint64_t)scaled(c, (int64_t)cursor_uleb(p)));
		return true;
	case DW_CFA_val_offset:
		set_reg(c, reg, CFI_VAL_OFFSET,
			scaled(c, (int64_t)cursor_uleb(p)));
		return true;
	case DW_CFA_val_offset_sf:
		set_reg(c, reg, CFI_VAL_OFFSET, scaled(c, cursor_sleb(p)));
		return true;
	case DW_CFA_restore_extended:
		restore_reg(c, reg);
		return true;
	case DW_CFA_undefined:
		set_reg(c, reg, CFI_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set_reg(c, reg, CFI_SAME, 0);
		return true;
	case DW_CFA_register: {
		uint64_t from = cursor_uleb(p);
		set_reg(c, reg, CFI_REGISTER, (int64_t)from);
		return from < CFI_NR_REGS;
	}
	case DW_CFA_expression:
		set_reg(c, reg, CFI_EXPR, take_block(c, p));
		return true;
	case DW_CFA_val_expression:
		set_reg(c, reg, CFI_VAL_EXPR, take_block(c, p));
		return true;
	default:
		return false;
	}
}

/* The others that have their code in the low six bits. */
static bool execute_extended(struct compiler *c, uint8_t op, struct cursor *p)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc: {
		uint64_t vaddr =
			c->section->vaddr + (uint64_t)(p->p - c->section->data);
		uint64_t to = ehframe_pointer(p, c->cie->encoding, vaddr);
		return !p->bad && advance_to(c, to);
	}
	case DW_CFA_advance_loc1:
		return step_loc(c, cursor_uint(p, 1));
	case DW_CFA_advance_loc2:
		return step_loc(c, cursor_uint(p, 2));
	case DW_CFA_advance_loc4:
		return step_loc(c, cursor_uint(p, 4));
	case DW_CFA_remember_state:
		if (c->nr_remembered == MAX_REMEMBERED)
			return false;
		c->remembered[c->nr_remembered++] = c->state;
		return true;
	case DW_CFA_restore_state:
		if (!c->nr_remembered)
			return false;
		c->state = c->remembered[--c->nr_remembered];
		return true;
	case DW_CFA_GNU_args_size:
		cursor_uleb(p);
		return true;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		return execute_cfa(c, op, p);
	default:
		return execute_reg(c, op, p);
	}
}

/* False if the instructions make no sense from some point on. */
static bool execute(struct compiler *c, struct cursor p)
{
	while (cursor_more(&p)) {
		uint8_t op = (uint8_t)cursor_uint(&p, 1), low = op & 0x3f;
		bool fine = true;
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			fine = step_loc(c, low);
			break;
		case DW_CFA_offset:
			set_reg(c, low, CFI_OFFSET,
				scaled(c, (int64_t)cursor_uleb(&p)));
			break;
		case DW_CFA_restore:
			restore_reg(c, low);
			break;
		default:
			fine = execute_extended(c, low, &p);
			break;
		}
		if (!fine || p.bad || c->no_memory)
			return false;
	}
	return true;
}

/* What the CIE's instructions establish; NULL if they make no sense. */
static const struct state *initial_state(struct compiler *c, uint32_t index,
					 const struct ehframe_cie *cie)
{
	static const struct state nothing;
	struct state *s = &c->cie_states[index];
	if (!s->known) {
		c->state = nothing;
		c->initial = &nothing;
		c->nr_remembered = 0;
		c->loc = c->end = c->clip;
		bool usable = execute(c, cie->program);
		*s = c->state;
		s->known = true;
		s->usable = usable;
	}
	return s->usable ? s : NULL;
}

static void compile_fde(struct compiler *c, const struct ehframe *e,
			const struct ehframe_fde *fde)
{
	c->cie = &e->cies[fde->cie];
	c->initial = initial_state(c, fde->cie, c->cie);
	if (!c->initial)
		return;
	c->state = *c->initial;
	c->nr_remembered = 0;
	c->loc = fde->start;
	c->end = fde->end;
	if (fde->end <= c->clip)
		return; /* inside one that was compiled already */
	if (execute(c, fde->program))
		advance_to(c, c->end);
	/* Nothing is known behind it, or of what was not understood. */
	uint64_t from = c->loc > c->clip ? c->loc : c->clip;
	add_row(c, from, 0);
	c->clip = from;
}

static _Thread_local bool (*pause_fn)(void *ctx);
static _Thread_local void *pause_ctx;
static _Thread_local bool has_given_up;

void cfi_set_pause(bool (*fn)(void *ctx), void *ctx)
{
	pause_fn = fn;
	pause_ctx = ctx;
	has_given_up = false;
}

bool cfi_has_given_up(void)
{
	return has_given_up;
}

static bool compile(struct compiler *c, const struct ehframe *e)
{
	const struct cfi_rule none = {0};
	if (!e->nr_fdes || pool_intern(&c->rules, &none) < 0)
		return false;
	c->cie_states = calloc(e->nr_cies, sizeof(*c->cie_states));
	if (!c->cie_states)
		return false;
	c->base = c->clip = e->fdes[0].start;
	for (size_t i = 0; i < e->nr_fdes && !c->no_memory; i++) {
		if (pause_fn && i % PAUSE_FDES == 0)
			has_given_up |= !pause_fn(pause_ctx);
		if (has_given_up)
			return false;
		compile_fde(c, e, &e->fdes[i]);
	}
	return c->nr && !c->no_memory;
}

struct cfi_table *cfi_create(Elf *elf)
{
	struct ehframe_section section;
	struct ehframe e;
	if (!ehframe_load(&section, elf))
		return NULL;
	struct compiler *c = calloc(1, sizeof(*c));
	struct cfi_table *t = calloc(1, sizeof(*t));
	bool fine = false;
	if (c && t && ehframe_parse(&e, &section)) {
		c->section = &section;
		c->rules.item = sizeof(struct cfi_rule);
		c->fulls.item = sizeof(struct cfi_full);
		fine = compile(c, &e);
		ehframe_deinit(&e);
	}
	if (fine) {
		*t = (struct cfi_table){
			.base = c->base,
			.pc = c->pc,
			.rule = c->rule,
			.nr = c->nr,
			.rules = c->rules.items,
			.nr_rules = c->rules.nr,
			.fulls = c->fulls.items,
			.nr_fulls = c->fulls.nr,
		};
		if (c->uses_section) {
			t->section = section.data;
			t->section_len = section.len;
			section.data = NULL;
		}
	} else if (c) {
		free(c->pc);
		free(c->rule);
		free(c->rules.items);
		free(c->fulls.items);
	}
	if (c) {
		free(c->cie_states);
		free(c->rules.hash);
		free(c->fulls.hash);
	}
	ehframe_section_deinit(&section);
	free(c);
	if (fine)
		return t;
	free(t);
	return NULL;
}

void cfi_destroy(struct cfi_table *t)
{
	if (!t)
		return;
	free(t->pc);
	free(t->rule);
	free(t->rules);
	free(t->fulls);
	free(t->section);
	free(t);
}

/* The last row at or before @rel; only if there is one. */
static size_t find_row(const struct cfi_table *t, uint64_t rel)
{
	size_t lo = 0, nr = t->nr;
	while (nr > 1) {
		size_t half = nr / 2;
		if (t->pc[lo + half] <= rel)
			lo += half;
		nr -= half;
	}
	return lo;
}

const struct cfi_rule *cfi_row(const struct cfi_table *t, uint64_t addr,
			       uint64_t *next_ret)
{
	uint64_t rel = addr - t->base;
	*next_ret = UINT64_MAX;
	if (addr < t->base || !t->nr) {
		*next_ret = t->nr ? t->base : UINT64_MAX;
		return NULL;
	}
	if (rel > UINT32_MAX)
		return NULL;
	size_t row = find_row(t, rel);
	if (t->pc[row] > rel) {
		*next_ret = t->base + t->pc[row];
		return NULL;
	}
	if (row + 1 < t->nr)
		*next_ret = t->base + t->pc[row + 1];
	const struct cfi_rule *r = &t->rules[t->rule[row]];
	return r->cfa_kind == CFI_CFA_NONE ? NULL : r;
}

const struct cfi_rule *cfi_lookup(const struct cfi_table *t, uint64_t addr)
{
	uint64_t next;
	return cfi_row(t, addr, &next);
}
