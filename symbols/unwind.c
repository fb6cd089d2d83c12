/*
 * The table unwinder. Per frame: find the rule (mostly in a cache by program
 * counter), compute the CFA, take the saved registers out of a copy of the
 * stack. The copy is read in a few large pieces, the first of which is as large
 * as the last stacks needed.
 */
#include <stdlib.h>
#include <string.h>

#include "symbols/cfi.h"
#include "symbols/cfiexpr.h"
#include "symbols/ehframe.h"
#include "symbols/space.h"

#define CACHE_SIZE 4096 /* a power of two */
#define WINDOW_MAX (32u << 10)
#define WINDOW_MIN 1024u
#define BELOW	   64
/* How far a frame pointer may be from the stack pointer to be believed. */
#define MAX_FRAME (1u << 20)

struct cached_rule {
	uint64_t pc;		     /* 0: free */
	const struct cfi_rule *rule; /* NULL: there is none */
	struct cfi_table *table;
	bool no_trampoline; /* looked at its code already */
	bool is_entry;	    /* there is none, for nobody has called it */
	bool unknown;	    /* in no mapping that we know of */
};

struct unwind_state {
	struct cached_rule cache[CACHE_SIZE];
	uint64_t window_start;
	size_t window_len;
	size_t first_read; /* bytes; follows what stacks need */
	size_t next_read;
	uint64_t highest; /* address used so far */
	bool stale;	  /* see sym_unwind_stale */
	bool late;	  /* see sym_unwind_late */
	bool is_copy;	  /* the window is all there is */
	uint8_t window[WINDOW_MAX];
};

void unwind_state_destroy(struct unwind_state *u)
{
	free(u);
}

void unwind_state_flush(struct unwind_state *u)
{
	if (u)
		memset(u->cache, 0, sizeof(u->cache));
}

/* --- the stack --- */

/*
 * Bring @addr into the window; false if it cannot be read. The words just
 * below come along: they are likely wanted next, as saved registers. Where the
 * whole is refused a part may be there, at the end of the stack.
 */
static bool refill(struct sym_space *s, uint64_t addr)
{
	struct unwind_state *u = s->unwind;
	uint64_t in_page = addr & (TPAGE_SIZE - 1);
	uint64_t from = addr - (in_page >= BELOW ? BELOW : 0);
	const struct {
		uint64_t from;
		size_t len;
	} tries[] = {
		{from, u->next_read},
		{from, TPAGE_SIZE - (from & (TPAGE_SIZE - 1))},
		{addr, 8},
	};
	if (u->is_copy)
		return false;
	u->window_len = 0;
	for (size_t i = 0; s->read && i < ARRAY_SIZE(tries); i++) {
		ssize_t n = s->read(s->read_ctx, tries[i].from, u->window,
				    tries[i].len);
		if (n < 8 || (size_t)n > tries[i].len ||
		    (size_t)n < addr - tries[i].from + 8)
			continue;
		u->window_start = tries[i].from;
		u->window_len = (size_t)n;
		u->next_read *= 2;
		if (u->next_read > WINDOW_MAX)
			u->next_read = WINDOW_MAX;
		return true;
	}
	return false;
}

static inline bool read_word(struct sym_space *s, uint64_t addr, uint64_t *ret)
{
	struct unwind_state *u = s->unwind;
	if (u->window_len < 8 || addr - u->window_start > u->window_len - 8) {
		if (!refill(s, addr))
			return false;
	}
	if (addr > u->highest)
		u->highest = addr;
	memcpy(ret, u->window + (addr - u->window_start), 8);
	return true;
}

static bool read_word_cb(void *ctx, uint64_t addr, uint64_t *ret)
{
	return read_word(ctx, addr, ret);
}

/* --- one frame --- */

/* The table of @m, within what patience is left; NULL: none, or u->late. */
static struct cfi_table *find_table(struct sym_space *s, struct module *m)
{
	if (s->patience_ns == UINT64_MAX)
		return module_cfi(m);
	uint64_t now = smco_now_ns();
	struct cfi_table *t =
		module_cfi_by(m, now + s->patience_ns, &s->unwind->late);
	uint64_t waited = smco_now_ns() - now;
	s->patience_ns -= waited < s->patience_ns ? waited : s->patience_ns;
	return t;
}

/*
 * The dynamic linker's first instructions, and those of some programs, say
 * nothing of a caller, and have none: from where the kernel begins on, up to
 * the next code of which something is known.
 */
static bool is_entry(const struct module *m, struct cfi_table *t, uint64_t addr)
{
	uint64_t next;
	return m->entry && addr >= m->entry && !cfi_row(t, m->entry, &next) &&
	       addr < next;
}

static inline struct cached_rule *find_rule(struct sym_space *s, uint64_t pc)
{
	struct cached_rule *c =
		&s->unwind->cache[(pc ^ pc >> 13) & (CACHE_SIZE - 1)];
	if (c->pc == pc)
		return c;
	const struct space_range *r = space_range_at(s, pc);
	struct cfi_table *t = r && r->mod ? find_table(s, r->mod) : NULL;
	*c = (struct cached_rule){
		.pc = s->unwind->late ? 0 : pc,
		.rule = t ? cfi_lookup(t, pc - r->bias) : NULL,
		.table = t,
		.unknown = !r,
	};
	c->is_entry = t && !c->rule && is_entry(r->mod, t, pc - r->bias);
	return c;
}

static bool eval(struct sym_space *s, const struct cfi_table *t, int64_t at,
		 const uint64_t *regs, const uint64_t *cfa, uint64_t *ret)
{
	struct cursor expr = cfi_expression(t, at);
	return !expr.bad && cfiexpr_eval(expr, regs, cfa, read_word_cb, s, ret);
}

/*
 * A saved register. One that was popped again, in a function's end, is said to
 * be below the stack pointer still: a copy has nothing there, and the register
 * its value.
 */
static inline bool read_saved(struct sym_space *s, uint64_t at, uint64_t sp,
			      uint64_t *reg)
{
	return (s->unwind->is_copy && at < sp) || read_word(s, at, reg);
}

/* The caller's registers by a full rule; *slot as for sym_unwind. */
static bool apply_full(struct sym_space *s, const struct cfi_table *t,
		       const struct cfi_full *f, uint64_t cfa, uint64_t *regs,
		       uint64_t *slot)
{
	uint64_t old[CFI_NR_REGS];
	memcpy(old, regs, sizeof(old));
	regs[CFI_RSP] = cfa;
	*slot = 0;
	for (unsigned i = 0; i < CFI_NR_REGS; i++) {
		uint64_t at = cfa + (uint64_t)f->val[i];
		bool in_memory = false;
		switch (f->kind[i]) {
		case CFI_SAME:
		case CFI_UNDEFINED:
			break;
		case CFI_OFFSET:
			in_memory = true;
			break;
		case CFI_VAL_OFFSET:
			regs[i] = at;
			break;
		case CFI_REGISTER:
			regs[i] = old[f->val[i]];
			break;
		case CFI_EXPR:
			if (!eval(s, t, f->val[i], old, &cfa, &at))
				return false;
			in_memory = true;
			break;
		case CFI_VAL_EXPR:
			if (!eval(s, t, f->val[i], old, &cfa, &regs[i]))
				return false;
			break;
		}
		if (!in_memory)
			continue;
		if (i == CFI_RA ? !read_word(s, at, &regs[i])
				: !read_saved(s, at, old[CFI_RSP], &regs[i]))
			return false;
		if (i == CFI_RA)
			*slot = at;
	}
	return true;
}

static inline bool apply_rule(struct sym_space *s, const struct cached_rule *c,
			      uint64_t *regs, uint64_t *slot)
{
	const struct cfi_rule *r = c->rule;
	uint64_t cfa;
	if (r->cfa_kind == CFI_CFA_REG)
		cfa = regs[r->cfa_reg] + (uint64_t)(int64_t)r->cfa_off;
	else if (!eval(s, c->table, r->cfa_off, regs, NULL, &cfa))
		return false;
	if (r->flags & CFI_FULL)
		return apply_full(s, c->table, cfi_full(c->table, r), cfa, regs,
				  slot);
	/* Upwards, the order of the window: saved registers, then the return
	 * address. */
	const int32_t *off = r->off;
	for (unsigned mask = r->mask; mask; mask &= mask - 1, off++)
		if (!read_saved(s, cfa + (uint64_t)(int64_t)*off, regs[CFI_RSP],
				&regs[__builtin_ctz(mask)]))
			return false;
	*slot = cfa + (uint64_t)(int64_t)r->ra_off;
	if (!read_word(s, *slot, &regs[CFI_RA]))
		return false;
	regs[CFI_RSP] = cfa;
	return true;
}

/* --- where there is no rule --- */

/*
 * The kernel's signal frame, recognised by the code it returns to: mov
 * $__NR_rt_sigreturn, %rax; syscall. At that point rsp is the ucontext.
 */
static bool apply_sigreturn(struct sym_space *s, uint64_t *regs, uint64_t *slot)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
				       0x00, 0x00, 0x0f, 0x05};
	/* uc_mcontext's order of registers, from its first on. */
	static const uint8_t order[] = {8, 9, 10, 11, 12, 13, 14, 15,	 5,
					4, 6, 3,  1,  0,  2,  7,  CFI_RA};
	enum { MCONTEXT = 40 };
	uint8_t bytes[sizeof(code)];
	if (!space_read(s, regs[CFI_RA], bytes, sizeof(bytes)) ||
	    memcmp(bytes, code, sizeof(code)))
		return false;
	uint64_t at = regs[CFI_RSP] + MCONTEXT;
	for (size_t i = 0; i < sizeof(order); i++, at += 8)
		if (!read_word(s, at, &regs[order[i]]))
			return false;
	*slot = at - 8;
	return true;
}

/* By the frame pointer, if all that it leads to is plausible. */
static bool apply_frame_pointer(struct sym_space *s, uint64_t *regs,
				uint64_t *slot)
{
	uint64_t fp = regs[CFI_RBP], caller_fp, ra;
	if (fp < regs[CFI_RSP] || fp - regs[CFI_RSP] > MAX_FRAME || fp % 8 ||
	    !read_word(s, fp, &caller_fp) || !read_word(s, fp + 8, &ra) ||
	    !space_range_at(s, ra - 1))
		return false;
	regs[CFI_RBP] = caller_fp;
	regs[CFI_RSP] = fp + 16;
	regs[CFI_RA] = ra;
	*slot = fp + 8;
	return true;
}

/* *signal_ret: the caller was interrupted. That @c is no trampoline is kept:
 * generated code has no rules either, and would be read for every frame. */
static bool apply_guess(struct sym_space *s, struct cached_rule *c,
			uint64_t *regs, uint64_t *slot, bool *signal_ret)
{
	*signal_ret = !c->no_trampoline && apply_sigreturn(s, regs, slot);
	if (*signal_ret)
		return true;
	c->no_trampoline = true;
	return apply_frame_pointer(s, regs, slot);
}

/* --- the stack as a whole --- */

static bool unwind_begin(struct sym_space *s, const struct sym_regs *regs,
			 const struct sym_stack *copy)
{
	if (!s->unwind) {
		s->unwind = calloc(1, sizeof(*s->unwind));
		if (!s->unwind)
			return false;
		s->unwind->first_read = 4096;
	}
	s->unwind->window_len = 0;
	s->unwind->stale = false;
	s->unwind->late = false;
	s->unwind->next_read = s->unwind->first_read;
	s->unwind->highest = regs->reg[CFI_RSP];
	s->unwind->is_copy = copy != NULL;
	if (copy) {
		size_t len = copy->len < WINDOW_MAX ? copy->len : WINDOW_MAX;
		if (len)
			memcpy(s->unwind->window, copy->data, len);
		s->unwind->window_start = copy->start;
		s->unwind->window_len = len;
	}
	return true;
}

/* Let the first read follow what was needed: up at once, down slowly. */
static void unwind_end(struct unwind_state *u, uint64_t rsp)
{
	size_t used = WINDOW_MAX;
	if (u->is_copy)
		return;
	if (u->highest - rsp < WINDOW_MAX - 512)
		used = (size_t)(u->highest - rsp) + 512;
	if (used > u->first_read)
		u->first_read = used;
	else
		u->first_read -= (u->first_read - used) / 16;
	if (u->first_read < WINDOW_MIN)
		u->first_read = WINDOW_MIN;
}

static size_t unwind(struct sym_space *s, const struct sym_regs *regs,
		     const struct sym_stack *copy, taddr_t *frames,
		     taddr_t *slots, size_t max, bool *complete)
{
	uint64_t reg[CFI_NR_REGS];
	memcpy(reg, regs->reg, sizeof(reg));
	bool interrupted = true;
	size_t n = 0;
	*complete = false;
	if (!max)
		return 0;
	frames[n] = reg[CFI_RA];
	slots[n++] = 0;
	if (!unwind_begin(s, regs, copy))
		return n;
	while (n < max) {
		uint64_t pc = reg[CFI_RA], sp = reg[CFI_RSP], slot;
		/* A return address may be the first byte of the next function:
		 * what counts is the call before it. */
		struct cached_rule *c = find_rule(s, pc - !interrupted);
		if (s->unwind->late)
			break;
		if (c->is_entry ||
		    (c->rule && (c->rule->flags & CFI_OUTERMOST))) {
			*complete = true;
			break;
		}
		bool signal = false;
		s->unwind->stale |= c->unknown;
		if (c->rule) {
			signal = c->rule->flags & CFI_SIGNAL;
			if (!apply_rule(s, c, reg, &slot))
				break;
		} else if (!apply_guess(s, c, reg, &slot, &signal)) {
			break;
		}
		if (!reg[CFI_RA]) {
			*complete = true;
			break;
		}
		/* Callers lie higher, but for handlers on a stack of their own.
		 */
		if (reg[CFI_RSP] <= sp && !signal)
			break;
		frames[n] = reg[CFI_RA];
		slots[n++] = slot;
		interrupted = signal;
	}
	unwind_end(s->unwind, regs->reg[CFI_RSP]);
	return n;
}

size_t sym_unwind(struct sym_space *s, const struct sym_regs *regs,
		  taddr_t *frames, taddr_t *slots, size_t max, bool *complete)
{
	return unwind(s, regs, NULL, frames, slots, max, complete);
}

size_t sym_unwind_copy(struct sym_space *s, const struct sym_regs *regs,
		       const struct sym_stack *copy, taddr_t *frames,
		       taddr_t *slots, size_t max, bool *complete)
{
	return unwind(s, regs, copy, frames, slots, max, complete);
}

bool sym_unwind_stale(const struct sym_space *s)
{
	return s->unwind && s->unwind->stale;
}

bool sym_unwind_late(const struct sym_space *s)
{
	return s->unwind && s->unwind->late;
}

void sym_space_set_patience(struct sym_space *s, uint64_t ns)
{
	s->patience_ns = ns;
}

void sym_prepare_unwind(struct sym_space *s)
{
	struct module *m;
	for (uint32_t i = 1; (m = space_module(s, i)); i++) {
		module_cfi(m);
		if (ehframe_has_given_up())
			return;
	}
}
