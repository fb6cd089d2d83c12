/*
 * Passings that last from one look to the next, of which nothing needs to be
 * timed: where neither a beginning nor an end was counted since the look
 * before, and more was begun than ended, somebody was in the phase all the
 * time. Slices mostly miss what is one in a million, however long it is.
 *
 * What is left by an exception or longjmp has no end, and looks as if it went
 * on for ever. So the time counts only when fewer are open than were meanwhile.
 * Of several threads at once it is one's.
 */
#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"

static void confirm(struct phase *phase, struct phase_still *s, uint64_t open)
{
	for (uint64_t i = open; i < PHASE_STILL_OPEN; i++) {
		phase->still_ns += s->ns[i];
		s->ns[i] = 0;
	}
}

void phase_still_look(struct phases *ph, struct shared *sh, uint64_t now_ns)
{
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		struct phase_still *s = &sh->still[i];
		uint64_t begun = mark_shm_count(sh->shm, i * 2);
		uint64_t ended = mark_shm_count(sh->shm, i * 2 + 1);
		uint64_t open = sat_sub_u64(begun, ended);
		if (open && begun == s->begun && ended == s->ended)
			s->ns[min_u64(open, PHASE_STILL_OPEN) - 1] +=
				sat_sub_u64(now_ns, s->look_ns);
		else
			confirm(&ph->phase[i], s, open);
		s->begun = begun;
		s->ended = ended;
		s->look_ns = now_ns;
	}
}
