#include "supervisor/monitor/phase-levels.h"

#include <string.h>

void phase_inside_add(struct phase_inside *to, const struct phase_inside *more)
{
	to->ns += more->ns;
	to->part[0] += more->part[0];
	to->part[1] += more->part[1];
}

void phase_inside_scale(struct phase_inside *in, const double times[2])
{
	for (unsigned k = 0; k < 2; k++) {
		in->ns += times[k] * in->part[k];
		in->part[k] = 0;
	}
}

static void push(struct phase_levels *l, int64_t level)
{
	if (l->nr == PHASE_LEVELS) {
		phase_inside_add(&l->at[0].at_it, &l->at[1].at_it);
		memmove(&l->at[1], &l->at[2],
			(PHASE_LEVELS - 2) * sizeof(l->at[0]));
		l->nr--;
	}
	l->at[l->nr++] = (struct phase_level){.level = level};
}

void phase_levels_add(struct phase_levels *l, int64_t level,
		      const struct phase_inside *more)
{
	if (!l->nr || l->at[l->nr - 1].level < level)
		push(l, level);
	phase_inside_add(&l->at[l->nr - 1].at_it, more);
}

struct phase_inside phase_levels_leave(struct phase_levels *l, int64_t level)
{
	struct phase_inside sum = {0, {0, 0}};
	while (l->nr && l->at[l->nr - 1].level > level)
		phase_inside_add(&sum, &l->at[--l->nr].at_it);
	return sum;
}

void phase_levels_scale(struct phase_levels *l, const double times[2])
{
	for (unsigned i = 0; i < l->nr; i++)
		phase_inside_scale(&l->at[i].at_it, times);
}
