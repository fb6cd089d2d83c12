#include "supervisor/tracee/spare.h"

void spare_look(struct spare *s, uint64_t now_ns, uint64_t nr_running,
		uint64_t nr_cpus)
{
	/* What was between two looks so far apart is not known. */
	bool is_first = !s->looked_ns || now_ns - s->looked_ns >= SPARE_NS;
	if (is_first || nr_running < nr_cpus)
		s->seen_ns = now_ns;
	s->looked_ns = now_ns;
}

bool spare_is_there(const struct spare *s, uint64_t now_ns)
{
	return !s->looked_ns || now_ns - s->seen_ns < SPARE_NS;
}
