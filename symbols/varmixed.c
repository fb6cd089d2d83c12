/* Members that others of their size share the place with. */
#include "symbols/varbuild.h"

/* Members of one object that are compared with each other. */
#define MOST_MIXED 512

void var_find_mixed(struct var_build *b, uint32_t first)
{
	for (size_t i = first; i < b->nr_members; i++) {
		const struct var_member *m = &b->members[i];
		bool mixed = b->nr_members - first > MOST_MIXED;
		if (m->var == VAR_NONE || !m->width)
			continue;
		for (size_t k = first; k < b->nr_members && !mixed; k++)
			mixed = k != i && b->members[k].byte == m->byte &&
				b->members[k].width == m->width;
		if (mixed || b->v->vars[m->var].type.bit_size)
			b->v->vars[m->var].flags |= VAR_MIXED;
	}
}
