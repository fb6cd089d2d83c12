#include "supervisor/probe/access.h"

/*
 * Bits see everything and plant nothing; uffd and mprotect tell who and when;
 * page-scan plants nothing either but sees only writes, so alone it cannot say
 * that a block is unused.
 */
static const struct access_ops *const by_preference[ACCESS_NR] = {
	&access_bits,
	&access_uffd,
	&access_mprotect,
	&access_pagescan,
};

void access_probe_all(struct access_status ret[ACCESS_NR])
{
	for (int i = 0; i < ACCESS_NR; i++) {
		struct access_status *s = &ret[i];
		*s = (struct access_status){.ops = by_preference[i]};
		s->is_untold = !s->ops->probe;
		if (s->ops->probe)
			s->code = s->ops->probe(&s->err);
	}
}
