/*
 * dwarfdie.h - what all who walk trees of DIEs need. Internal to symbols/.
 */
#ifndef SYMBOLS_DWARFDIE_H
#define SYMBOLS_DWARFDIE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Go on to the next child, or false. A sibling reference in malformed DWARF may
 * point backwards; only forward is followed.
 */
bool die_next(Dwarf_Die *die);
/* The same, and whether it ends only because it cannot be read. */
bool die_next_told(Dwarf_Die *die, bool *is_damaged_ret);

/* Is @cu in a language whose functions lie in namespaces and classes? */
bool die_has_scopes(Dwarf_Die *cu);

/* What a namespace, class or function without a name is called. */
const char *die_scope_name(Dwarf_Die *die);

/* The file it, or what it is an instance of, was declared in; NULL if unknown.
 */
const char *die_decl_file(Dwarf_Die *die);

/* Its mangled name, or that of what it is an instance of; NULL if none. */
const char *die_linkage_name(Dwarf_Die *die);

/* What @die was declared as: through abstract origins and specifications. */
Dwarf_Die die_origin(const Dwarf_Die *die);

/*
 * @attr, or NULL, whose value should be an expression, made one if it is a
 * block of bytes: Go writes those in DWARF 4, where libdw does not take them.
 */
Dwarf_Attribute *die_expression(Dwarf_Attribute *attr);

/* DW_AT_const_value: the forms of fixed size have no sign, those of a variable
 * one say it. False: it is a block, or no number. */
bool die_const_value(Dwarf_Attribute *attr, int64_t *ret);

/* The number that attribute @name of @die itself has; false if it has none. */
bool die_number(Dwarf_Die *die, unsigned name, uint64_t *ret);

#endif
