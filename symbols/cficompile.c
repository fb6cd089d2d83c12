#include "symbols/cficompile.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Bounds on what a hostile file can make us build. */
#define MAX_ROWS  (16u << 20)
#define MAX_RULES (1u << 20)

/* --- equal things stored once, where they stay --- */

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

/* Each chunk is twice as large as the one before. */
static unsigned chunk_of(size_t i)
{
	return 63 - (unsigned)__builtin_clzll(i / CFI_CHUNK + 1);
}

const void *cfi_pool_item(const struct cfi_pool *p, size_t i)
{
	unsigned k = chunk_of(i);
	size_t first = CFI_CHUNK * ((UINT64_C(1) << k) - 1);
	return (const char *)p->chunk[k] + (i - first) * p->item;
}

static bool pool_grow_hash(struct cfi_pool *p)
{
	size_t size = p->hash_size ? p->hash_size * 2 : 4 * CFI_CHUNK;
	uint32_t *hash = calloc(size, sizeof(*hash));
	if (!hash)
		return false;
	for (size_t i = 0; i < p->nr; i++) {
		size_t at = hash_bytes(cfi_pool_item(p, i), p->item);
		while (hash[at & (size - 1)])
			at++;
		hash[at & (size - 1)] = (uint32_t)i + 1;
	}
	free(p->hash);
	p->hash = hash;
	p->hash_size = size;
	return true;
}

/* Room for one more. */
static bool pool_grow(struct cfi_pool *p)
{
	unsigned k = chunk_of(p->nr);
	if (p->nr >= MAX_RULES ||
	    (p->nr * 4 >= p->hash_size && !pool_grow_hash(p)))
		return false;
	if (!p->chunk[k])
		p->chunk[k] = malloc((CFI_CHUNK << k) * p->item);
	return p->chunk[k];
}

/* The index of what equals @item; -1 if there is no room for it. */
static int64_t pool_intern(struct cfi_pool *p, const void *item)
{
	if (!pool_grow(p))
		return -1;
	size_t at = hash_bytes(item, p->item);
	for (;; at++) {
		uint32_t *slot = &p->hash[at & (p->hash_size - 1)];
		if (!*slot) {
			memcpy((void *)cfi_pool_item(p, p->nr), item, p->item);
			*slot = (uint32_t)++p->nr;
			return (int64_t)p->nr - 1;
		}
		if (!memcmp(cfi_pool_item(p, *slot - 1), item, p->item))
			return *slot - 1;
	}
}

static void pool_deinit(struct cfi_pool *p)
{
	for (unsigned k = 0; k < CFI_CHUNKS; k++)
		free(p->chunk[k]);
	free(p->hash);
}

/* --- executing the instructions --- */

/* A full description as a compact rule; false if it does not fit. */
static bool make_compact(const struct cfi_state *s, struct cfi_rule *r)
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
static uint32_t rule_of(struct cfi_compiler *c)
{
	const struct cfi_state *s = &c->state;
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
	if (!make_compact(s, &r)) {
		int64_t full = pool_intern(&c->fulls, &s->regs);
		if (full < 0)
			return 0;
		r.flags |= CFI_FULL;
		r.full = (uint32_t)full;
		r.mask = 0;
		r.ra_off = 0;
		memset(r.off, 0, sizeof(r.off));
	}
	int64_t index = pool_intern(&c->rules, &r);
	return index < 0 ? 0 : (uint32_t)index;
}

/* From @loc on @rule holds. Locations come in order, up to equal ones. */
static void add_row(struct cfi_compiler *c, uint64_t loc, uint32_t rule)
{
	uint32_t rel = (uint32_t)(loc - c->start);
	bool is_first = c->nr == c->first;
	if (!is_first && c->rule[c->nr - 1] == rule)
		return;
	if (c->nr >= MAX_ROWS) {
		c->no_memory = true;
		return;
	}
	if (c->nr == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 256;
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
	c->pc[c->nr] = rel;
	c->rule[c->nr++] = rule;
}

/* The state so far holds up to @loc. */
static bool advance_to(struct cfi_compiler *c, uint64_t loc)
{
	if (loc < c->loc)
		return false;
	if (loc > c->end)
		loc = c->end;
	if (loc > c->loc)
		add_row(c, c->loc, rule_of(c));
	c->loc = loc;
	return true;
}

static void set_reg(struct cfi_compiler *c, uint64_t reg,
		    enum cfi_reg_kind kind, int64_t val)
{
	/* The column of the return address is 16 but for exotic producers. */
	if (reg == c->cie->ra_reg)
		reg = CFI_RA;
	if (reg >= CFI_NR_REGS)
		return; /* vector registers: never needed for unwinding */
	c->state.regs.kind[reg] = (uint8_t)kind;
	c->state.regs.val[reg] = val;
}

static void restore_reg(struct cfi_compiler *c, uint64_t reg)
{
	if (reg == c->cie->ra_reg)
		reg = CFI_RA;
	if (reg >= CFI_NR_REGS)
		return;
	c->state.regs.kind[reg] = c->initial->regs.kind[reg];
	c->state.regs.val[reg] = c->initial->regs.val[reg];
}

/* Pass over a block; its place in the section, length included. */
static int64_t take_block(struct cfi_compiler *c, struct cursor *p)
{
	int64_t at = p->p - c->section->bytes.data;
	cursor_take(p, cursor_uleb(p));
	return at;
}

static int64_t scaled(const struct cfi_compiler *c, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)c->cie->data_align);
}

static bool step_loc(struct cfi_compiler *c, uint64_t delta)
{
	uint64_t by;
	if (__builtin_mul_overflow(delta, c->cie->code_align, &by) ||
	    __builtin_add_overflow(c->loc, by, &by))
		return false;
	return advance_to(c, by);
}

/* The instructions that change how the CFA is computed. */
static bool execute_cfa(struct cfi_compiler *c, uint8_t op, struct cursor *p)
{
	struct cfi_state *s = &c->state;
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
static bool execute_reg(struct cfi_compiler *c, uint8_t op, struct cursor *p)
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
static bool execute_extended(struct cfi_compiler *c, uint8_t op,
			     struct cursor *p)
{
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc: {
		uint64_t vaddr = c->section->vaddr +
				 (uint64_t)(p->p - c->section->bytes.data);
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
		if (c->nr_remembered == CFI_MAX_REMEMBERED)
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
static bool execute(struct cfi_compiler *c, struct cursor p)
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
static const struct cfi_state *initial_state(struct cfi_compiler *c,
					     uint32_t index,
					     const struct ehframe_cie *cie)
{
	static const struct cfi_state nothing;
	while (c->nr_cies <= index) {
		size_t nr = c->nr_cies ? c->nr_cies * 2 : 8;
		struct cfi_state *mem = realloc(c->cies, nr * sizeof(*mem));
		if (!mem)
			return NULL;
		memset(mem + c->nr_cies, 0, (nr - c->nr_cies) * sizeof(*mem));
		c->cies = mem;
		c->nr_cies = nr;
	}
	struct cfi_state *s = &c->cies[index];
	if (!s->known) {
		c->state = nothing;
		c->initial = &nothing;
		c->nr_remembered = 0;
		c->loc = c->end = 0; /* there are no rows */
		bool usable = execute(c, cie->program);
		*s = c->state;
		s->known = true;
		s->usable = usable;
	}
	return s->usable ? s : NULL;
}

bool cfi_compiler_init(struct cfi_compiler *c,
		       const struct ehframe_section *section)
{
	const struct cfi_rule none = {0};
	*c = (struct cfi_compiler){.section = section};
	c->rules.item = sizeof(struct cfi_rule);
	c->fulls.item = sizeof(struct cfi_full);
	return pool_intern(&c->rules, &none) == 0;
}

void cfi_compiler_deinit(struct cfi_compiler *c)
{
	pool_deinit(&c->rules);
	pool_deinit(&c->fulls);
	free(c->cies);
	free(c->pc);
	free(c->rule);
}

bool cfi_compile(struct cfi_compiler *c, const struct ehframe_cie *cie,
		 const struct ehframe_fde *fde, struct cfi_rows *ret)
{
	c->cie = cie;
	c->first = c->nr;
	c->no_memory = false;
	c->initial = initial_state(c, fde->cie, cie);
	c->start = c->loc = fde->start;
	c->end = fde->end - fde->start < UINT32_MAX ? fde->end
						    : fde->start + UINT32_MAX;
	if (c->initial) {
		c->state = *c->initial;
		c->nr_remembered = 0;
		if (execute(c, fde->program))
			advance_to(c, c->end);
	}
	/* Nothing is known behind it, or of what was not understood. */
	if (c->nr == c->first || c->loc < c->end)
		add_row(c, c->loc, 0);
	*ret = (struct cfi_rows){
		.first = (uint32_t)c->first,
		.nr = (uint32_t)(c->nr - c->first),
		.len = (uint32_t)(c->end - c->start),
	};
	if (c->no_memory)
		c->nr = c->first;
	return !c->no_memory;
}
