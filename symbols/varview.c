/* The views of a location list: at one address several statements may begin,
 * and gcc says behind how many of them each place does. */
#include "symbols/varbuild.h"

#include <dwarf.h>

#include "symbols/dwarfdie.h"

#ifndef DW_AT_GNU_locviews
#define DW_AT_GNU_locviews 0x2137
#endif

struct cursor var_views(struct var_build *b, Dwarf_Die *die)
{
	struct cursor none = {.bad = true};
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	Dwarf_Half version = 0;
	Dwarf_Die cu;
	/* Of a skeleton's unit they are in another file. */
	if (!dwarf_attr(die, DW_AT_GNU_locviews, &attr) ||
	    dwarf_formudata(&attr, &offset) ||
	    !dwarf_cu_die(die->cu, &cu, &version, NULL, NULL, NULL, NULL,
			  NULL) ||
	    dwarf_getelf(dwarf_cu_getdwarf(die->cu)) != b->sections.elf)
		return none;
	struct cursor c = version < 5 ? b->sections.loc : b->sections.loclists;
	cursor_take(&c, offset);
	return c;
}

bool var_views_next(struct cursor *c, uint64_t *begin_ret)
{
	*begin_ret = cursor_uleb(c);
	cursor_uleb(c); /* where it ends */
	return !c->bad;
}
