/*
 * variable.h - the integer variables of one module, from DWARF 4 and 5: their
 * names, types, declarations, and in which register or memory each can be read
 * at which addresses of code. What is said is what the compiler wrote down: a
 * location can be wrong, and a register may be overwritten inside its range.
 *
 * All addresses are the file's own (sym_place.offset; add the module's bias for
 * the tracee's). Registers have DWARF numbers: rax 0, rdx 1, rcx 2, rbx 3,
 * rsi 4, rdi 5, rbp 6, rsp 7, r8 to r15.
 *
 * A variable is a declaration in the source, whichever copies of its function
 * were inlined. A struct or union is flattened into its integer members, an
 * array is one variable for all its elements. Pointers, floating point, and
 * what is behind pointers are no integer variables.
 *
 * DWARF is input that nobody vouches for: depth, numbers and lengths are bound,
 * what is malformed is skipped and counted.
 */
#ifndef SMCO_VARIABLE_H
#define SMCO_VARIABLE_H

#include "reports/base.h"

struct sym_space;

enum var_class {
	VAR_INT,
	VAR_CHAR, /* char of any sign, also char16_t and the like */
	VAR_BOOL,
	VAR_ENUM,
};

/* One dimension of the arrays that a variable is in, outermost first. */
struct var_dim {
	uint64_t count;	 /* elements; 0: unknown (VLA, flexible) */
	uint64_t stride; /* bytes from one element to the next */
};
#define VAR_MAX_DIMS 3

struct var_type {
	const char *name; /* as declared, "size_t", "enum color" */
	uint8_t width;	  /* bytes to read: 1, 2, 4 or 8 */
	bool is_signed;
	uint8_t class_;	    /* enum var_class */
	uint8_t bit_offset; /* a bit-field's lowest bit in what is read */
	uint8_t bit_size;   /* 0: no bit-field, all bits count */
	uint8_t nr_dims;    /* 0: no array */
	bool is_volatile, is_const;
	uint32_t first_enumerator; /* VAR_ENUM: into variables->enumerators, by
				    * value */
	uint32_t nr_enumerators;
	const struct var_dim *dim; /* nr_dims of them, outermost first; any if
				    * there are none */
};

enum var_place_kind {
	VAR_REG,   /* (register reg >> shift) */
	VAR_MEM,   /* in memory at register reg + offset */
	VAR_ADDR,  /* in memory at file address offset */
	VAR_TLS,   /* in memory at the thread's pointer (fs) + offset */
	VAR_VALUE, /* not stored; it is register reg + offset */
	VAR_CONST, /* not stored; it is offset */
	VAR_EXPR,  /* not stored (or far away); see ops */
};

/* A stack machine of 64-bit words; the result is on top. */
enum var_op_code {
	VAR_OP_REG,	   /* push register arg */
	VAR_OP_CONST,	   /* push arg */
	VAR_OP_PLUS_CONST, /* add arg to the top */
	VAR_OP_ADD,	   /* pop b, pop a, push a op b; also those below */
	VAR_OP_SUB,
	VAR_OP_MUL,
	VAR_OP_AND,
	VAR_OP_OR,
	VAR_OP_XOR,
	VAR_OP_SHL,
	VAR_OP_SHR,
	VAR_OP_SAR,
	VAR_OP_EQ, /* 0 or 1; signed, also those below */
	VAR_OP_NE,
	VAR_OP_LT,
	VAR_OP_LE,
	VAR_OP_GT,
	VAR_OP_GE,
	VAR_OP_NEG, /* replace the top; also those below */
	VAR_OP_NOT,
	VAR_OP_LOAD, /* by the arg bytes that it points to, zero-extended */
	VAR_OP_ZEXT, /* by its lowest arg bytes, extended */
	VAR_OP_SEXT,
	VAR_OP_ADDR, /* push file address arg (needs the bias added) */
};

struct var_op {
	uint8_t code; /* enum var_op_code */
	int64_t arg;
};

/* How many words an operation pops; it pushes one. */
unsigned var_op_pops(uint8_t code);
#define VAR_MAX_OPS 12

enum var_place_flags {
	/*
	 * At lo the compiler says that the variable gets this place: it has a
	 * value there, lo is a definition site. Not set where a range is just a
	 * scope (nothing was assigned yet), goes on from the range before, or
	 * is another row of the same frame.
	 */
	VAR_BEGINS = 1 << 0,
	/* VAR_MEM in the function's own frame: reading it cannot fault. */
	VAR_FRAME = 1 << 1,
	/*
	 * At hi the compiler says that the variable leaves this place. An
	 * instruction that writes there and ends at hi writes something else.
	 * Not set where a scope ends, or a row of the frame.
	 */
	VAR_ENDS = 1 << 2,
	/*
	 * lo is where the variable's block ends: what the block's last
	 * instruction computes is its value, for those who come from there.
	 */
	VAR_LAST = 1 << 3,
	/* Said of the whole of its block, whether it is there or not: others
	 * may share the place at other times. */
	VAR_SCOPE = 1 << 4,
	/* VAR_REG: the register holds other members of its struct, too, and who
	 * writes it has not said which. */
	VAR_PART = 1 << 5,
	/*
	 * VAR_SCOPE in the frame, where nothing is optimised, of a language
	 * whose blocks begin behind the store of what their variable is bound
	 * to: Rust's let. The store is before lo.
	 */
	VAR_LATE = 1 << 6,
	/*
	 * hi is lo: no instruction runs while it holds, but control passes it.
	 * gcc says so of values that follow each other at one address, as those
	 * of a counter whose loop is written out.
	 */
	VAR_POINT = 1 << 7,
	/* Of an array it is one element that is there. */
	VAR_ONE = 1 << 8,
	/*
	 * A VAR_REG that is VAR_SCOPE: others are in the register where the
	 * variable is not needed. What is written there may be theirs. In C by
	 * gcc, where nothing is optimised, only.
	 */
	VAR_AMONG = 1 << 9,
	/*
	 * At lo no statement has begun before the variable gets this place: it
	 * has moved there, or the instruction before has given the value. Only
	 * where the compiler says it (gcc's location views).
	 */
	VAR_MOVED = 1 << 10,
};

struct var_place {
	uint64_t lo;
	uint64_t hi;	   /* exclusive */
	uint32_t function; /* index of the physical function; VAR_NO_FUNCTION
			    * for a variable that is the same everywhere */
	uint8_t kind;	   /* enum var_place_kind */
	uint8_t reg;
	uint16_t flags;
	int64_t offset;
	uint32_t first_op; /* VAR_EXPR: into variables->ops */
	uint16_t nr_ops;
	uint8_t shift; /* bits, VAR_REG only */
};
#define VAR_NO_FUNCTION UINT32_MAX

/*
 * Memory in a function's frame that a block has an object in which is none of
 * the integer variables, as a struct of pointers. Only where a variable's
 * memory (VAR_SCOPE) is the same at other times. Of no bytes: the object is in
 * register reg, which is a variable's (VAR_AMONG).
 */
struct var_memory {
	uint64_t lo;
	uint64_t hi;	/* exclusive */
	uint64_t block; /* length of that part of the block, bytes */
	uint64_t bytes; /* of memory; 0: in reg */
	int64_t offset; /* of register reg */
	uint32_t function;
	uint32_t reg;
};

/*
 * A row of the line table: from addr on, up to the next row, the code is of one
 * expression. Only of functions with VAR_AMONG places, into which nothing was
 * inlined.
 */
struct var_row {
	uint64_t addr;
	uint32_t function;
	uint32_t line; /* 0: not known, or of another file */
};

/* Why a variable, or a part of its life, has no place. */
enum var_reason {
	VAR_FINE,
	VAR_OPTIMISED_OUT, /* no location anywhere */
	VAR_ENTRY_VALUE,   /* only what it was at the function's entry */
	VAR_THREAD_LOCAL,  /* of a library: where, is known when it runs */
	VAR_VECTOR,	   /* in a vector or floating-point register */
	VAR_SPLIT,	   /* its bytes are in several places */
	VAR_COMPLEX,	   /* an expression that is not understood */
	VAR_NO_FRAME,	   /* relative to a frame that CFI does not describe */
	VAR_IMPLICIT,	   /* the target of an optimised-away pointer */
	VAR_SHARED,	   /* in a register that others use, too */
	VAR_NR_REASONS,
};
/* A few words for it; never NULL. */
const char *var_reason_text(enum var_reason reason);

enum var_flags {
	VAR_PARAMETER = 1 << 0,
	VAR_GLOBAL = 1 << 1, /* outside all functions */
	VAR_STATIC = 1 << 2, /* in memory for good: globals and statics */
	VAR_IN_UNION = 1 << 3,
	VAR_ARTIFICIAL = 1 << 4, /* not in the source */
	/* In a union with another member, or pointer, of its size at its place:
	 * who writes there does not say which is meant. */
	VAR_MIXED = 1 << 5,
	/* Some of the elements of an array, which is a variable, too. */
	VAR_ELEMENT = 1 << 6,
};

struct variable {
	const char *name;      /* "i", "s.len", "table[].next", "bits[]" */
	const char *qualified; /* "main::i", "ns::limits.max", "count" */
	const char *file;      /* of the declaration; "" if unknown */
	const char *scope;     /* function or namespace it is in; "" if none */
	struct var_type type;
	uint32_t line;	      /* 0 if unknown */
	uint32_t first_place; /* into variables->places, sorted by lo */
	uint32_t nr_places;   /* 0: see reason */
	uint16_t missing;     /* 1 << enum var_reason, of all that was met */
	uint8_t reason; /* enum var_reason; VAR_FINE if there is a place */
	uint8_t flags;	/* enum var_flags */
};

struct var_enumerator {
	const char *name;
	int64_t value;
};

struct var_range {
	uint64_t lo;
	uint64_t hi; /* exclusive */
};

/* A function that there is code of: plants, and what is patched as one. */
struct var_function {
	const char *name; /* readable, with its scopes */
	const char *file;
	uint32_t line;
	uint64_t entry;
	uint32_t first_range; /* into variables->ranges; cold parts apart */
	uint32_t nr_ranges;
};

/*
 * All strings and arrays belong to it and stay until it is destroyed; nothing
 * in it changes once variables_load has returned, so any thread may read it.
 */
struct variables {
	struct variable *vars;
	size_t nr_vars;
	struct var_place *places;
	size_t nr_places;
	struct var_op *ops;
	size_t nr_ops;
	struct var_function *functions;
	size_t nr_functions;
	struct var_range *ranges;
	size_t nr_ranges;
	struct var_enumerator *enumerators;
	size_t nr_enumerators;
	struct var_memory *others; /* by function, then lo */
	size_t nr_others;
	struct var_row *rows; /* by function, then address */
	size_t nr_rows;
	/* What there was to see, wanted or not. */
	size_t nr_seen;	   /* integer variables */
	size_t nr_damaged; /* things skipped because they are malformed */
	bool cut_short;	   /* more than the limits allow was left out */
	bool is_split;	   /* some are in files of their own (.dwo) */
	struct variables_state *state; /* private: strings and the like */
};

/*
 * Is the variable wanted? Asked before its places are worked out, which is what
 * takes time: names, declaration, type and flags are there, places are not.
 */
typedef bool (*var_want_fn)(void *ctx, const struct variable *var);

/*
 * The variables of module @module (1-based, as sym_pin says) that @want wants;
 * NULL wants all. Takes about a second for 50 MB of DWARF. NULL with @err set:
 * SMCO_NOTFOUND if there is no debug information (the message says how to get
 * it), SMCO_FORMAT if it cannot be read, SMCO_NOMEM.
 */
struct variables *variables_load(struct sym_space *s, uint32_t module,
				 var_want_fn want, void *want_ctx,
				 struct smco_err *err);
/*
 * The same, and of those arrays that @split wants (it is asked with the name
 * alone, "table", and no type) element classes as well: each element of those
 * with at most VAR_MOST_CLASSES, "table[3]"; of longer ones the first, the last
 * and all between them, "table[1..98]". Of several dimensions the first is
 * split. None in unions.
 */
struct variables *variables_load_split(struct sym_space *s, uint32_t module,
				       var_want_fn want, var_want_fn split,
				       void *ctx, struct smco_err *err);
#define VAR_MOST_CLASSES 16
/*
 * Without debug information: what is in memory for good, has a name in the
 * file's own symbol table (.symtab), and takes 1, 2, 4 or 8 bytes. Where it was
 * declared is not known, nor its type: it is called "4 bytes" and read as an
 * integer with a sign. NULL with @err set: SMCO_NOTFOUND if there is none,
 * wanted or not, SMCO_NOMEM.
 */
struct variables *variables_of_symbols(struct sym_space *s, uint32_t module,
				       var_want_fn want, void *want_ctx,
				       struct smco_err *err);
void variables_destroy(struct variables *v);

/* Bytes from the first to the last element of what has type @t; INT32_MAX if
 * that does not say how many they are. */
uint64_t var_type_bytes(const struct var_type *t);
/* Those of others in function @function, the first of *nr_ret; NULL if none. */
const struct var_memory *variables_others(const struct variables *v,
					  uint32_t function, size_t *nr_ret);
/* The rows of function @function, the first of *nr_ret; NULL if none. */
const struct var_row *variables_rows(const struct variables *v,
				     uint32_t function, size_t *nr_ret);
/* The places of a variable that hold at @pc; @max at most, their number. */
size_t variables_at(const struct variables *v, const struct variable *var,
		    uint64_t pc, const struct var_place **ret, size_t max);

#endif
