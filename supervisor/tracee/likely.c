#include "supervisor/tracee/likely.h"

/* So often in a row it was no accident. */
#define SURE 4

void likely_stopped(struct likely *l, pid_t tid, bool is_first)
{
	if (tid == l->newborn)
		l->newborn = 0;
	if (is_first)
		return;
	if (tid != l->tid)
		l->nr = 0;
	l->tid = tid;
	l->nr++;
}

void likely_born(struct likely *l, pid_t tid)
{
	l->newborn = tid;
}

pid_t likely_next(const struct likely *l)
{
	if (l->newborn)
		return l->newborn;
	return l->nr >= SURE ? l->tid : 0;
}

void likely_missed(struct likely *l)
{
	if (!l->newborn)
		l->nr = 0;
	l->newborn = 0;
}
