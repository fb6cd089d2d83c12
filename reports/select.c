#include "reports/select.h"

#include "reports/model.h"
#include "reports/section.h"

bool select_nap(const struct select *s, const struct summary *model,
		const struct model_nap *nap)
{
	struct section_source src = {.s = model};
	uint64_t start = nap->nap.start_ns;
	uint64_t end = start + nap->nap.length_ns;
	if (end < start)
		end = UINT64_MAX;
	if (s->has_process && nap->nap.pid != s->process)
		return false;
	if (end < s->from_ns || (s->to_ns && start >= s->to_ns))
		return false;
	return !s->nap_where ||
	       where_matches(s->nap_where, nap_section.get, &src, nap);
}
