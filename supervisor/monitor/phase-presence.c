/*
 * Whether a process was in a phase, by what is exact: how often its marks were
 * passed. Where none was passed it is in the phase or not, as it was; which,
 * say the counts of beginnings and ends, or the records where ends are not all
 * passed.
 */
#include <stdlib.h>
#include <string.h>

#include "supervisor/monitor/phases-private.h"

struct passed {
	uint64_t begins, ends;
};

/* Of phase @i, by @pp and whoever shares its memory; *alone: nobody does. */
static struct passed passed(const struct phase_proc *pp, size_t i, bool *alone)
{
	struct passed sum = {0};
	*alone = true;
	for (size_t k = 0; k < pp->nr; k++) {
		const struct shared *sh = pp->shared[k];
		*alone &= sh->nr_owners == 1;
		sum.begins += mark_shm_count(sh->shm, (uint32_t)i * 2);
		sum.ends += mark_shm_count(sh->shm, (uint32_t)i * 2 + 1);
	}
	return sum;
}

void phases_look(struct phases *ph, struct phase_proc *pp)
{
	bool alone;
	if (!pp->seen)
		pp->seen = calloc(ph->p.nr, sizeof(*pp->seen));
	for (size_t i = 0; pp->seen && i < ph->p.nr; i++) {
		struct passed now = passed(pp, i, &alone);
		pp->seen[i].before = pp->seen[i].at_look;
		pp->seen[i].at_look = now.begins + now.ends;
	}
}

static bool recorded_in(const struct phases *ph, uint32_t pid, uint32_t phase)
{
	for (size_t i = 0; i < PHASES_HASH_SIZE; i++)
		for (const struct thread_phase *o = ph->open[i]; o; o = o->next)
			if (o->phase == phase && o->pid == pid && o->nr_calls)
				return true;
	return false;
}

enum phase_presence phases_presence(struct phases *ph, struct phase_proc *pp,
				    size_t phase)
{
	bool alone;
	uint32_t number = (uint32_t)phase;
	struct passed now = passed(pp, phase, &alone);
	if (!pp->seen)
		return PHASE_IN_PARTLY;
	if (now.begins + now.ends != pp->seen[phase].before)
		return PHASE_IN_PARTLY;
	if (now.begins == now.ends)
		return PHASE_NOT_IN;
	if (recorded_in(ph, (uint32_t)tproc_pid(pp->p), number))
		return PHASE_IN;
	/* Left by an exception, or of a copy; or not recorded. */
	if (ph->phase[phase].name.function || !alone)
		return phase_times_miss_none(ph, number) ? PHASE_NOT_IN
							 : PHASE_IN_PARTLY;
	return PHASE_IN;
}
