/* range-plan.h - what is behind struct range_plan. Private to range-*.c. */
#ifndef SMCO_RANGE_PLAN_H
#define SMCO_RANGE_PLAN_H

#include "supervisor/probe/range-site.h"
#include "supervisor/probe/range-stub.h"
#include "supervisor/probe/range-subscript.h"
#include "supervisor/probe/range.h"

struct range_plan_function {
	struct range_function_info info;
	struct range_windows windows; /* instructions by index, see below */
	uint32_t first_window;	      /* the plan's number of its first */
	struct range_code code;	      /* kept; no instructions: it is not */
	bool is_planned;	      /* else nothing of it is known yet */
	bool is_borrowed; /* windows are from a file (range-store.h): somebody
			   * else's, and perhaps of other code than there is */
};

struct range_plan {
	Elf *elf;
	struct range_image img;
	const struct variables *v;
	struct range_plan_function *function; /* one for each of v's */
	struct range_var_info *var;	      /* one for each of v's */
	struct range_subscript *subscript;    /* told apart by all that it is */
	size_t nr_subscripts;
	/* By owner (range_cell_owner), v's and then subscripts. UINT32_MAX: it
	 * has no cell. */
	uint32_t *cell_of;
	/* cell -> owner; one with a hole has two in a row */
	uint32_t *owner_of;
	/* By variable, then window, the first nr_sorted of them. */
	struct range_use *use;
	size_t nr_uses, nr_sorted, cap_uses, cap_subscripts, cap_cells;
	uint32_t *function_of; /* window -> function; UINT32_MAX: none */
	size_t cap_windows;
	size_t nr_cells;
	size_t nr_windows;   /* numbers given, those of none included */
	uint64_t code_bytes; /* upper bound of all stubs */
	uint64_t kept_bytes; /* of the functions' code */
	uint64_t lo;	     /* of all that is patched */
	uint64_t hi;	     /* exclusive */
	/* What the above come to at most, however many functions are planned
	 * after range_plan_fix. */
	size_t most_cells, most_windows, most_subscripts;
	uint64_t most_code_bytes;
	bool is_fixed;
	size_t nr_planned;     /* functions */
	struct range_index ix; /* while any is not, once one was asked for */
	bool has_index;
	/* From a file (range-store.h): the image's marks are somebody else's;
	 * all arrays but function and owner_of are, too, if they are borrowed.
	 */
	bool is_taken, is_borrowed;
	struct ranges *made; /* range_plan_make; NULL: none are */
};

/* What is found of one function, before anything of it has a number. */
struct range_found {
	struct range_code code;
	struct range_sites sites;
	struct range_windows windows; /* for values alone */
	struct range_subscript_uses uses;
	int ret; /* and @err: why nothing is */
	struct smco_err err;
};
/* range-plan-first.c: changes nothing of the plan, so that several threads may
 * look, and needs its index. */
void range_plan_look(const struct range_plan *plan, uint32_t function,
		     struct range_found *ret);
void range_found_free(struct range_found *found);
/* What was found gets numbers in the plan, or is freed; the order is that of
 * their windows' numbers. */
int range_plan_number(struct range_plan *plan, uint32_t function,
		      struct range_found *found, struct smco_err *err);
/* range-plan-load.c: reads the code of a plan that has none yet, from its Elf
 * and @fd, and makes the index, by two threads if there are many variables. */
int range_plan_load(struct range_plan *plan, int fd, struct smco_err *err);
/* The index, if it is not there. */
int range_plan_index(struct range_plan *plan, struct smco_err *err);
/* range-plan-first.c: plans the first functions, of @windows together, of a
 * plan that has an index and no function yet. */
int range_plan_first(struct range_plan *plan, size_t windows,
		     struct smco_err *err);

/* As much as the stubs of @w can take. */
uint64_t range_plan_stub_bytes(const struct variables *v,
			       const struct range_windows *w);
/*
 * No more than is bound now will be asked for: what processes have room for.
 * Exact if all is planned; otherwise by the size of the code that is not.
 */
void range_plan_fix(struct range_plan *plan);
/* range-uses.c: false: no memory. */
bool range_plan_add_use(struct range_plan *plan, uint32_t var, uint32_t window);
/* range-store.c: what is somebody else's and has to grow becomes its own.
 * False: no memory, and nothing is changed. */
bool range_plan_own(struct range_plan *plan);

/*
 * The instructions that the windows' indices are of. Those of a large program
 * are not all kept; decoding a function again gives the same. The program
 * stands when it is asked for them first. SMCO_UNSUPPORTED: the windows of a
 * plan that was taken from a file are none of this code.
 */
int range_plan_decode(const struct range_plan *plan, uint32_t function,
		      struct range_code *ret, struct smco_err *err);
/* Decode the first functions ahead of time, as many as take @bytes, in two
 * threads: one of them does @first before, which decoding must not need. */
int range_plan_keep(struct range_plan *plan, uint64_t bytes,
		    int (*first)(struct range_plan *plan, struct smco_err *err),
		    struct smco_err *err);
/* When done with them. */
void range_plan_release(const struct range_plan *plan, uint32_t function,
			struct range_code *code);
/* The code of a function that was planned while others were in use already is
 * kept until this says that its sensors are made; then only if little is. */
void range_plan_forget(struct range_plan *plan, uint32_t function);
/*
 * A register that the program has done with may still hold a variable: sensors
 * before the one that looks there must not take it for their own.
 */
void range_plan_need(const struct range_plan *plan,
		     const struct range_windows *w, struct range_code *code);
/* @code becomes @f's, or is released where that has no windows or much is kept;
 * what is planned while the plan is in use is asked for at once. */
void range_plan_keep_or_release(struct range_plan *plan,
				struct range_plan_function *f,
				struct range_code *code);
/* How much is kept at the most. */
#define RANGE_KEEP_BYTES      (64ULL << 20)
#define RANGE_KEEP_LATE_BYTES (12ULL << 20)

#endif
