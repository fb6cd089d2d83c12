#include "symbols/fderange.h"

#include <stdlib.h>

#include "symbols/ehframe.h"

int fde_ranges(Elf *elf, struct fde_range **ret, size_t *nr_ret,
	       struct smco_err *err)
{
	struct ehframe_section section;
	struct ehframe e = {0};
	*ret = NULL;
	*nr_ret = 0;
	if (!ehframe_load(&section, elf))
		return 0;
	bool ok = ehframe_parse(&e, &section);
	struct fde_range *range =
		ok ? calloc(e.nr_fdes + 1, sizeof(*range)) : NULL;
	size_t nr = 0;
	for (size_t i = 0; range && i < e.nr_fdes; i++)
		if (e.fdes[i].start < e.fdes[i].end)
			range[nr++] = (struct fde_range){e.fdes[i].start,
							 e.fdes[i].end};
	if (ok)
		ehframe_deinit(&e);
	ehframe_section_deinit(&section);
	if (!range)
		return smco_fail(err, SMCO_NOMEM, 0, "out of memory");
	*ret = range;
	*nr_ret = nr;
	return 0;
}
