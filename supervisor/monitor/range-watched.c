/* How long, and by what, variables were watched; what debug registers cost. */
#include <inttypes.h>
#include <stdio.h>

#include "supervisor/control/fixed.h"
#include "supervisor/monitor/range-private.h"

static uint64_t word_ns(const struct range_part *rp, uint32_t word,
			uint64_t now_ns)
{
	uint64_t ns = rp->turns[word].watched_ns;
	for (unsigned i = 0; i < WATCH_REGISTERS; i++)
		if (rp->reg[i].w && rp->reg[i].word == word)
			ns += range_seen_until(&rp->reg[i], now_ns) -
			      rp->reg[i].since_ns;
	return ns;
}

uint64_t range_watch_ns(const struct range_part *rp, uint32_t var,
			uint64_t now_ns, uint64_t *hits_ret)
{
	uint32_t word = rp->turns && var < range_unit_nr(rp->unit)
				? rp->unit->word_of[var]
				: UINT32_MAX;
	*hits_ret = 0;
	if (word == UINT32_MAX)
		return 0;
	*hits_ret = rp->turns[word].hits;
	return word_ns(rp, word, now_ns);
}

uint64_t range_sites_ns(const struct range_part *rp, uint32_t var,
			uint64_t end_ns, uint64_t *hits_ret, bool *by_insn_ret)
{
	size_t nr = 0, nr_insns;
	u128 sum = 0;
	*hits_ret = 0;
	*by_insn_ret = false;
	if (!rp->unit->plan)
		return 0;
	const struct range_use *use = range_plan_uses(rp->unit->plan, var, &nr);
	for (size_t i = 0; i < nr; i++) {
		sum += range_duty_watched_ns(&rp->duty, use[i].window, end_ns);
		*hits_ret = sat_add_u64(*hits_ret, rp->hits[use[i].window]);
	}
	const struct range_insn_use *insn =
		range_insn_uses(rp->unit, var, &nr_insns);
	for (size_t i = 0; i < nr_insns; i++) {
		if (insn[i].word >= rp->nr_turns)
			continue; /* it had none yet */
		uint64_t ns = word_ns(rp, insn[i].word, end_ns);
		sum += ns;
		*by_insn_ret |= ns > 0;
		*hits_ret =
			sat_add_u64(*hits_ret, rp->turns[insn[i].word].hits);
	}
	nr += nr_insns;
	return nr ? sat_u64(sum / nr) : 0;
}

bool range_have_insns(const struct range_monitor *m)
{
	return m->watchpoints && watchpoints_have_bpf(m->watchpoints);
}

/* Variables in memory, and sites that sensors have no room at. */
static void count(const struct range_monitor *m, size_t *nr_ret,
		  size_t *nr_sites_ret)
{
	*nr_ret = *nr_sites_ret = 0;
	for (const struct range_unit *u = m->units; u; u = u->next) {
		*nr_sites_ret += u->nr_insns;
		for (size_t i = 0; i < u->nr_words - u->nr_insns; i++)
			*nr_ret += u->words[i].nr;
	}
}

/* What of them there is. */
static void tell_kinds(char text[200], size_t nr, size_t nr_sites,
		       bool have_insns)
{
	int n = 0;
	text[0] = '\0';
	if (nr || !have_insns)
		n = snprintf(text, 200, "%zu variable%s", nr,
			     nr == 1 ? "" : "s");
	if (nr_sites && have_insns)
		snprintf(text + n, 200 - (size_t)n,
			 "%s%zu place%s without room for a jump",
			 n ? " and " : "", nr_sites, nr_sites == 1 ? "" : "s");
}

/* What is not seen without a program in the kernel. */
static void tell_missing(const struct range_monitor *m, char text[500],
			 size_t nr_sites)
{
	int n = 0;
	text[0] = '\0';
	if (range_have_insns(m))
		return;
	if (watchpoints_stop_threads(m->watchpoints))
		n = snprintf(text, 500,
			     ", by ptrace, as perf events are refused: what "
			     "the kernel writes is not seen%s%.250s",
			     m->why_not_all[0] ? "; " : "", m->why_not_all);
	else
		n = snprintf(text, 500,
			     ", without BPF: what plain stores wrote, else "
			     "what is there a little later%s",
			     watchpoints_see_kernel(m->watchpoints)
				     ? ""
				     : "; what the kernel writes is not seen "
				       "(perf_event_paranoid is 2 or more)");
	if (nr_sites)
		snprintf(text + n, 500 - (size_t)n,
			 "; nothing at %zu places without room for a jump",
			 nr_sites);
}

/* What hits have cost, ns: stops are in the ledger
 * with all others. */
static uint64_t hits_ns(const struct range_monitor *m)
{
	return watchpoints_stop_threads(m->watchpoints)
		       ? m->hits_ns
		       : ledger_spent_ns(m->ledger, LEDGER_TOUCH,
					 RANGE_WATCH_MONITOR);
}

void range_watch_tell(struct range_monitor *m)
{
	char text[900], kinds[200], missing[500];
	size_t nr, nr_sites;
	count(m, &nr, &nr_sites);
	if (!(nr + nr_sites) || !m->watch_tried)
		return;
	if (!m->watchpoints) {
		snprintf(text, sizeof(text),
			 "none, looked at now and then: %s%s", m->why_no_watch,
			 m->may_ask ? "; or --ptrace-watch (see its manual "
				      "page)"
				    : "");
	} else {
		tell_kinds(kinds, nr, nr_sites, range_have_insns(m));
		tell_missing(m, missing, nr_sites);
		snprintf(text, sizeof(text),
			 "%s in turn, %d at a time, %" PRIu64
			 " hits of %" PRIu64 " ns: %" PRIu64 " ms, %" PRIu64
			 " ms for arming%s",
			 kinds, WATCH_REGISTERS, m->nr_hits,
			 watchpoints_hit_ns(m->watchpoints),
			 hits_ns(m) / NSEC_PER_MSEC,
			 ledger_spent_ns(m->ledger, LEDGER_ARM,
					 RANGE_WATCH_MONITOR) /
				 NSEC_PER_MSEC,
			 missing);
	}
	m->p.put_meta(m->p.ctx, "range.watchpoints", text);
}
