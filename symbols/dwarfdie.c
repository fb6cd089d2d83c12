#include "symbols/dwarfdie.h"

#include <dwarf.h>

bool die_next_told(Dwarf_Die *die, bool *is_damaged_ret)
{
	Dwarf_Die next;
	int got = dwarf_siblingof(die, &next);
	*is_damaged_ret = got < 0 || (!got && next.addr <= die->addr);
	if (got || *is_damaged_ret)
		return false;
	*die = next;
	return true;
}

bool die_next(Dwarf_Die *die)
{
	bool is_damaged;
	return die_next_told(die, &is_damaged);
}

bool die_has_scopes(Dwarf_Die *cu)
{
	switch (dwarf_srclang(cu)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
	case -1:
		return false;
	default:
		return true;
	}
}

const char *die_scope_name(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	if (name)
		return name;
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
		return "(anonymous namespace)";
	case DW_TAG_subprogram:
		return "{function}";
	default:
		return "{lambda}"; /* nearly always */
	}
}

const char *die_linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute mem, *a;
	a = dwarf_attr_integrate(die, DW_AT_linkage_name, &mem);
	if (!a)
		a = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &mem);
	return a ? dwarf_formstring(a) : NULL;
}

const char *die_decl_file(Dwarf_Die *die)
{
	Dwarf_Attribute mem, *a;
	Dwarf_Word index;
	Dwarf_Die cu;
	Dwarf_Half version;
	Dwarf_Files *files;
	size_t nr;
	/*
	 * Not dwarf_decl_file(): it aborts on units without a line table, and
	 * takes 0 for none, which clang means the first file by in DWARF 5.
	 */
	a = dwarf_attr_integrate(die, DW_AT_decl_file, &mem);
	if (!a || dwarf_formudata(a, &index) ||
	    !dwarf_cu_die(a->cu, &cu, &version, NULL, NULL, NULL, NULL, NULL) ||
	    (!index && version < 5) || dwarf_getsrcfiles(&cu, &files, &nr) ||
	    index >= nr)
		return NULL;
	return dwarf_filesrc(files, index, NULL, NULL);
}

Dwarf_Die die_origin(const Dwarf_Die *die)
{
	Dwarf_Die at = *die, next;
	Dwarf_Attribute mem, *a;
	for (unsigned i = 0; i < 8; i++) {
		a = dwarf_attr(&at, DW_AT_abstract_origin, &mem);
		if (!a)
			a = dwarf_attr(&at, DW_AT_specification, &mem);
		if (!a || !dwarf_formref_die(a, &next))
			break;
		at = next;
	}
	return at;
}

Dwarf_Attribute *die_expression(Dwarf_Attribute *attr)
{
	unsigned form = attr ? dwarf_whatform(attr) : 0;
	Dwarf_Block block;
	/* A length below 128 has the same byte in all of these forms. */
	if ((form == DW_FORM_block || form == DW_FORM_block1) &&
	    !dwarf_formblock(attr, &block) &&
	    (form == DW_FORM_block || block.length < 128))
		attr->form = DW_FORM_exprloc;
	return attr;
}

bool die_const_value(Dwarf_Attribute *attr, int64_t *ret)
{
	Dwarf_Word value;
	if (dwarf_formudata(attr, &value))
		return false;
	*ret = (int64_t)value;
	return true;
}

bool die_number(Dwarf_Die *die, unsigned name, uint64_t *ret)
{
	Dwarf_Attribute mem;
	Dwarf_Word value;
	if (!dwarf_attr(die, name, &mem) || dwarf_formudata(&mem, &value))
		return false;
	*ret = value;
	return true;
}
