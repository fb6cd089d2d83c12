/*
 * varbuild.h - what the reading of variables shares while it goes on: what was
 * collected so far, the limits, and where in the tree of DIEs we are. Internal
 * to symbols/.
 */
#ifndef SYMBOLS_VARBUILD_H
#define SYMBOLS_VARBUILD_H

#include <elfutils/libdw.h>

#include <stdatomic.h>

#include "symbols/cfi.h"
#include "symbols/cursor.h"
#include "symbols/varexpr.h"
#include "symbols/variable.h"
#include "symbols/varlocs.h"

/* Bounds on what hostile DWARF can make us do. */
#define VAR_MAX_DEPTH	    96
#define VAR_MAX_STEPS	    (64u << 20) /* DIEs, list entries, rows looked at */
#define VAR_MAX_VARIABLES   (1u << 20)
#define VAR_MAX_PLACES	    (8u << 20)
#define VAR_MAX_FUNCTIONS   (1u << 20)
#define VAR_MAX_RANGES	    (4u << 20)
#define VAR_MAX_MEMBERS	    256	 /* integers in one struct */
#define VAR_MAX_ENUMERATORS 4096 /* of one enum */

#define VAR_NONE     UINT32_MAX
#define VAR_MAX_NAME 1024

/* DIE address to number. */
struct diemap {
	struct diemap_slot {
		const void *die; /* NULL: free */
		uint32_t value;
	} * slots;
	size_t nr, size; /* size is a power of two */
};
bool diemap_get(const struct diemap *m, const void *die, uint32_t *ret);
bool diemap_put(struct diemap *m, const void *die, uint32_t value);

/* An integer in what one DIE declares. */
struct var_member {
	uint32_t var;	/* VAR_NONE: not wanted, or no integer */
	uint64_t byte;	/* from the object's first */
	uint64_t width; /* in a union; else 0 */
};

struct var_found {
	uint32_t var;
	struct var_place place;
};

struct var_build {
	struct variables *v;
	size_t cap_vars, cap_ops, cap_functions, cap_ranges, cap_enumerators;
	struct var_found *found; /* places as they are met */
	size_t nr_found, cap_found;
	size_t cap_others, cap_rows;
	struct var_member *members;
	size_t nr_members, cap_members;
	/* What a declaration's DIE is: nr and first of the members. */
	struct var_group {
		uint32_t first, nr;
		bool wanted; /* any of them */
	} * groups;
	size_t nr_groups, cap_groups;
	const char **names; /* of functions, and scopes of variables, by DIE */
	size_t nr_names, cap_names;
	struct diemap group_of, name_of, enum_of;
	struct enum_span {
		uint32_t first, nr;
		bool is_signed;
	} * enums;
	size_t nr_enums, cap_enums;
	struct cfi_table *cfi; /* NULL if there is none */
	uint64_t tls_bytes; /* of a program: its first thread-local byte is so
			     * far below fs; 0: not known */
	var_want_fn want;
	var_want_fn split; /* NULL: no arrays */
	void *want_ctx;
	uint32_t steps_left;
	/* Of two threads that read a file: the units whose DIEs begin here are
	 * this one's. What the other one's are needed for is not found: that is
	 * marked in the first one's reaches_over. */
	uint64_t lo, hi;
	atomic_bool reaches_over;
	atomic_bool *over;		   /* NULL: there is one thread */
	const char *last_file, *last_copy; /* see var_file */
	const struct var_dim *last_dim;	   /* see var_dims */
	size_t nr_last_dim;
	struct var_files {
		const char **name; /* by number; NULL: libdw knows better */
		size_t nr;
	} * files; /* of units */
	size_t nr_files, cap_files;
	struct diemap files_of; /* by Dwarf_CU */
	struct var_sections {
		Elf *elf;
		struct cursor line, line_str, str, loc, loclists;
	} sections; /* of the file itself */
	struct var_locs_unit locs_unit;
	/* Abbreviations of the unit just now, by their numbers: libdw takes a
	 * lock for each that it looks up. */
	struct var_abbrevs {
		Dwarf_CU *cu;
		Dwarf_Abbrev *of[128];
	} abbrevs;
	bool has_lists; /* else nothing is optimised, and no memory shared */
	bool no_memory;
	/* Of the function just now: it has a VAR_AMONG; code was inlined. */
	bool wants_rows, has_inlined;
	/* A variable of the unit just now is, or was, in no memory: one with an
	 * integer, for pointers are in registers anyway. Looked at in those
	 * that begin late only. */
	bool is_optimised;
};

/* Where in the tree we are. */
struct var_scope {
	const char *name; /* of function and namespaces; "" at file level */
	bool scoped;	  /* a language with namespaces */
	bool in_function;
	bool is_gcc;	  /* see place_in_scope */
	bool is_llvm;	  /* see is_held */
	bool begins_late; /* see VAR_LATE */
	bool is_plain;	  /* see VAR_AMONG */
	/* Code of the innermost block; none in an abstract function. */
	const struct var_range *ranges;
	size_t nr_ranges;
	uint32_t function; /* index; VAR_NO_FUNCTION if there is no code */
	Dwarf_Die *die;	   /* of the function; NULL outside */
	struct var_frame_base frame_base;
	uint64_t body_depth; /* of rsp below the CFA once the frame is set up */
};

/* The next place that the location attribute says, see var_locs_next. */
static inline int var_next_loc(struct var_build *b, struct var_locs *l)
{
	return var_locs_next(l, b->sections.elf, &b->sections.loclists,
			     &b->locs_unit);
}

/* A type with what is said about it on the way to it. */
struct var_qualified {
	Dwarf_Die die;
	const char *alias; /* the first typedef's name; NULL if none */
	bool is_const, is_volatile;
};

/* Take a step; false, and the result is cut short, if too many were taken. */
bool var_step(struct var_build *b);
/* Make room for one more of @item bytes; sets no_memory when there is none. */
bool var_grow(struct var_build *b, void **mem, size_t nr, size_t *cap,
	      size_t item);
/* A copy of @s that lives as long as the variables; "" if memory is out. */
const char *var_string(struct var_build *b, const char *s);
/* The same for "scope::name", no more than @most bytes, up to VAR_MAX_NAME. */
const char *var_qualify(struct var_build *b, const char *scope,
			const char *name, size_t most);
/* The same for @nr dimensions, which often are those before; NULL if memory is
 * out, or there are none. */
const struct var_dim *var_dims(struct var_build *b, const struct var_dim *dim,
			       size_t nr);
/* The same for a file name, which often is the one before. */
const char *var_file(struct var_build *b, const char *file);

/* varfile.c: where @die, or what it is an instance of, was declared; "" if that
 * is not known. It lives as long as the variables. */
const char *var_decl_file(struct var_build *b, Dwarf_Die *die);
struct var_sections var_sections_of(Elf *elf);
void var_files_free(struct var_build *b);
/* The bytes of a section that is not compressed; .bad if there is none. */
struct cursor var_section(Elf *elf, const char *name);
/* variable.c: an empty result; false: no memory. */
bool var_build_begin(struct var_build *b);
/* variable.c: the places found, handed out to their variables; rows and memory
 * in order. False: no memory. */
bool var_build_settle(struct var_build *b);
/* variable.c: all that it has. */
void var_build_drop(struct var_build *b);
/* variable.c: the strings of @from are @v's from now on. */
void var_strings_join(struct variables *v, struct variables *from);
/* variable.c: arrays that are put into @v are not freed with it; once, while
 * nothing is in it. False: no memory. */
bool variables_borrow(struct variables *v);
/* All that var_string has given. */
void var_strings_free(struct variables *v);

/* variable.c: a handle of the caller's own on the file with @m's DWARF; NULL if
 * there is none. */
struct sym_space;
struct module;
Elf *var_dwarf_elf(struct sym_space *s, struct module *m);

/* varmixed.c: of the members from @first on, those of unions of which nobody
 * can tell whose value was written are marked. */
void var_find_mixed(struct var_build *b, uint32_t first);
/* vartype.c: the type of @die without typedefs and qualifiers; false if there
 * is none that one could follow. */
bool var_type_of(struct var_build *b, Dwarf_Die *die,
		 struct var_qualified *ret);
/* varscalar.c: what a base type says; false if it is no integer. */
bool var_base_type(Dwarf_Die *die, struct var_type *t);
/* What an enumeration says, whose names are read at first sight. */
bool var_enum_type(struct var_build *b, Dwarf_Die *die, struct var_type *t);
/* vartype.c: the group of what @die declares, made on first sight; VAR_NONE if
 * there is no integer in it. */
uint32_t var_group_of(struct var_build *b, const struct var_scope *sc,
		      Dwarf_Die *die);
/* varplace.c: where @die, an instance of the group, is. */
void var_add_places(struct var_build *b, const struct var_scope *sc,
		    Dwarf_Die *die, uint32_t group);
/* varother.c: the memory that @die, no wanted variable, has in its block. */
void var_add_memory(struct var_build *b, const struct var_scope *sc,
		    Dwarf_Die *die);
/* Puts it in order. */
void var_sort_memory(struct variables *v);
/* Of that, in order, what variables have at other times. False: no memory. */
bool var_keep_memory(struct var_build *b);
/* varplace.c: register plus offset that @p is at, in the code from @lo on up to
 * *next_ret; false: it is not in the frame, or that is not known there. */
bool var_frame_place(const struct var_build *b, const struct var_scope *sc,
		     const struct var_piece *p, uint64_t lo, uint64_t *next_ret,
		     uint32_t *reg_ret, int64_t *offset_ret);
/* varregister.c: is, or was, @die in a register, or computed? Asked of lists
 * only: a place for the whole of a block is in memory. */
bool var_is_optimised(struct var_build *b, const struct var_scope *sc,
		      Dwarf_Die *die);
/* varrow.c: the rows of function @function, at @die, if it wants them. */
void var_add_rows(struct var_build *b, const struct var_scope *sc,
		  Dwarf_Die *die);
/* The same: all, in order. */
void var_sort_rows(struct variables *v);
/* varregister.c: is @p one of the registers in which gcc, where it does not
 * optimise, keeps variables that are to be in one? */
bool var_is_among(const struct var_scope *sc, const struct var_piece *p,
		  size_t nr);
/* The same: is @die a parameter of the function, and does the caller put it
 * into DWARF's register @reg? False where that is not plain, as behind a
 * struct. */
bool var_arrives_in(const struct var_scope *sc, Dwarf_Die *die, unsigned reg);
/*
 * varview.c: behind how many statements of their address the places of @die's
 * location list begin, one after the other; .bad if that is not said.
 */
struct cursor var_views(struct var_build *b, Dwarf_Die *die);
/* The next one; false if there is none. */
bool var_views_next(struct cursor *c, uint64_t *begin_ret);
/* varframe.c: the row of the frame table at @addr; NULL: none. The next one
 * begins at *next. */
const struct cfi_rule *var_frame_row(struct cfi_table *t, uint64_t addr,
				     uint64_t *next);
/* Does the register stand for the frame (varexpr.h)? */
bool var_is_frame(int64_t reg);
/* Piece @from with what stands for the frame replaced; false if the row does
 * not tell. */
bool var_place_in_frame(const struct var_scope *sc, const struct cfi_rule *row,
			const struct var_piece *from, struct var_piece *to);
/* LLVM counts from rsp as it is in the body, everywhere: that stands for it. */
void var_count_from_body(const struct var_build *b, const struct var_scope *sc,
			 struct var_piece *p);
/* How far rsp is below the CFA in most of function @f: in its body. */
uint64_t var_body_depth(struct var_build *b, const struct var_function *f);
/* vartree.c: @die, just found, with the abbreviation that it has if one like it
 * was seen in the unit; returns its tag, see dwarf_tag. */
int var_tag(struct var_build *b, Dwarf_Die *die);
/* vartree.c: all that is in a unit. */
void var_walk_unit(struct var_build *b, Dwarf_Die *cu);
/* varunits.c: all that is in a file, into @b, which was begun; by two threads
 * if there is as much as var_two_from_bytes of it, and a CPU for each. */
void var_walk_file(struct var_build *b, Dwarf *dwarf, Elf *elf);
extern uint64_t var_two_from_bytes; /* tests make it small */
/* varunits.c: @die refers to @origin. */
void var_refers(struct var_build *b, const Dwarf_Die *die, Dwarf_Die *origin);

#endif
