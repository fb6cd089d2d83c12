#include "supervisor/tracee/aside.h"

/* So many seconds after a step nothing is left of what was known. */
#define AGE_MOST 32

bool aside_is_better(struct aside *a, uint64_t now_ns, uint64_t waited_ns)
{
	bool was_mixed = a->is_mixed;
	a->is_mixed = false;
	if (was_mixed || !waited_ns)
		return false;
	if (!a->went_ns)
		return true;
	uint64_t age_s = (now_ns - a->went_ns) / NSEC_PER_SEC;
	uint64_t limit_ns = age_s < AGE_MOST ? 2 * a->left_ns >> age_s : 0;
	return waited_ns > limit_ns;
}

void aside_went(struct aside *a, uint64_t now_ns, uint64_t waited_ns)
{
	*a = (struct aside){
		.went_ns = now_ns, .left_ns = waited_ns, .is_mixed = true};
}
