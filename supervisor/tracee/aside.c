#include "supervisor/tracee/aside.h"

/* What is of late: in so long half of it is forgotten. */
#define LATELY_NS (100 * NSEC_PER_MSEC)
/* In so long without a wait, half of what was known of the place before. */
#define QUIET_NS (50 * NSEC_PER_MSEC)
/* A wait here and there says nothing. */
#define LEAST_NS (200 * NSEC_PER_USEC)

static uint64_t halved(uint64_t n, uint64_t times)
{
	return times < 64 ? n >> times : 0;
}

bool aside_is_better(struct aside *a, uint64_t now_ns, uint64_t waited_ns)
{
	bool was_mixed = a->is_mixed;
	a->is_mixed = false;
	if (was_mixed)
		return false;
	if (!waited_ns) {
		a->quiet_ns = a->quiet_ns ? a->quiet_ns : now_ns;
		return false;
	}
	if (a->quiet_ns)
		a->left_ns =
			halved(a->left_ns, (now_ns - a->quiet_ns) / QUIET_NS);
	a->quiet_ns = 0;
	uint64_t times = (now_ns - a->faded_ns) / LATELY_NS;
	a->faded_ns += times * LATELY_NS;
	a->here_ns = halved(a->here_ns, times) + waited_ns;
	if (!a->went_ns)
		return true;
	uint64_t age_s = (now_ns - a->went_ns) / NSEC_PER_SEC;
	uint64_t limit_ns = halved(2 * a->left_ns, age_s);
	return a->here_ns > (limit_ns > LEAST_NS ? limit_ns : LEAST_NS);
}

void aside_went(struct aside *a, uint64_t now_ns)
{
	*a = (struct aside){
		.went_ns = now_ns,
		.left_ns = a->here_ns,
		.faded_ns = now_ns,
		.is_mixed = true,
	};
}
