/*
 * pointee.h - an integer that an expression of C leads to from a variable in
 * memory for good, by members and pointers: "conf->limit",
 * "server.db->dict.used". What it is and how to get there, from DWARF; who
 * reads memory follows the way.
 *
 * Names are those of file level; no subscripts, no bit-fields, no members of
 * unions: which of them is meant only the program knows.
 */
#ifndef SYMBOLS_POINTEE_H
#define SYMBOLS_POINTEE_H

#include "symbols/symbols.h"
#include "symbols/variable.h"

#define POINTEE_MAX_DEREFS 4

struct pointee {
	char *name;	 /* the expression, without blanks; owned */
	char *type_name; /* owned; type.name is this */
	char *file;	 /* of the member's declaration; "" if unknown; owned */
	uint32_t line;	 /* 0 if unknown */
	struct var_type type; /* no array, no bit-field */
	/* The first address is root + offset[0], the file's; each further one
	 * the pointer that is there + the next offset. */
	uint64_t root;
	uint64_t offset[POINTEE_MAX_DEREFS + 1];
	unsigned nr_derefs;
};

/*
 * What @expr means in module @module (1-based). SMCO_FORMAT: it is no such
 * expression, or a name in it is not there; the message says which.
 * SMCO_NOTFOUND: no debug information. SMCO_NOMEM. On failure *ret is void and
 * owns nothing.
 */
int pointee_find(struct sym_space *s, uint32_t module, const char *expr,
		 struct pointee *ret, struct smco_err *err);
void pointee_deinit(struct pointee *p);

#endif
