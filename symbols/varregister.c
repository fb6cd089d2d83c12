/* Variables that are in registers. */
#include "symbols/varbuild.h"

#include <dwarf.h>

#include "symbols/dwarfdie.h"

/* How many children of a function are looked at, for parameters. */
#define MAX_LOOKED_AT 32
#define NOT_KNOWN     (-1)

/* How many general registers are taken by what is of the type of @die. */
static int registers_of(Dwarf_Die *die)
{
	Dwarf_Attribute mem;
	Dwarf_Die type;
	Dwarf_Word encoding, bytes;
	if (!dwarf_formref_die(dwarf_attr_integrate(die, DW_AT_type, &mem),
			       &type) ||
	    dwarf_peel_type(&type, &type))
		return NOT_KNOWN;
	switch (dwarf_tag(&type)) {
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_enumeration_type:
		return 1;
	case DW_TAG_base_type:
		break;
	default: /* structs have rules of their own */
		return NOT_KNOWN;
	}
	if (dwarf_formudata(dwarf_attr(&type, DW_AT_encoding, &mem),
			    &encoding) ||
	    dwarf_aggregate_size(&type, &bytes))
		return NOT_KNOWN;
	switch (encoding) {
	case DW_ATE_float:
	case DW_ATE_complex_float:
		return 0;
	case DW_ATE_boolean:
	case DW_ATE_signed:
	case DW_ATE_signed_char:
	case DW_ATE_unsigned:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		return bytes <= 8 ? 1 : NOT_KNOWN;
	default:
		return NOT_KNOWN;
	}
}

/* Does @function return something for which it may be given an address? */
static bool is_given_room(Dwarf_Die *function)
{
	Dwarf_Attribute mem;
	return dwarf_attr_integrate(function, DW_AT_type, &mem) &&
	       registers_of(function) == NOT_KNOWN;
}

bool var_arrives_in(const struct var_scope *sc, Dwarf_Die *die, unsigned reg)
{
	/* rdi, rsi, rdx, rcx, r8, r9 */
	static const uint8_t order[] = {5, 4, 1, 2, 8, 9};
	Dwarf_Die child;
	size_t used = 0;
	if (sc->function == VAR_NO_FUNCTION || !sc->die ||
	    dwarf_tag(die) != DW_TAG_formal_parameter ||
	    dwarf_child(sc->die, &child) || is_given_room(sc->die))
		return false;
	for (unsigned n = 0; n < MAX_LOOKED_AT; n++) {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter) {
			int taken = registers_of(&child);
			if (child.addr == die->addr)
				return taken == 1 && used < ARRAY_SIZE(order) &&
				       order[used] == reg;
			if (taken == NOT_KNOWN)
				return false;
			used += (size_t)taken;
		}
		if (!die_next(&child))
			break;
	}
	return false;
}

/* rbx, r12 to r15: gcc keeps variables where calls leave them alone. */
bool var_is_among(const struct var_scope *sc, const struct var_piece *p,
		  size_t nr)
{
	return sc->is_plain && sc->function != VAR_NO_FUNCTION && nr == 1 &&
	       p->kind == VAR_PIECE_REGISTER &&
	       (p->reg == 3 || (p->reg >= 12 && p->reg < 16));
}

bool var_is_optimised(struct var_build *b, const struct var_scope *sc,
		      Dwarf_Die *die)
{
	struct var_piece pieces[VAR_MAX_PIECES];
	Dwarf_Attribute attr;
	struct var_locs l = {.attr = &attr};
	if (!die_expression(dwarf_attr(die, DW_AT_location, &attr)) ||
	    dwarf_whatform(&attr) == DW_FORM_exprloc)
		return false;
	while (var_next_loc(b, &l) > 0 && var_step(b)) {
		size_t n = var_expr_read(&attr, l.ops, l.nr, &sc->frame_base,
					 pieces);
		for (size_t i = 0; i < n; i++)
			if (pieces[i].kind == VAR_PIECE_REGISTER ||
			    pieces[i].kind == VAR_PIECE_VALUE)
				return true;
	}
	return false;
}
