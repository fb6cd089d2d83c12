/* What the phases' monitor tells: names at first, totals, what could not be. */
#include <stdio.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/phases-private.h"

void phases_put_meta(struct phases *ph)
{
	char key[32];
	for (size_t i = 0; i < ph->p.nr; i++) {
		snprintf(key, sizeof(key), "phase.%zu", i);
		ph->p.put_meta(ph->p.ctx, key, ph->p.name[i]);
	}
}

void phases_emit(struct phases *ph, uint64_t now_ns)
{
	for (size_t i = 0; i < ph->p.nr; i++) {
		const struct phase *phase = &ph->phase[i];
		struct ev_phase_total ev = {
			.count = phases_count(ph, i),
			.nr_seen = phase->nr_seen,
			.seen_ns = phase->seen_ns,
			.longest_ns = phase->longest_ns,
		};
		ph->p.emit(ph->p.ctx,
			   &(struct record){
				   .event = EV_PHASE_TOTAL,
				   .time_ns = now_ns - ph->p.start_ns,
				   .cpu = UINT32_MAX,
				   .param = (uint32_t)i,
				   .payload_len = sizeof(ev),
				   .payload = &ev,
			   });
	}
}

/* What was waited for, and came with no library. */
static void put_missing(struct phases *ph)
{
	char text[400];
	size_t len = 0;
	for (size_t i = 0; i < ph->p.nr && len < sizeof(text); i++)
		if (!ph->phase[i].is_found)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s%s", len ? ", " : "",
						ph->p.name[i]);
	if (len)
		ph->p.put_meta(ph->p.ctx, "phases.missing", text);
}

/* Of phases that were timed in part. */
static void put_about(struct phases *ph, uint64_t now_ns)
{
	char key[40], text[24];
	for (uint32_t i = 0; i < ph->p.nr; i++) {
		uint64_t ns = phase_slices_about_ns(ph, i, now_ns);
		if (!ns || ph->phase[i].nr_seen >= phases_count(ph, i))
			continue;
		snprintf(key, sizeof(key), "phase.%u.about_ns", i);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)ns);
		ph->p.put_meta(ph->p.ctx, key, text);
	}
}

void phases_finish(struct phases *ph, uint64_t now_ns)
{
	char text[400];
	if (ph->is_finished)
		return;
	phases_settle(ph);
	phase_spans_finish(ph, now_ns);
	ph->is_finished = true;
	phases_emit(ph, now_ns);
	put_about(ph, now_ns);
	if (ph->nr_refused) {
		snprintf(text, sizeof(text), "%zu module%s: %s", ph->nr_refused,
			 ph->nr_refused == 1 ? "" : "s", ph->why_refused.msg);
		ph->p.put_meta(ph->p.ctx, "phases.failed", text);
	}
	if (ph->nr_late) {
		snprintf(text, sizeof(text), "%s", ph->late);
		if (ph->nr_late > 1)
			snprintf(text, sizeof(text), "%s, and %zu more",
				 ph->late, ph->nr_late - 1);
		ph->p.put_meta(ph->p.ctx, "phases.late", text);
	}
	if (ph->nr_unknown) {
		snprintf(
			text, sizeof(text),
			"%llu times that were recorded: in which thread cannot "
			"be told",
			(unsigned long long)ph->nr_unknown);
		ph->p.put_meta(ph->p.ctx, "phases.unknown", text);
	}
	if (ph->nr_beside) {
		snprintf(text, sizeof(text),
			 "calls that allocation sensors record as well (%zu "
			 "function%s)",
			 ph->nr_beside, ph->nr_beside == 1 ? "" : "s");
		ph->p.put_meta(ph->p.ctx, "phases.beside", text);
	}
	put_missing(ph);
	if (ph->nr_trimmed) {
		snprintf(text, sizeof(text),
			 "%zu module%s after %.3g s: counting there cost more "
			 "than was left of the budget",
			 ph->nr_trimmed, ph->nr_trimmed == 1 ? "" : "s",
			 (double)ph->trimmed_ns / (double)NSEC_PER_SEC);
		ph->p.put_meta(ph->p.ctx, "phases.ended", text);
	}
}
