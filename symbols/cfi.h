/*
 * cfi.h - call frame information: for each address how to find the caller.
 * Internal to symbols/.
 *
 * A table costs next to nothing where the linker has left one of what is where
 * (.eh_frame_hdr): what holds for a function is read and compiled, into rows of
 * 8 bytes (address, rule), when somebody first asks for an address in it. A
 * large program has a hundred thousand functions, a stack a few dozen. Without
 * the linker's all entries are read at the start.
 *
 * Rules are shared, a large library has a few hundred, and stay where they are
 * as long as the table. Nearly all of them are of the compact kind; signal
 * frames and others with expressions have a full description besides.
 *
 * From any thread.
 */
#ifndef SYMBOLS_CFI_H
#define SYMBOLS_CFI_H

#include <libelf.h>

#include "symbols/cursor.h"

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

struct cfi_table;

/* What @elf has; NULL if that is nothing. @fd is its file, which stays open as
 * long as the table, -1 for one in memory; what it is read for is not in a file
 * that is shorter by then. Malformed parts give no rows. */
struct cfi_table *cfi_create(Elf *elf, int fd);
void cfi_destroy(struct cfi_table *t);
/* So many bytes that has to read at once: how long it will take. */
uint64_t cfi_work_bytes(Elf *elf, int fd);
/* Compile all that there is, for who asks for most of it, or asks by several
 * threads: they do not wait for each other from then on. */
void cfi_complete(struct cfi_table *t);

/* The rule at file address @addr; NULL if there is none. */
const struct cfi_rule *cfi_lookup(struct cfi_table *t, uint64_t addr);

/* The same, and the first address above @addr where another rule, or none,
 * may hold; UINT64_MAX if there is none. */
const struct cfi_rule *cfi_row(struct cfi_table *t, uint64_t addr,
			       uint64_t *next_ret);

/* What @r, which has CFI_FULL, says. */
const struct cfi_full *cfi_full(const struct cfi_table *t,
				const struct cfi_rule *r);
/* The expression at @at of the section, as a rule has it. */
struct cursor cfi_expression(const struct cfi_table *t, int64_t at);

#endif
