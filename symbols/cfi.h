/*
 * cfi.h - call frame information compiled into sorted rows: for each address
 * how to find the caller. Internal to symbols/, unwinding side.
 *
 * A row is 8 bytes (address, rule); rules are shared, a large library has a few
 * hundred. Nearly all of them are of the compact kind; signal frames and
 * others with expressions have a full description besides.
 */
#ifndef SYMBOLS_CFI_H
#define SYMBOLS_CFI_H

#include <libelf.h>

#include "reports/base.h"

#define CFI_NR_REGS 17 /* DWARF numbers; the last is the return address */
#define CFI_RSP	    7
#define CFI_RBP	    6
#define CFI_RA	    16

enum cfi_cfa_kind {
	CFI_CFA_NONE, /* no information for these addresses */
	CFI_CFA_REG,  /* register + cfa_off */
	CFI_CFA_EXPR, /* the expression at cfa_off of the section */
};

enum cfi_flags {
	CFI_SIGNAL = 1 << 0, /* the caller was interrupted, it did not call */
	CFI_OUTERMOST = 1 << 1, /* no caller */
	CFI_FULL = 1 << 2,	/* see the full rule, mask and off are unused */
};

#define CFI_NR_SAVED 6
struct cfi_rule {
	uint8_t cfa_kind;
	uint8_t cfa_reg;
	uint16_t mask; /* registers in memory, lowest first in off[] */
	int32_t cfa_off;
	int32_t ra_off; /* the return address is at CFA + ra_off */
	uint8_t flags;
	uint32_t full;		   /* index, with CFI_FULL */
	int32_t off[CFI_NR_SAVED]; /* from the CFA */
};

enum cfi_reg_kind {
	CFI_SAME, /* unchanged, or unknown */
	CFI_UNDEFINED,
	CFI_OFFSET,	/* in memory at CFA + val */
	CFI_VAL_OFFSET, /* CFA + val */
	CFI_REGISTER,	/* in register val */
	CFI_EXPR,	/* in memory where the expression at val says */
	CFI_VAL_EXPR,	/* the value of the expression at val */
};

struct cfi_full {
	uint8_t kind[CFI_NR_REGS];
	int64_t val[CFI_NR_REGS];
};

struct cfi_table {
	uint64_t base; /* rows' addresses are relative to this */
	uint32_t *pc;  /* sorted; row i holds until pc[i + 1] */
	uint32_t *rule;
	size_t nr;
	struct cfi_rule *rules;
	size_t nr_rules;
	struct cfi_full *fulls;
	size_t nr_fulls;
	/* The section, kept only where expressions point into it. */
	uint8_t *section;
	size_t section_len;
};

/* Compile what @elf has; NULL if that is nothing. Malformed parts give no
 * rows. */
struct cfi_table *cfi_create(Elf *elf);
void cfi_destroy(struct cfi_table *t);
/* What the calling thread does now and then, some ten times a millisecond,
 * while it compiles; NULL = nothing. Where that returns false it gives up: this
 * table and all later ones of the thread are NULL. */
void cfi_set_pause(bool (*fn)(void *ctx), void *ctx);
bool cfi_has_given_up(void);

/* The rule at file address @addr; NULL if there is none. */
const struct cfi_rule *cfi_lookup(const struct cfi_table *t, uint64_t addr);

/* The same, and the first address above @addr where another rule, or none,
 * may hold; UINT64_MAX if there is none. */
const struct cfi_rule *cfi_row(const struct cfi_table *t, uint64_t addr,
			       uint64_t *next_ret);

#endif
