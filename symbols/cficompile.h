/*
 * cficompile.h - the instructions of call frame information executed: rows of
 * one FDE at a time, the rules in them shared by all. A rule that was
 * made stays where it is, as cfi.h promises. Internal to
 * symbols/cfi.
 */
#ifndef SYMBOLS_CFICOMPILE_H
#define SYMBOLS_CFICOMPILE_H

#include "symbols/cfi.h"
#include "symbols/ehframe.h"

#define CFI_MAX_REMEMBERED 32

/* Equal things once, by number; what is in it never moves. */
#define CFI_CHUNK  UINT64_C(64)
#define CFI_CHUNKS 16
struct cfi_pool {
	void *chunk[CFI_CHUNKS];
	size_t item; /* bytes */
	size_t nr;
	uint32_t *hash; /* index + 1 */
	size_t hash_size;
};
const void *cfi_pool_item(const struct cfi_pool *p, size_t i);

struct cfi_state {
	bool known; /* in cies: was computed, @usable says how it went */
	bool usable;
	uint8_t cfa_kind;
	uint64_t cfa_reg;
	int64_t cfa_off; /* or the expression's place in the section */
	struct cfi_full regs;
};

/* Which rows an FDE has. */
struct cfi_rows {
	uint32_t first;
	uint32_t nr;  /* 0: it was not compiled yet */
	uint32_t len; /* bytes of code */
};

struct cfi_compiler {
	const struct ehframe_section *section; /* the caller's */
	struct cfi_pool rules, fulls;
	/* Row i holds from pc[i], counted from its FDE's start, to the next
	 * one's; which rule, 0: none. */
	uint32_t *pc, *rule;
	size_t nr, cap;
	/* private: */
	const struct ehframe_cie *cie;
	uint64_t start, loc, end;
	size_t first;
	struct cfi_state state;
	const struct cfi_state *initial;
	struct cfi_state *cies; /* by number; a used one has set @known */
	size_t nr_cies;
	struct cfi_state remembered[CFI_MAX_REMEMBERED];
	unsigned nr_remembered;
	bool no_memory;
};

/* False: no memory. */
bool cfi_compiler_init(struct cfi_compiler *c,
		       const struct ehframe_section *section);
void cfi_compiler_deinit(struct cfi_compiler *c);
/* The rows of @fde, at least one; what makes no sense has none that is any good
 * from there on. False: no memory, and no rows. */
bool cfi_compile(struct cfi_compiler *c, const struct ehframe_cie *cie,
		 const struct ehframe_fde *fde, struct cfi_rows *ret);

#endif
