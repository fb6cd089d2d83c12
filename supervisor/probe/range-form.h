/*
 * range-form.h - what a function's registers hold, as far as its code tells:
 * multiples of a variable, addresses of data and of the frame, and sums of
 * those. Pure.
 *
 * A form is said of a register only where it holds on every way there. Of
 * variables it is their value when they were read, whatever became of them.
 */
#ifndef SMCO_RANGE_FORM_H
#define SMCO_RANGE_FORM_H

#include "supervisor/probe/code.h"
#include "supervisor/probe/range-edge.h"

enum range_form_base {
	RANGE_FORM_NUMBER,
	RANGE_FORM_DATA,  /* at is an address of the file */
	RANGE_FORM_FRAME, /* at is an offset from reg */
};
#define RANGE_FORM_NO_VAR UINT32_MAX

/* base + at + times * var + plus. All 0: nothing is known. */
struct range_form {
	bool known;
	bool placed;  /* RANGE_FORM_FRAME: at is there; else it is 0 */
	uint8_t base; /* enum range_form_base */
	uint8_t reg;  /* RANGE_FORM_FRAME: RANGE_RSP or RANGE_RBP */
	uint8_t bits; /* of the variable that are meant */
	/*
	 * With a base and a variable: before instruction @from register
	 * @from_reg held from_times * var + from_plus alone. UINT32_MAX: not
	 * the same on all ways.
	 */
	uint8_t from_reg;
	uint32_t from;
	int64_t from_times, from_plus;
	uint32_t var; /* RANGE_FORM_NO_VAR: none, times is 0 */
	int64_t times;
	int64_t at;
	int64_t plus;
};

struct range_forms {
	const struct range_code *code;
	const struct range_image *img;
	const struct variables *v;
	const struct range_index *ix;
	const struct range_index_entry *all; /* the function's places */
	size_t nr_all;
	struct range_form reg[16]; /* before the instruction just now */
	/* private: */
	struct range_homes *homes;
	struct range_edges edges;
	uint32_t *block_of; /* by instruction: that begin one; UINT32_MAX */
	struct range_form (*block)[16]; /* registers at its beginning */
	bool *seen;			/* it was come to */
	bool *fresh;			/* in another way than before */
	size_t nr_blocks;
};

/*
 * False: no memory, or too many blocks to be worth it. @all are the places of
 * the function's variables, @nr of them; all arguments must stay.
 */
bool range_forms_init(struct range_forms *f, const struct range_code *code,
		      const struct range_image *img, const struct variables *v,
		      const struct range_index *ix,
		      const struct range_index_entry *all, size_t nr);
void range_forms_deinit(struct range_forms *f);

/* Goes through the function: @see is told of each instruction @i that accesses
 * memory, with what registers hold before it in f->reg. */
typedef void range_forms_see(void *ctx, const struct range_forms *f, uint32_t i,
			     const struct code_insn *in);
void range_forms_walk(struct range_forms *f, range_forms_see *see, void *ctx);

/* The address of memory operand @op of instruction @i. */
struct range_form range_form_address(const struct range_forms *f, uint32_t i,
				     const struct code_insn *in,
				     const ZydisDecodedOperand *op);

/* range-home.c: where variables are at an address. Private. */
struct range_homes;
struct range_homes *range_homes_create(const struct variables *v,
				       const struct range_index *ix,
				       const struct range_index_entry *all,
				       size_t nr);
void range_homes_destroy(struct range_homes *h);
/* The variable that register @reg holds at @pc, and what must be added to the
 * register to have it; RANGE_FORM_NO_VAR. */
uint32_t range_home_reg(const struct range_homes *h, uint8_t reg, uint64_t pc,
			int64_t *add_ret);
/* No array; of @bytes, at @reg + @offset. */
uint32_t range_home_frame(const struct range_homes *h, uint8_t reg,
			  int64_t offset, unsigned bytes, uint64_t pc);
uint32_t range_home_data(const struct range_homes *h, uint64_t addr,
			 unsigned bytes, uint64_t pc);

#endif
