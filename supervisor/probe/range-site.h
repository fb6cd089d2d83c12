/*
 * range-site.h - where in a function a variable gets a value, and where that
 * value can be read there: its definition sites. Pure.
 *
 * A site lies in a gap: before an instruction runs. It either belongs to
 * everybody who arrives there, or only to those that come from the instruction
 * before it, which wrote the value. No site reads memory other than the
 * function's frame or the file's own data, none a value that nobody assigned.
 */
#ifndef SMCO_RANGE_SITE_H
#define SMCO_RANGE_SITE_H

#include "supervisor/probe/range-text.h"
#include "symbols/variable.h"

enum range_source {
	RS_REG,	    /* register >> shift */
	RS_FRAME,   /* memory at register + offset */
	RS_DATA,    /* memory at file address offset */
	RS_SUM,	    /* register + offset */
	RS_CONST,   /* offset */
	RS_EXPR,    /* the place's ops, and offset */
	RS_TLS,	    /* memory at the thread's pointer + offset */
	RS_ELEMENT, /* the element that is asked for below, of what lies at
		     * register + offset */
};

/*
 * Of an element whose subscript is in a register: it is one of the array only
 * if index * scale + delta, without a sign, is below extent. Where it is
 * reached by a pointer, if base - frame + index * scale + delta is, and a
 * multiple of step.
 */
struct range_within {
	uint8_t index;	 /* register */
	uint8_t scale;	 /* 0: no index */
	uint8_t base;	 /* register; RANGE_NO_REG: no pointer */
	uint8_t frame;	 /* with a pointer: register that the array lies at */
	uint8_t step;	 /* the same: bytes of an element, a power of two */
	int32_t delta;	 /* less than 2^30 either way with a pointer */
	uint32_t extent; /* bytes; 0: nothing is asked */
};

struct range_site {
	uint32_t gap;	/* index of the instruction behind it */
	uint32_t var;	/* index into variables->vars */
	uint32_t place; /* RS_EXPR: into variables->places */
	uint8_t source; /* enum range_source */
	uint8_t reg;	/* in the processor's order */
	uint8_t shift;	/* bits */
	bool fall;	/* only for those who come from instruction gap - 1 */
	/* No variable gets a value: what the register holds is wanted of those
	 * who pass just here. var is range_cell_owner of a subscript. */
	bool subscript;
	/* The variable may be elsewhere than its place says: it is where the
	 * instruction of the site has it. */
	bool apart;
	/* A bool of optimised code is often said to be where a number is whose
	 * lowest bit it is. */
	bool low_bit;
	struct range_within within;
	int64_t offset;
};

/* Variables by function and by address; made once for a module. Those of a
 * thread are at RANGE_TLS + offset, where no file has anything. */
#define RANGE_TLS (UINT64_C(1) << 62)
struct range_index_entry {
	uint32_t var;
	uint32_t place;
	uint32_t function;
};
struct range_index_data {
	uint64_t lo, hi;  /* of memory: first and behind the last byte */
	uint64_t hi_most; /* highest hi of this and all before */
	uint32_t var;
	uint32_t place;
};
struct range_index {
	struct range_index_entry *locals; /* by function, then variable */
	size_t nr_locals;
	struct range_index_entry *points; /* VAR_POINT; in the same order */
	size_t nr_points;
	struct range_index_data *data; /* by lo */
	size_t nr_data;
	struct range_index_data *array; /* of data, by lo */
	size_t nr_arrays;
};
int range_index_init(struct range_index *ix, const struct variables *v,
		     struct smco_err *err);
void range_index_deinit(struct range_index *ix);
/* Is @addr in an array of the file's data, or in a struct with one behind it?
 * Perhaps, at least. */
bool range_index_near_array(const struct range_index *ix,
			    const struct variables *v, uint64_t addr);
/* The places in function @f, by variable. */
const struct range_index_entry *range_index_locals(const struct range_index *ix,
						   uint32_t f, size_t *nr_ret);
/* The same of places without an instruction, which the others are without. */
const struct range_index_entry *range_index_points(const struct range_index *ix,
						   uint32_t f, size_t *nr_ret);

struct range_sites {
	struct range_site *site; /* by gap, then variable */
	size_t nr, cap;
	size_t nr_unreadable; /* places that no sensor may read */
};
/* The sites of function @f, whose code is @code. SMCO_NOMEM. */
int range_sites_find(struct range_sites *ret, const struct range_code *code,
		     const struct range_image *img, const struct variables *v,
		     const struct range_index *ix, uint32_t f,
		     struct smco_err *err);
void range_sites_deinit(struct range_sites *s);
/* range-sites.c: one more. False: no memory. */
bool range_sites_add(struct range_sites *s, const struct range_site *site);
/* range-sites.c: by gap, then variable; of a variable with several at one gap
 * the first, unless values follow each other there. */
void range_sites_sort(struct range_sites *s, const struct variables *v);
/* The same, not sorted yet: do those who pass the site that was added last come
 * to instruction @i, too, with the same value in the same place, read from
 * @regs? Then @s, of there, may stand for both. */
bool range_sites_goes_on(const struct range_sites *sites,
			 const struct range_code *code, size_t i,
			 const struct range_site *s, uint32_t regs);

/*
 * range-slot.c: does the register by which instruction @i reaches memory hold,
 * on every way there, what was loaded from a slot (symbols/dataslot.h)?
 * *addr_ret is what that leads to, if nobody has other data in its place.
 */
bool range_by_slot(const struct range_code *code, const struct range_image *img,
		   size_t i, uint64_t *addr_ret);

/*
 * range-source.c: where in place @p the value is read from: source, reg, shift
 * and offset of *@s. False: nobody may read it. *@regs_ret are the registers
 * that it is read from, as bits in the processor's order.
 */
bool range_source_of(const struct variables *v, const struct var_place *p,
		     struct range_site *s, uint32_t *regs_ret);

/* Can a sensor evaluate this VAR_EXPR, and without faulting? */
bool range_expr_ok(const struct var_op *ops, size_t nr);
/* The registers that it reads, as bits in the processor's order. */
uint32_t range_expr_regs(const struct var_op *ops, size_t nr);
/* The processor's number of a DWARF register; RANGE_NO_REG if it is none. */
uint8_t range_reg_of_dwarf(unsigned reg);
/* How many values are on the expression's stack at most. */
#define RANGE_EXPR_DEPTH 3

#endif
